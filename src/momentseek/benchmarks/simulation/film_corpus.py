"""Make a corpus of films and write its files: annotations, durations, MVMR's pools, features and ``data.toml``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tomli_w

from momentseek.benchmarks.datasets.common import write_folder
from momentseek.benchmarks.simulation.films import SPLIT_SHARES, Deed, GroundingSettings, SimulatedFilm, make_films
from momentseek.benchmarks.simulation.vectors import (
    ConceptVectors,
    Features,
    add_crosstalk,
    draw_concept_vectors,
    query_features,
)
from momentseek.benchmarks.simulation.world import World, tag, the_world
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import FORMATS
from momentseek.models.features.store import write_features

MAX_FURTHER_POSITIVES = 4
"""Further positives of an MVMR query at most, as in the published files."""


@dataclass(frozen=True, slots=True)
class FilmQuery:
    """A query for films: its text, the film for which it was written, and the moment there."""

    text: str
    film: SimulatedFilm
    deed: Deed


def write_queries(world: World, films: list[SimulatedFilm], settings: GroundingSettings) -> list[FilmQuery]:
    """Write "person opens the door." for every moment with a query, in the order of the films."""
    rng = settings.base.random("sentences")
    found = []
    for film in films:
        for deed in film.deeds:
            if deed.asked:
                words = ["person", _draw_word(world, deed.action, rng)]
                words += ["the", _draw_word(world, deed.object, rng)] if deed.object >= 0 else []
                found.append(FilmQuery(" ".join(words) + ".", film, deed))
    return found


def moment_judgements(asked: list[FilmQuery]) -> Judgements:
    """Judgements of one moment per query, as in Charades-STA; ids are VIDEO:i."""
    return Judgements.from_groups(
        number_queries(asked), [1] * len(asked), [a.film.name for a in asked], [a.deed.start for a in asked],
        [a.deed.end for a in asked], durations={a.film.name: a.film.seconds for a in asked},
        queries=[a.text for a in asked],
    )  # fmt: skip


def number_queries(asked: list[FilmQuery]) -> list[str]:
    """The queries' ids, VIDEO:i, counted per video in their order."""
    seen: dict[str, int] = {}
    ids = []
    for a in asked:
        ids.append(f"{a.film.name}:{seen.get(a.film.name, 0)}")
        seen[a.film.name] = seen.get(a.film.name, 0) + 1
    return ids


def related_films(asked: list[FilmQuery], films: list[SimulatedFilm]) -> dict[str, list[str]]:
    """The other films in which the same is done, by query id, as the similarity of captions would find them."""
    where: dict[tuple[int, int], list[str]] = {}
    for film in films:
        for pair in film.asked_pairs:
            where.setdefault(pair, []).append(film.name)
    found = {}
    for key, a in zip(number_queries(asked), asked, strict=True):
        others = [v for v in where[a.deed.action, a.deed.object] if v != a.film.name]
        if others:
            found[key] = others
    return found


def pool_judgements(
    asked: list[FilmQuery], films: list[SimulatedFilm], settings: GroundingSettings, draw: str = "pools"
) -> Judgements:
    """Judgements with up to four further positives per query and a pool of films in which nobody does that action."""
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
        number_queries(asked), counts, videos, np.array(starts, float), np.array(ends, float),
        durations={f.name: f.seconds for f in films}, queries=[a.text for a in asked],
        columns={"sentence": sentences}, pools=(sizes, pools),
    )  # fmt: skip


def _draw_word(world: World, concept: int, rng: np.random.Generator) -> str:
    words = world.concepts[concept].words
    return words[int(rng.integers(len(words)))]


POOLED_SPLITS = {"mvmr": ("test_iid", "pools"), "mvmr_val": ("val", "pools of val")}
"""Splits with a pool per query → the split whose films they search, and the name of the random draw."""
OBJECT_STRENGTH = 0.7
"""How strongly an object shows next to its action."""


@dataclass(frozen=True)
class GroundingReport:
    """What was written for a corpus of films."""

    queries: dict[str, int]
    """Number of queries per split."""
    pools: dict[str, int]
    """Videos of the smallest pool of each split that has pools; fewer than asked for where films ran out."""


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
        _write_truth(folder / f"{split}.{form.ending}", moment_judgements(queries), form.format)
    smallest = {}
    for name, (split, draw) in POOLED_SPLITS.items():
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
        for number, (key, a) in enumerate(zip(number_queries(asked), asked, strict=True)):
            yield key, query_features(tagged[a.text], space, settings.base, random("words", number))

    write_features(folder / "query.h5", words())
    write_features(folder / "video.h5", _clip_features(films, space, settings, progress))
    (folder / "data.toml").write_text(_data_toml(settings))
    return GroundingReport({split: len(queries) for split, queries in by_split.items()}, smallest)


def _clip_features(
    films: list[SimulatedFilm],
    space: ConceptVectors,
    settings: GroundingSettings,
    progress: Callable[[int], None],
) -> Iterator[tuple[str, Features]]:
    d, width, each = settings.base.difficulty, settings.video_dim, settings.form.clip_seconds
    for number, film in enumerate(films):
        rng = settings.base.random("clips", number)
        count = int(np.ceil(film.seconds / each))
        at = np.arange(count) * each
        clips = np.zeros((count, width))
        for deed in film.deeds:
            inside = np.clip(np.minimum(at + each, deed.end) - np.maximum(at, deed.start), 0, None)
            looks = space.looks[deed.action] + (OBJECT_STRENGTH * space.looks[deed.object] if deed.object >= 0 else 0.0)
            clips += (inside / each)[:, None] * looks
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
    splits |= {name: {"truth": f"{name}.json", **common} for name in POOLED_SPLITS}
    return tomli_w.dumps(
        {
            "name": f"simulated films, seed {settings.seed}, bias {settings.bias:g}",
            "clip_seconds": settings.form.clip_seconds,
            "simulated": True,
            "preset": "films",
            "features": {"video": ["video.h5"]},
            "splits": splits,
        }
    )
