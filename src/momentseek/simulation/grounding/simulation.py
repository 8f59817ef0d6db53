"""Make a corpus of films and write its files: annotations, durations, MVMR's pools, features and ``data.toml``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.features.write import write_features
from momentseek.formats import FORMATS
from momentseek.formats.registry import Writing
from momentseek.moments import Judgements
from momentseek.simulation.folder import write_folder
from momentseek.simulation.grounding.films import SimulatedFilm, make_films
from momentseek.simulation.grounding.queries import (
    moment_judgements,
    number_queries,
    pool_judgements,
    related_films,
    write_queries,
)
from momentseek.simulation.grounding.settings import SPLIT_SHARES, GroundingSettings
from momentseek.simulation.lexicon import tag
from momentseek.simulation.vectors import ConceptVectors, Features, add_crosstalk, draw_concept_vectors, query_features
from momentseek.simulation.world import the_world
from momentseek.toml import toml_text

POOLED_SPLITS = {"mvmr": ("test_iid", "pools"), "mvmr_val": ("val", "pools of val")}
"""Splits with a pool per query → the split whose films they search, and the name of the random draw."""
OBJECT_STRENGTH = 0.7
"""How strongly an object shows beside its action."""


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
    write = FORMATS[format].write_truth
    assert write is not None
    path.write_bytes(write(truth, Writing()))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def _data_toml(settings: GroundingSettings) -> str:
    common = {"query": "query.h5", "durations": "durations.json"}
    splits = {split: {"truth": f"{split}.{settings.form.ending}", **common} for split in SPLIT_SHARES}
    splits["train"]["related"] = "train_related.json"
    splits |= {name: {"truth": f"{name}.json", **common} for name in POOLED_SPLITS}
    return toml_text(
        {
            "name": f"simulated films, seed {settings.seed}, bias {settings.bias:g}",
            "clip_seconds": settings.form.clip_seconds,
            "simulated": True,
            "preset": "films",
            "features": {"video": ["video.h5"]},
            "splits": splits,
        }
    )
