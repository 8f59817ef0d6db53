"""The true level of every moment for every query of a simulated corpus, beyond the judged pool.

Like TVR-Ranking's, the judged moments of ``val.json`` and ``test.json`` were chosen by the similarity that also defines
the training lists, so a system is rewarded for guessing that pool. The judgements here have no such pool. They are
regenerated from the settings in ``world.json``, so that no large files have to be stored with every corpus.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.benchmarks.simulation.captions import choose_queries, remove_names, write_captions
from momentseek.benchmarks.simulation.relevance import build_judge
from momentseek.benchmarks.simulation.settings import FILES_VERSION, SimulationSettings
from momentseek.benchmarks.simulation.story import tell_story
from momentseek.benchmarks.simulation.words_as_pictures import LEVELS_FILE
from momentseek.benchmarks.simulation.world import the_world
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import read_truth

POOL_DEPTH = 40
POOL_OVERLAP = 0.5


@dataclass(frozen=True, eq=False)
class KnownCorpus:
    """A simulated corpus with its full truth."""

    video: Sequence[str]
    """The video of each moment."""
    start: FloatArray
    end: FloatArray
    levels: Callable[[str], tuple[IntArray, IntArray]]
    """Returns the moments that may be judged for a split's queries, and their levels, (queries, moments)."""
    queries: Callable[[str], tuple[Sequence[str], Sequence[str]]]
    """Returns ids and texts of a split's queries."""
    settings: SimulationSettings | None = None


def load_known(folder: Path) -> KnownCorpus:
    """Load the full truth of a simulated corpus: regenerate it from ``world.json``, or read its file of levels."""
    if (folder / LEVELS_FILE).is_file():
        return _load_words(folder)
    path = folder / "world.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        settings, version = SimulationSettings(**about["settings"]), about["version"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise MomentseekError(
            f"{path}: does not describe a simulated corpus of `momentseek simulate --like tvr` ({e}); name its folder"
        ) from None
    if version != FILES_VERSION:
        raise MomentseekError(f"{path}: is of version {version}, this is {FILES_VERSION}; simulate the corpus again")
    world = the_world()
    story = tell_story(world, settings)
    captions = remove_names(world, write_captions(world, story.moments, settings.random("captions")))
    queries = choose_queries(world, story.moments, captions[: story.offsets[settings.videos]], settings)
    judge, m = build_judge(world, story, ordered=settings.changes.repeats), story.moments

    def levels(split: str) -> tuple[IntArray, IntArray]:
        videos = settings.listed_videos(split)
        rows = np.arange(story.offsets[videos.start], story.offsets[videos.stop])
        return rows, judge.levels_of_all_moments(queries.moment[queries.rows(split)])[:, rows].astype(np.int64)

    def query_texts(split: str) -> tuple[list[str], Sequence[str]]:
        rows = queries.rows(split)
        return [str(row + 1) for row in range(rows.start, rows.stop)], queries.texts[rows]

    names = [story.videos[v].name for v in m.video.tolist()]
    return KnownCorpus(names, m.start, m.end, levels, query_texts, settings)


def _load_words(folder: Path) -> KnownCorpus:
    """Load the truth of a corpus of words as pictures, whose levels are in a file."""
    try:
        with np.load(folder / LEVELS_FILE, allow_pickle=False) as file:
            found = {name: file[name] for name in ("video", "start", "end", "videos", "val", "test")}
    except (OSError, ValueError, KeyError) as e:
        raise MomentseekError(f"{folder / LEVELS_FILE}: cannot be read ({e}); simulate the corpus again") from None

    def levels(split: str) -> tuple[IntArray, IntArray]:
        return np.arange(len(found["start"])), found[split].astype(np.int64)

    def query_texts(split: str) -> tuple[Sequence[str], Sequence[str]]:
        truth = read_truth(folder / f"{split}.json")
        return truth.query_ids, truth.queries or ()

    return KnownCorpus(found["videos"][found["video"]].tolist(), found["start"], found["end"], levels, query_texts)


def full_truth(known: KnownCorpus, split: str) -> Judgements:
    """Return the true level of every moment for each query of ``val`` or ``test``, without those of level 0."""
    rows, levels = known.levels(split)
    return _judgements(known, split, rows, levels, levels > 0)


def pooled_truth(known: KnownCorpus, split: str, runs: Sequence[Run], depth: int = POOL_DEPTH) -> Judgements:
    """Return the true levels of the moments that a run has among its first ``depth``, at an IoU of at least 0.5."""
    rows, levels = known.levels(split)
    place: dict[str, list[int]] = {}
    for column, row in enumerate(rows.tolist()):
        place.setdefault(known.video[row], []).append(column)
    pooled = np.zeros(levels.shape, dtype=bool)
    for run in runs:
        for number, query in enumerate(known.queries(split)[0]):
            if query not in run:
                raise MomentseekError(
                    f"{run.source}: has no predictions for query {query} of {split}; predict that split"
                )
            hits = range(*run.rows(query).indices(len(run.start)))[:depth]
            for hit in hits:
                columns = np.array(place.get(run.videos[run.video[hit]], ()), dtype=np.int64)
                overlap = iou(known.start[rows[columns]], known.end[rows[columns]], run.start[hit], run.end[hit])
                pooled[number, columns[overlap >= POOL_OVERLAP]] = True
    return _judgements(known, split, rows, levels, pooled)


def _judgements(known: KnownCorpus, split: str, rows: IntArray, levels: IntArray, kept: BoolArray) -> Judgements:
    query, column = np.nonzero(kept)
    order = np.lexsort((column, -levels[query, column], query))
    query, column = query[order], column[order]
    found = rows[column]
    ids, texts = known.queries(split)
    return Judgements.from_groups(
        ids,
        np.bincount(query, minlength=len(levels)).tolist(),
        [known.video[row] for row in found.tolist()],
        known.start[found],
        known.end[found],
        levels[query, column],
        queries=texts,
        source=f"(simulated truth of {split})",
    )
