"""The two pictures of an annotation campaign: lowest against highest score, and how many pairs have which score.

TVR-Ranking, appendix B.4: figure 5a counts pairs by the lowest and the highest of their raw scores, figure 5b by
their final score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.construct.annotation.consensus import Consensus
from momentseek.construct.annotation.labels import LEVEL_COUNT
from momentseek.moments.arrays import IntArray


@dataclass(frozen=True, eq=False)
class LabelDistributions:
    """Pairs by (lowest, highest) score in three views, and scores before and after the rule."""

    first_two: IntArray
    """By the first two labels of each pair: before two more were asked. Only as true as the file's order: if rows of
    a pair are sorted by worker, as in TVR-Ranking's file, the first two need not be those who judged first."""
    every: IntArray
    """By all labels: figure 5a."""
    counting: IntArray
    """By the two that count: after the extremes of four were set aside."""
    raw: IntArray
    """Labels by level."""
    final: IntArray
    """Kept pairs by level: figure 5b."""


def label_distributions(found: Consensus) -> LabelDistributions:
    """All five tables, over complete pairs; entry (a, b) of a matrix counts pairs with lowest a and highest b.

    >>> from momentseek.construct.annotation.consensus import consensus
    >>> from momentseek.construct.annotation.labels import labels_of
    >>> four = consensus(labels_of([("p", w, r) for w, r in enumerate((0, 3, 2, 1))]))
    >>> found = label_distributions(four)
    >>> [np.argwhere(m).tolist() for m in (found.first_two, found.every, found.counting)]
    [[[0, 3]], [[0, 3]], [[1, 2]]]
    """
    labels, complete = found.labels, found.complete
    start = labels.offsets[:-1]
    rows = np.flatnonzero(labels.counts > 0)
    lowest = np.minimum.reduceat(labels.relevance, start[rows])[complete[rows]]
    highest = np.maximum.reduceat(labels.relevance, start[rows])[complete[rows]]
    one, other = labels.relevance[start[complete]], labels.relevance[start[complete] + 1]
    return LabelDistributions(
        _matrix(np.minimum(one, other), np.maximum(one, other)),
        _matrix(lowest, highest),
        _matrix(found.low[complete], found.high[complete]),
        np.bincount(labels.relevance, minlength=LEVEL_COUNT),
        found.levels,
    )


def _matrix(low: IntArray, high: IntArray) -> IntArray:
    return np.bincount(low * LEVEL_COUNT + high, minlength=LEVEL_COUNT * LEVEL_COUNT).reshape(LEVEL_COUNT, LEVEL_COUNT)
