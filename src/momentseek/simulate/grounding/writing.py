"""The films' files: Charades-STA's lines, durations, MVMR's pools, features and ``data.toml``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.formats import FORMATS
from momentseek.formats.registry import Writing
from momentseek.moments import Judgements
from momentseek.simulate.folder import made
from momentseek.simulate.grounding.films import Film, shoot
from momentseek.simulate.grounding.queries import ask, ids_of, massive, related, truth_of
from momentseek.simulate.grounding.settings import SPLITS, Grounding
from momentseek.simulate.lexicon import tag
from momentseek.simulate.vectors import Features, Spaces, crosstalk, query_features, spaces
from momentseek.simulate.world import World, the_world

POOLED = {"mvmr": ("test_iid", "pools"), "mvmr_val": ("val", "pools of val")}
"""Splits with a pool per query, whose films they search, and the name of the draw."""
OBJECT = 0.7
"""How strongly an object shows beside its action."""


@dataclass(frozen=True)
class Made:
    """What was written."""

    queries: dict[str, int]
    """Per split."""
    pools: dict[str, int]
    """Videos of the smallest pool of each split that has pools; fewer than asked for where films ran out."""


def simulate_grounding(
    out: str | os.PathLike[str], settings: Grounding | None = None, *, force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Made:  # fmt: skip
    """Write a corpus of films to the folder ``out``."""
    settings = settings or Grounding()
    with made(out, force) as folder:
        return _fill(folder, settings, progress)


def _fill(folder: Path, settings: Grounding, progress: Callable[[int], None]) -> Made:
    from momentseek.features.write import write_features

    world, form = the_world(), settings.form
    films = shoot(world, settings)
    asked = ask(world, films, settings)
    by_split = {s: [a for a in asked if a.film.split == s] for s in SPLITS}
    for split, queries in by_split.items():
        _truth(folder / f"{split}.{form.ending}", truth_of(queries), form.format)
    smallest = {}
    for name, (split, draw) in POOLED.items():
        truth = massive(by_split[split], [f for f in films if f.split == split], settings, draw)
        assert truth.pools is not None
        smallest[name] = int(np.diff(truth.pools.offsets).min())
        _truth(folder / f"{name}.json", truth, "mvmr")
    _json(folder / "durations.json", {f.name: f.seconds for f in films})
    train = [f for f in films if f.split == "train"]
    _json(folder / "train_related.json", related(by_split["train"], train))

    tagged = {a.text: tag(a.text) for a in asked}
    space = spaces(world, sorted({w for t in tagged.values() for w in t.words}), settings.base)
    random = settings.base.random

    def words() -> Iterator[tuple[str, Features]]:
        for number, (key, a) in enumerate(zip(ids_of(asked), asked, strict=True)):
            yield key, query_features(tagged[a.text], space, settings.base, random("words", number))

    write_features(folder / "query.h5", words())
    write_features(folder / "video.h5", _clips(world, films, space, settings, progress))
    (folder / "data.toml").write_text(_data(settings))
    return Made({split: len(queries) for split, queries in by_split.items()}, smallest)


def _clips(
    world: World, films: list[Film], space: Spaces, settings: Grounding, progress: Callable[[int], None]
) -> Iterator[tuple[str, Features]]:
    d, width, each = settings.base.difficulty, settings.video_dim, settings.form.clip_seconds
    for number, film in enumerate(films):
        rng = settings.base.random("clips", number)
        count = int(np.ceil(film.seconds / each))
        at = np.arange(count) * each
        clips = np.zeros((count, width))
        for deed in film.deeds:
            inside = np.clip(np.minimum(at + each, deed.end) - np.maximum(at, deed.start), 0, None)
            looks = space.looks[deed.action] + (OBJECT * space.looks[deed.object] if deed.object >= 0 else 0.0)
            clips += (inside / each)[:, None] * looks
        style = rng.standard_normal(width)
        clips += d.style * style / np.linalg.norm(style)
        noise = rng.standard_normal(clips.shape) * (d.video_noise / np.sqrt(width))
        yield film.name, (crosstalk(clips, d.crosstalk) + noise).astype(np.float32)
        progress(1)


def _truth(path: Path, truth: Judgements, format: str) -> None:
    write = FORMATS[format].write_truth
    assert write is not None
    path.write_bytes(write(truth, Writing()))


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def _data(settings: Grounding) -> str:
    lines = [
        f'name = "simulated films, seed {settings.seed}, bias {settings.bias:g}"',
        f"clip_seconds = {settings.form.clip_seconds}",
        "simulated = true",
        'preset = "films"',
        "[features]",
        'video = ["video.h5"]',
    ]
    for split in SPLITS:
        lines += [
            f"[splits.{split}]",
            f'truth = "{split}.{settings.form.ending}"',
            'query = "query.h5"',
            'durations = "durations.json"',
        ]
        lines += ['related = "train_related.json"'] if split == "train" else []
    for name in POOLED:
        lines += [f"[splits.{name}]", f'truth = "{name}.json"', 'query = "query.h5"', 'durations = "durations.json"']
    return "\n".join(lines) + "\n"
