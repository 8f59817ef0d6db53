"""Simulate a corpus of films and write its files: annotations, durations, MVMR's pools, features and ``data.toml``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tomli_w

from momentseek.benchmarks.datasets.common import write_folder
from momentseek.benchmarks.simulation.films import (
    SPLIT_SHARES,
    CorpusForm,
    Deed,
    GroundingSettings,
    SimulatedFilm,
    make_films,
)
from momentseek.benchmarks.simulation.vectors import (
    ConceptVectors,
    Features,
    add_crosstalk,
    draw_concept_vectors,
    query_features,
)
from momentseek.benchmarks.simulation.world import World, tag, the_world
from momentseek.core.moments.arrays import FloatArray, offsets_of
from momentseek.core.moments.judgements import Judgements, Saliency
from momentseek.measuring.formats import FORMATS
from momentseek.models.features.store import write_features

MAX_FURTHER_POSITIVES = 4
"""Maximum number of additional positives of an MVMR query, as in the published files."""


@dataclass(frozen=True, slots=True)
class FilmQuery:
    """A query for films: its text, the film for which it was written, and the moment there."""

    text: str
    film: SimulatedFilm
    deed: Deed
    windows: tuple[Deed, ...]
    """All moments of that film that answer it, including the deed."""
    id: str
    """VIDEO:i, or a number if the corpus has numbers."""


def write_queries(world: World, films: list[SimulatedFilm], settings: GroundingSettings) -> list[FilmQuery]:
    """Write "person opens the door." for every moment with a query, in the order of the films."""
    rng = settings.base.random("sentences")
    found: list[FilmQuery] = []
    for film in films:
        for number, windows in enumerate(_asked_windows(film, settings.form.rated)):
            deed = windows[0]
            words = ["person", _draw_word(world, deed.action, rng)]
            words += ["the", _draw_word(world, deed.object, rng)] if deed.object >= 0 else []
            key = str(len(found)) if settings.form.rated else f"{film.name}:{number}"
            found.append(FilmQuery(" ".join(words) + ".", film, deed, windows, key))
    return found


def _asked_windows(film: SimulatedFilm, together: bool) -> list[tuple[Deed, ...]]:
    """Return what answers each query of a film: one deed, or all windows of an action ``together``."""
    asked = [deed for deed in film.deeds if deed.asked]
    if not together:
        return [(deed,) for deed in asked]
    return [tuple(d for d in asked if d.action == action) for action in dict.fromkeys(d.action for d in asked)]


def moment_judgements(asked: list[FilmQuery], form: CorpusForm) -> Judgements:
    """Return judgements of the windows of each query: one, as in Charades-STA, or several with rated clips."""
    windows = [(a.film.name, w.start, w.end) for a in asked for w in a.windows]
    return Judgements.from_groups(
        [a.id for a in asked], [len(a.windows) for a in asked], [w[0] for w in windows], [w[1] for w in windows],
        [w[2] for w in windows], durations={a.film.name: a.film.seconds for a in asked},
        queries=[a.text for a in asked], saliency=_saliency(asked, form.clip_seconds) if form.rated else None,
    )  # fmt: skip


def _saliency(asked: list[FilmQuery], each: float) -> Saliency:
    """Return the ratings of the clips in windows, and 0 for all others."""
    rows = []
    for a in asked:
        rated = np.zeros((round(a.film.seconds / each), 3))
        for w in a.windows:
            rated[round(w.start / each) : round(w.end / each)] = w.ratings
        rows.append(rated)
    return Saliency(offsets_of(map(len, rows)), np.concatenate(rows) if rows else np.zeros((0, 3)))


def related_films(asked: list[FilmQuery], films: list[SimulatedFilm]) -> dict[str, list[str]]:
    """Return the other films with the same action and object, by query id, as caption similarity would find them."""
    where: dict[tuple[int, int], list[str]] = {}
    for film in films:
        for pair in film.asked_pairs:
            where.setdefault(pair, []).append(film.name)
    found = {}
    for a in asked:
        others = [v for v in where[a.deed.action, a.deed.object] if v != a.film.name]
        if others:
            found[a.id] = others
    return found


def pool_judgements(
    asked: list[FilmQuery], films: list[SimulatedFilm], settings: GroundingSettings, draw: str = "pools"
) -> Judgements:
    """Return judgements with up to four more positives per query and a pool of films without that action."""
    rng = settings.base.random(draw)
    rows: list[tuple[str, float, float, str]] = []
    counts, sizes, pools = [], [], []
    texts = {(a.film.name, a.deed): a.text for a in asked}
    for a in asked:
        same = [
            (f, d) for f in films for d in f.deeds
            if d.asked and (d.action, d.object) == (a.deed.action, a.deed.object) and f.name != a.film.name
        ]  # fmt: skip
        chosen = [same[i] for i in sorted(rng.permutation(len(same))[:MAX_FURTHER_POSITIVES])]
        free = [f.name for f in films if all(d.action != a.deed.action for d in f.deeds)]
        rest = rng.permutation(len(free))[: max(0, settings.pool - 1 - len(chosen))]
        pool = [a.film.name, *(f.name for f, _ in chosen), *(free[i] for i in sorted(rest))]
        positives = [(a.film, a.deed), *chosen]
        rows += [(f.name, d.start, d.end, texts[f.name, d]) for f, d in positives]
        counts.append(len(positives))
        sizes.append(len(pool))
        pools += pool
    videos, starts, ends, sentences = (list(column) for column in zip(*rows, strict=True))
    return Judgements.from_groups(
        [a.id for a in asked], counts, videos, np.array(starts, float), np.array(ends, float),
        durations={f.name: f.seconds for f in films}, queries=[a.text for a in asked],
        columns={"sentence": sentences}, pools=(sizes, pools),
    )  # fmt: skip


def _draw_word(world: World, concept: int, rng: np.random.Generator) -> str:
    words = world.concepts[concept].words
    return words[int(rng.integers(len(words)))]


POOLED_SPLITS = {"mvmr": ("test_iid", "pools"), "mvmr_val": ("val", "pools of val")}
"""Splits with a pool per query → the split whose films they search, and the name of the random draw."""


def pooled_splits(form: CorpusForm) -> Mapping[str, tuple[str, str]]:
    """Return the splits with pools; MVMR has no queries with several windows."""
    return {} if form.rated else POOLED_SPLITS


OBJECT_STRENGTH = 0.7
"""Strength of an object's features, relative to 1 for its action."""


@dataclass(frozen=True)
class GroundingReport:
    """The sizes of a corpus of simulated films."""

    queries: dict[str, int]
    """Number of queries per split."""
    pools: dict[str, int]
    """Size of the smallest pool of each split with pools; less than requested if there are too few films."""


def simulate_grounding(
    out: str | os.PathLike[str], settings: GroundingSettings | None = None, *, force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> GroundingReport:  # fmt: skip
    """Write a corpus of simulated films to the folder ``out``; see ``simulate`` for ``force`` and ``progress``."""
    settings = settings or GroundingSettings()
    with write_folder(out, force) as folder:
        return _fill(folder, settings, progress)


def _fill(folder: Path, settings: GroundingSettings, progress: Callable[[int], None]) -> GroundingReport:
    world, form = the_world(), settings.form
    films = make_films(world, settings)
    asked = write_queries(world, films, settings)
    by_split = {s: [a for a in asked if a.film.split == s] for s in SPLIT_SHARES}
    for split, queries in by_split.items():
        _write_truth(folder / f"{split}.{form.ending}", moment_judgements(queries, form), form.format)
    smallest = {}
    for name, (split, draw) in pooled_splits(form).items():
        truth = pool_judgements(by_split[split], [f for f in films if f.split == split], settings, draw)
        assert truth.pools is not None
        smallest[name] = int(np.diff(truth.pools.offsets).min())
        _write_truth(folder / f"{name}.json", truth, "mvmr")
    _write_json(folder / "durations.json", {f.name: f.seconds for f in films})
    train = [f for f in films if f.split == "train"]
    _write_json(folder / "train_related.json", related_films(by_split["train"], train))

    tagged = {a.text: tag(a.text) for a in asked}
    space = draw_concept_vectors(world, sorted({w for t in tagged.values() for w in t.words}), settings.base)
    random = settings.base.random

    def words() -> Iterator[tuple[str, Features]]:
        for number, a in enumerate(asked):
            yield a.id, query_features(tagged[a.text], space, settings.base, random("words", number))

    write_features(folder / "query.h5", words())
    for name, (looks, purpose) in _streams(space, settings).items():
        clips = _clip_features(films, looks, settings, purpose, progress if purpose == "clips" else lambda _: None)
        write_features(folder / name, clips)
    (folder / "data.toml").write_text(_data_toml(settings))
    return GroundingReport({split: len(queries) for split, queries in by_split.items()}, smallest)


def _streams(space: ConceptVectors, settings: GroundingSettings) -> dict[str, tuple[FloatArray, str]]:
    """Return the files of clip features, each with its concept vectors and the name of its random draw.

    For QVHighlights there are two: SlowFast's, and CLIP's, which has pictures and words in one space.
    """
    if not settings.form.rated:
        return {"video.h5": (space.looks, "clips")}
    return {"slowfast.h5": (space.looks, "clips"), "clip.h5": (space.meanings, "pictures")}


def _clip_features(
    films: list[SimulatedFilm],
    looks: FloatArray,
    settings: GroundingSettings,
    purpose: str,
    progress: Callable[[int], None],
) -> Iterator[tuple[str, Features]]:
    d, width, each = settings.base.difficulty, looks.shape[1], settings.form.clip_seconds
    for number, film in enumerate(films):
        rng = settings.base.random(purpose, number)
        count = int(np.ceil(film.seconds / each))
        at = np.arange(count) * each
        clips = np.zeros((count, width))
        for deed in film.deeds:
            inside = np.clip(np.minimum(at + each, deed.end) - np.maximum(at, deed.start), 0, None)
            if deed.strengths:
                inside[round(deed.start / each) : round(deed.end / each)] *= deed.strengths
            seen = looks[deed.action] + (OBJECT_STRENGTH * looks[deed.object] if deed.object >= 0 else 0.0)
            clips += (inside / each)[:, None] * seen
        style = rng.standard_normal(width)
        clips += d.style * style / np.linalg.norm(style)
        noise = rng.standard_normal(clips.shape) * (d.video_noise / np.sqrt(width))
        yield film.name, (add_crosstalk(clips, d.crosstalk) + noise).astype(np.float32)
        progress(1)


def _write_truth(path: Path, truth: Judgements, format: str) -> None:
    path.write_bytes(FORMATS[format].to_bytes(truth))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def _data_toml(settings: GroundingSettings) -> str:
    common = {"query": "query.h5", "durations": "durations.json"}
    splits = {split: {"truth": f"{split}.{settings.form.ending}", **common} for split in SPLIT_SHARES}
    splits["train"]["related"] = "train_related.json"
    splits |= {name: {"truth": f"{name}.json", **common} for name in pooled_splits(settings.form)}
    return tomli_w.dumps(
        {
            "name": f"simulated films, seed {settings.seed}, bias {settings.bias:g}",
            "clip_seconds": settings.form.clip_seconds,
            "simulated": True,
            "preset": settings.form.preset,
            "features": {"video": ["slowfast.h5", "clip.h5"] if settings.form.rated else ["video.h5"]},
            "splits": splits,
        }
    )
