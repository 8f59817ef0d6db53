"""What a simulated corpus knows and its judged pool does not show: the level of every moment for every query.

The judged moments of ``val.json`` and ``test.json`` were chosen by the similarity that also makes the training lists,
as TVR-Ranking's were: a system is paid for guessing that pool. These judgements have no such pool. They are drawn
again from the settings in ``world.json``, so that nothing large has to be written with every corpus.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.benchmarks.simulation.captions import SimulatedQueries, choose_queries, remove_names, write_captions
from momentseek.benchmarks.simulation.relevance import Judge, build_judge
from momentseek.benchmarks.simulation.settings import FILES_VERSION, SimulationSettings
from momentseek.benchmarks.simulation.story import tell_story
from momentseek.benchmarks.simulation.world import the_world
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run

POOL_DEPTH = 40
POOL_OVERLAP = 0.5


@dataclass(frozen=True, eq=False)
class KnownCorpus:
    """A simulated corpus with all that is true of it."""

    settings: SimulationSettings
    judge: Judge
    queries: SimulatedQueries

    def searched_rows(self, split: str) -> IntArray:
        """The moments that may be judged for a split's queries."""
        videos, offsets = self.settings.listed_videos(split), self.judge.story.offsets
        return np.arange(offsets[videos.start], offsets[videos.stop])

    def levels(self, split: str) -> tuple[IntArray, IntArray]:
        """The moments that may be judged, and the level of each for every query of a split, (queries, moments)."""
        rows = self.searched_rows(split)
        asked = self.queries.moment[self.queries.rows(split)]
        return rows, self.judge.levels_of_all_moments(asked)[:, rows].astype(np.int64)


def load_known(folder: Path) -> KnownCorpus:
    """Draw a simulated corpus again from its ``world.json``."""
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
    return KnownCorpus(settings, build_judge(world, story, ordered=settings.changes.repeats), queries)


def full_truth(known: KnownCorpus, split: str) -> Judgements:
    """The true level of every moment for each query of ``val`` or ``test``; those of level 0 are left out."""
    rows, levels = known.levels(split)
    return _judgements(known, split, rows, levels, levels > 0)


def pooled_truth(known: KnownCorpus, split: str, runs: Sequence[Run], depth: int = POOL_DEPTH) -> Judgements:
    """The true levels of the moments that any of the runs has among its first ``depth``, at an IoU of 0.5 or more."""
    rows, levels = known.levels(split)
    m, story = known.judge.story.moments, known.judge.story
    place: dict[str, list[int]] = {}
    for column, row in enumerate(rows.tolist()):
        place.setdefault(story.videos[m.video[row]].name, []).append(column)
    pooled = np.zeros(levels.shape, dtype=bool)
    for run in runs:
        for number, query in enumerate(_query_ids(known, split)):
            if query not in run:
                raise MomentseekError(f"{run.source}: says nothing of query {query} of {split}; predict that split")
            hits = range(*run.rows(query).indices(len(run.start)))[:depth]
            for hit in hits:
                columns = np.array(place.get(run.videos[run.video[hit]], ()), dtype=np.int64)
                overlap = iou(m.start[rows[columns]], m.end[rows[columns]], run.start[hit], run.end[hit])
                pooled[number, columns[overlap >= POOL_OVERLAP]] = True
    return _judgements(known, split, rows, levels, pooled)


def _query_ids(known: KnownCorpus, split: str) -> list[str]:
    rows = known.queries.rows(split)
    return [str(row + 1) for row in range(rows.start, rows.stop)]


def _judgements(known: KnownCorpus, split: str, rows: IntArray, levels: IntArray, kept: BoolArray) -> Judgements:
    m, videos = known.judge.story.moments, known.judge.story.videos
    query, column = np.nonzero(kept)
    order = np.lexsort((column, -levels[query, column], query))
    query, column = query[order], column[order]
    found = rows[column]
    return Judgements.from_groups(
        _query_ids(known, split),
        np.bincount(query, minlength=len(levels)).tolist(),
        [videos[v].name for v in m.video[found].tolist()],
        m.start[found],
        m.end[found],
        levels[query, column],
        queries=known.queries.texts[known.queries.rows(split)],
        source=f"(simulated truth of {split})",
    )
