"""Judge how well a moment answers a query, from 0 to 4, by TVR-Ranking's guideline (appendix B.1).

The guideline asks for the main action first, then for details, then whether the moment contains the whole action and
little else. Here a query is the caption of a moment, so its concepts are known:

* 4: the main action, all details, and a moment that covers the action without much more;
* 3: the main action, with a small mismatch (a detail, or the times);
* 2: the main action with several mismatches, or a similar action with all details;
* 1: another action, but something of the query is there (an object, a second action, a topic of conversation);
* 0: nothing of the query. People are like stop words: on their own, they do not make a moment relevant.

What happens in a moment is its own event and those of other moments that overlap it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.benchmarks.simulation.settings import CLIP_SECONDS
from momentseek.benchmarks.simulation.story import NO_CONCEPT, Story
from momentseek.benchmarks.simulation.world import World
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run

EVENTS_PER_MOMENT = 3
"""Number of events that count for a moment: its own, and those of the moments that overlap it most."""
OBJECT_COST, OBJECT2_COST, ACTION2_COST, TOPIC_COST, TALK_COST = 1.0, 0.5, 1.0, 1.5, 0.5
PLACE_COST, COLOR_COST, MANNER_COST, PEOPLE_COST = 0.5, 0.5, 0.5, 0.5
"""Levels lost by a mismatch of each detail."""
PROMINENCE_COSTS = np.array([3.0, 0.5, 0.0])
"""Levels lost by an action that is hardly visible, at the edge of the picture, or prominent."""
ONLY_TALK_COST = 1.0
"""Additional levels lost by another topic if the query is only about talk."""
INCOMPLETENESS_COSTS = ((0.7, 0.5), (0.45, 0.5))
"""(completeness, cost): levels lost below this IoU of action and moment."""
BLOCK_QUERIES = 64


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges how relevant moments are to queries, from 0 to 4, by the guideline; call it with queries and moments."""

    world: World
    story: Story
    event: IntArray
    """``(moments, events)``: rows of the moments whose events happen in this moment, padded with ``NO_CONCEPT``."""
    completeness: FloatArray
    """``(moments, events)``: IoU of the event's action with this moment."""
    ordered: bool = False
    """Whether "B, then A" has at most level 2 for the query "A, then B"."""

    def __call__(self, queries: IntArray, moments: IntArray) -> NDArray[np.int8]:
        """Return the levels of pairs of a query (given by the moment it describes) and a moment; arrays broadcast."""
        levels = np.zeros(np.broadcast_shapes(queries.shape, moments.shape), dtype=np.int8)
        for slot in range(EVENTS_PER_MOMENT):
            event = self.event[moments, slot]
            found = self._levels(queries, event, self.completeness[moments, slot])
            np.maximum(levels, np.where(event == NO_CONCEPT, 0, found), out=levels)
        return levels

    def levels_of_all_moments(self, queries: IntArray) -> NDArray[np.int8]:
        """Return the levels of every moment of the corpus for some queries, ``(queries, moments)``."""
        every = np.arange(len(self.story.moments))
        parts = [self(queries[i : i + BLOCK_QUERIES, None], every[None]) for i in range(0, len(queries), BLOCK_QUERIES)]
        return np.concatenate(parts) if parts else np.zeros((0, len(every)), dtype=np.int8)

    def _levels(self, q: IntArray, e: IntArray, completeness: FloatArray) -> NDArray[np.int8]:
        m, group = self.story.moments, self.world.group

        def mentions(column: IntArray) -> BoolArray:
            result: BoolArray = column[q] != NO_CONCEPT
            return result

        def differs(column: IntArray, *others: IntArray) -> BoolArray:
            same = column[q] == column[e]
            for other in others:
                same = same | (column[q] == other[e])
            result: BoolArray = mentions(column) & ~same
            return result

        main = np.where(m.action != NO_CONCEPT, m.action, m.speech)
        same = (main[q] == main[e]) | (main[q] == m.action2[e]) | (main[q] == m.speech[e])
        alike = group[main[q]] == group[main[e]]
        spoken = m.speech[q] != NO_CONCEPT
        object_off = differs(m.object, m.object2)
        action2_off = differs(m.action2, m.action)
        topic_off = differs(m.topic)
        gender = np.append(self.world.gender, NO_CONCEPT)  # of nobody: nothing
        people_off = (gender[m.actor[q]] != gender[m.actor[e]]) | (
            mentions(m.other) & (gender[m.other[q]] != gender[m.other[e]])
        )
        missed = (
            OBJECT_COST * object_off
            + OBJECT2_COST * differs(m.object2, m.object)
            + ACTION2_COST * action2_off
            + np.where(m.action[q] == NO_CONCEPT, TOPIC_COST + ONLY_TALK_COST, TOPIC_COST) * topic_off
            + TALK_COST * (spoken & (m.speech[q] != m.speech[e]))
            + PLACE_COST * ((m.names_place[q] == 1) & (m.place[q] != m.place[e]))
            + COLOR_COST * ((m.names_color[q] == 1) & (m.color[q] != m.color[e]))
            + MANNER_COST * differs(m.manner)
            + PEOPLE_COST * people_off
            + PROMINENCE_COSTS[m.prominence[e]]
        )
        for bound, cost in INCOMPLETENESS_COSTS:
            missed = missed + cost * (completeness < bound)
        with_main = np.clip(np.floor(4.3 - missed), 0, 4)
        if self.ordered:
            reversed_order = mentions(m.action2) & (m.action[q] == m.action2[e]) & (m.action2[q] == m.action[e])
            with_main = np.where(reversed_order, np.minimum(with_main, 2), with_main)
        points = (
            (mentions(m.object) & ~object_off)
            | (mentions(m.action2) & ~action2_off)
            | (mentions(m.topic) & ~topic_off)
            | (alike & ~people_off)
        )
        without = np.where(alike & (missed < 1), 2, points.astype(np.int64))
        levels: NDArray[np.int8] = np.where(same, with_main, without).astype(np.int8)
        return levels


def build_judge(world: World, story: Story, *, ordered: bool = False) -> Judge:
    """Find the events of every moment, and build the judge that knows them."""
    m = story.moments
    event = np.full((len(m), EVENTS_PER_MOMENT), NO_CONCEPT, dtype=np.int64)
    share = np.zeros((len(m), EVENTS_PER_MOMENT))
    event[:, 0] = np.arange(len(m))
    share[:, 0] = iou(m.start, m.end, m.begin, m.finish)
    for first, last in zip(story.offsets[:-1].tolist(), story.offsets[1:].tolist(), strict=True):
        rows = np.arange(first, last)
        overlap = iou(m.start[rows, None], m.end[rows, None], m.begin[None, rows], m.finish[None, rows])
        np.fill_diagonal(overlap, 0)
        best = np.argsort(-overlap, axis=1, kind="stable")[:, : EVENTS_PER_MOMENT - 1]
        value = np.take_along_axis(overlap, best, axis=1)
        width = best.shape[1]
        event[first:last, 1 : 1 + width] = np.where(value > 0.1, rows[best], NO_CONCEPT)
        share[first:last, 1 : 1 + width] = value
    return Judge(world, story, event, share, ordered)


BATCH_MOMENTS = 20
SECOND_BATCH_SHARE = 0.47
DECIDING_MOMENTS = 5


@dataclass(frozen=True, eq=False)
class SimulatedJudgements:
    """The judged moments of some queries, query by query, the most similar first."""

    counts: IntArray
    moment: IntArray
    similarity: FloatArray
    relevance: IntArray


def annotate(
    judge: Judge, queries: IntArray, near: IntArray, similarity: FloatArray, error: float, rng: np.random.Generator
) -> SimulatedJudgements:
    """Judge ``near``, the 40 nearest moments of each query; ``queries`` are the moments that queries describe.

    Annotators are one level too high with probability ``error``, and one too low with the same probability.
    """
    truth = judge(queries[:, None], near)
    first = near[:, :BATCH_MOMENTS].shape[1]
    still = truth[:, max(0, first - DECIDING_MOMENTS) : first].sum(axis=1) + rng.random(len(queries))
    again = np.argsort(-still, kind="stable")[: round(SECOND_BATCH_SHARE * len(queries))]
    asked = np.zeros(truth.shape, dtype=bool)
    asked[:, :first] = True
    asked[again] = True
    level = draw_consensus(truth.astype(np.int64), error, rng)
    kept = asked & (level >= 0)
    return SimulatedJudgements(kept.sum(axis=1), near[kept], similarity[kept], level[kept])


def draw_consensus(truth: IntArray, error: float, rng: np.random.Generator) -> IntArray:
    """Draw the levels on which simulated annotators agree; -1 where they do not.

    >>> levels = draw_consensus(np.full(5000, 2), 0.12, np.random.default_rng(0))
    >>> (np.bincount(levels + 1, minlength=6) / 5000).round(2).tolist()
    [0.0, 0.0, 0.01, 0.78, 0.2, 0.0]
    """
    noise = rng.random((4, *truth.shape))
    opinions = np.clip(truth + (noise < error) - (noise > 1 - error).astype(np.int64), 0, 4)
    two, four = np.sort(opinions[:2], axis=0), np.sort(opinions, axis=0)
    agree = two[1] - two[0] <= 1
    low, high = np.where(agree, two[0], four[1]), np.where(agree, two[1], four[2])
    result: IntArray = np.where(high - low <= 1, (low + high + 1) // 2, -1).astype(np.int64)
    return result


MOMENTS_PER_QUERY = 20


def snap_to_clips(start: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move each moment to the span of whole clips, with edges next to its own, that has the highest IoU with it.

    >>> first, last = snap_to_clips(np.array([1.0, 4.0]), np.array([6.2, 4.4]))
    >>> first.tolist(), last.tolist()
    ([1.5, 3.0], [6.0, 4.5])
    """
    low, high = np.floor(start / CLIP_SECONDS), np.floor(end / CLIP_SECONDS)
    choices = [(low + i, high + j) for i in (0, 1) for j in (0, 1)]
    firsts = np.stack([a for a, _ in choices]) * CLIP_SECONDS
    lasts = np.stack([b for _, b in choices]) * CLIP_SECONDS
    overlap = np.where(lasts > firsts, iou(firsts, lasts, start, end), -1)
    best = overlap.argmax(axis=0)
    every = np.arange(len(start))
    return firsts[best, every], lasts[best, every]


def oracle_run(truth: Judgements) -> Run:
    """Return a run of the judged moments of each query, the most relevant first."""
    start, end = snap_to_clips(truth.start, truth.end)
    order = np.lexsort((np.arange(len(start)), -truth.relevance.astype(np.int64), truth.row_query))
    videos = [truth.videos[c] for c in truth.video[order].tolist()]
    score = truth.relevance[order].astype(np.float64)
    return Run.from_groups(truth.query_ids, truth.counts.tolist(), videos, start[order], end[order], score)


def all_knowing_run(truth: Judgements, story: Story, judge: Judge, queries: IntArray, rng: np.random.Generator) -> Run:
    """Return a run of the truly most relevant moments of the whole corpus for each query, ties in random order.

    It does not know which moments were judged, so this is the best that a model can achieve.
    """
    levels = judge.levels_of_all_moments(queries) + rng.random((len(queries), len(story.moments)))
    best = np.argsort(-levels, axis=1)[:, :MOMENTS_PER_QUERY]
    m, rows = story.moments, best.ravel()
    start, end = snap_to_clips(m.start[rows], m.end[rows])
    names = [story.videos[v].name for v in m.video[rows].tolist()]
    score = np.take_along_axis(levels, best, axis=1).ravel()
    return Run.from_groups(truth.query_ids, [best.shape[1]] * len(queries), names, start, end, score)
