"""HIT@1[level=…]: is the most salient clip a highlight (QVHighlights)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.measure import Measure, register

Level = Literal["fair", "good", "verygood"]
MIN_RATINGS: dict[str, int] = {"fair": 2, "good": 3, "verygood": 4}
"""Minimum annotator's score (0–4) for a clip to count as a highlight."""


@register
@dataclass(frozen=True, kw_only=True)
class HitRate(Measure):
    """1 if any annotator rates the highest-scored 2 s clip at least fair (2), good (3) or very good (4).

    A clip beyond the video's last one is a miss.
    """

    NAME = "HIT"
    ABOUT = "is the clip with the highest saliency a highlight (QVHighlights)"

    k: int = 1
    level: Level = "verygood"

    def __post_init__(self) -> None:
        if self.k != 1:
            raise MomentseekError(f"measure {self.name}: HIT is defined for the first clip only; use HIT@1")

    def __call__(self, view: Alignment) -> FloatArray:
        truth, clips = true_highlights(view, self.level)
        scores, lengths = predicted_scores(view, -np.inf)
        if not scores.shape[1]:
            return np.zeros(view.queries)
        top = scores.argmax(axis=1)
        inside = (top < clips) & (lengths > 0)
        values = np.zeros(view.queries)
        values[inside] = truth[np.flatnonzero(inside), top[inside]].any(axis=1)
        return values


def true_highlights(view: Alignment, level: Level) -> tuple[NDArray[np.bool_], IntArray]:
    """Return which clips are highlights, (queries, clips, annotators), and each query's number of clips."""
    saliency = view.truth.saliency
    if saliency is None:
        raise MomentseekError(f"{view.truth.source}: has no saliency scores, which HIT and SaliencyAP need")
    clips = np.diff(saliency.offsets)
    row, column = positions(saliency.offsets)
    dense = np.zeros((view.queries, int(clips.max(initial=0)), saliency.scores.shape[1]), dtype=bool)
    dense[row, column] = saliency.scores >= MIN_RATINGS[level]
    return dense, clips


def predicted_scores(view: Alignment, fill: float) -> tuple[FloatArray, IntArray]:
    """Return the run's scores, (queries, clips), with ``fill`` beyond a list's end, and the lengths of the lists."""
    saliency = view.run.saliency
    if saliency is None:
        raise MomentseekError(f"{view.run.source}: has no pred_saliency_scores, which HIT and SaliencyAP need")
    position = np.array([view.truth.position.get(q, -1) for q in view.run.query_ids], dtype=np.int64)
    lengths = np.zeros(view.queries, dtype=np.int64)
    known = position >= 0
    lengths[position[known]] = np.diff(saliency.offsets)[known]
    row, column = positions(saliency.offsets)
    query = position[row]
    kept: BoolArray = query >= 0
    dense = np.full((view.queries, int(lengths.max(initial=0))), fill)
    dense[query[kept], column[kept]] = saliency.scores[kept, 0]
    return dense, lengths


def positions(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the group of every CSR entry and its position within the group.

    >>> positions(np.array([0, 2, 3]))
    (array([0, 0, 1]), array([0, 1, 0]))
    """
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return group, np.arange(len(group)) - offsets[group]
