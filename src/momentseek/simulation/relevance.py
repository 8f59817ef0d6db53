"""How well a moment answers a query, from 0 to 4, by TVR-Ranking's guideline (appendix B.1).

The guideline asks for the main action first, then for details, then whether the moment holds the whole action and
little else. Here a query is the caption of a moment, and knows its concepts:

* 4: the main action, all details, and a moment that covers the action without much more;
* 3: the main action, with a small mismatch (a detail, or the times);
* 2: the main action with several mismatches, or an action like it with all details;
* 1: another action, but something of the query is there (an object, a second action, what is talked of);
* 0: nothing of it. People are like stop words: alone they make nothing relevant.

What happens in a moment is its own event and those of other moments that overlap it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.moments.overlap import iou
from momentseek.simulation.story import NO_CONCEPT, Story
from momentseek.simulation.world import World

EVENTS_PER_MOMENT = 3
"""Events that count for a moment: its own, and those of the moments that overlap it most."""
OBJECT_COST, OBJECT2_COST, ACTION2_COST, TOPIC_COST, TALK_COST = 1.0, 0.5, 1.0, 1.5, 0.5
PLACE_COST, COLOR_COST, MANNER_COST, PEOPLE_COST = 0.5, 0.5, 0.5, 0.5
"""Levels that a mismatch of each detail costs."""
PROMINENCE_COSTS = np.array([3.0, 0.5, 0.0])
"""Levels that an action loses that is hardly in the picture, at its edge, or at a prominent spot."""
ONLY_TALK_COST = 1.0
"""Levels that another topic costs in addition if the query is only about talk."""
INCOMPLETENESS_COSTS = ((0.7, 0.5), (0.45, 0.5))
"""(completeness, cost): below this IoU of action and moment, so many levels are lost."""
BLOCK_QUERIES = 64


@dataclass(frozen=True, eq=False)
class Judge:
    """Says how relevant a moment is to a query, from 0 to 4, by the guideline; call it with queries and moments."""

    world: World
    story: Story
    event: IntArray
    """``(moments, EVENTS)``: rows of the moments table whose events happen in this moment; NONE where fewer."""
    completeness: FloatArray
    """``(moments, EVENTS)``: IoU of the event's action with this moment."""

    def __call__(self, queries: IntArray, moments: IntArray) -> NDArray[np.int8]:
        """The levels of pairs of a query (given by the moment whose caption it is) and a moment; arrays broadcast."""
        levels = np.zeros(np.broadcast_shapes(queries.shape, moments.shape), dtype=np.int8)
        for slot in range(EVENTS_PER_MOMENT):
            event = self.event[moments, slot]
            found = self._levels(queries, event, self.completeness[moments, slot])
            np.maximum(levels, np.where(event == NO_CONCEPT, 0, found), out=levels)
        return levels

    def levels_of_all_moments(self, queries: IntArray) -> NDArray[np.int8]:
        """The levels of every moment of the corpus for some queries, ``(queries, moments)``."""
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
        for least, cost in INCOMPLETENESS_COSTS:
            missed = missed + cost * (completeness < least)
        with_main = np.clip(np.floor(4.3 - missed), 0, 4)
        points = (
            (mentions(m.object) & ~object_off)
            | (mentions(m.action2) & ~action2_off)
            | (mentions(m.topic) & ~topic_off)
            | (alike & ~people_off)
        )
        without = np.where(alike & (missed < 1), 2, points.astype(np.int64))
        levels: NDArray[np.int8] = np.where(same, with_main, without).astype(np.int8)
        return levels


def build_judge(world: World, story: Story) -> Judge:
    """Find which events happen in every moment, and build the judge that knows them."""
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
    return Judge(world, story, event, share)
