"""R@K[IoU>=m]: is there a correct answer among the first K?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.measuring.measures.alignment import Alignment, Overlap, Task, Videos, passes
from momentseek.measuring.measures.measure import LengthRange, Measure, in_range, register

NO_MATCH = np.iinfo(np.int64).max


@register
@dataclass(frozen=True, kw_only=True)
class Recall(Measure):
    r"""1 if any of the top K predictions matches a relevant moment, else 0 (TVR §5.2; AxIoU supplement eq. 1).

    .. math:: R@K = \mathbb{1}\{\exists k \le K: IoU(p_k, g) \ge m\}

    ``task`` says what is compared: video and time (VCMR), time within the right video (SVMR; predictions in other
    videos are skipped), or only the video (VR; no IoU). If a truth requires agreement (DiDeMo), a prediction must
    match that many annotators.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    >>> run = Run.from_rows([("q", "w", 0, 10, .9), ("q", "v", 0, 20, .8)])
    >>> view = Alignment(run, truth)
    >>> [float(parse(f"R@{m}")(view)[0]) for m in ("1[IoU>=0.5]", "2[IoU>=0.5]", "1[IoU>=0.5,task=SVMR]", "2[IoU>0.5]")]
    [0.0, 1.0, 1.0, 0.0]
    """

    NAME = "R"
    ABOUT = "recall: any of the top K matches a relevant moment (TVR §5.2)"

    k: int
    iou: float | None = None
    strict: bool = False
    task: Task = "VCMR"
    overlap: Overlap = "union"
    videos: Videos = "same"
    """``ignore``: the query's video is given, so names are not compared (QVHighlights)."""
    depth: int | None = None
    """Number of predictions per query that are used at all; None for all."""
    length: LengthRange = "full"
    """Range of lengths of the relevant moments that count; queries without such a moment do not count."""
    pools: Literal["any", "full"] = "any"
    """``full``: queries whose pool of videos is incomplete do not count (MVMR's evaluator)."""

    def __post_init__(self) -> None:
        if self.iou is None and self.task != "VR":
            raise MomentseekError(f"measure {self.name}: R needs an IoU, as in R@{self.k}[IoU>=0.5], or task=VR")
        if self.iou is not None and self.task == "VR":
            raise MomentseekError(f"measure {self.name}: task=VR compares videos alone; leave the IoU out")
        if self.depth == 0:
            raise MomentseekError(f"measure {self.name}: depth must be at least 1")

    @property
    def max_rank(self) -> int | None:
        """Number of ranks it uses; for SVMR ``depth``, because predictions in other videos are skipped."""
        return self.depth if self.task == "SVMR" else self.k

    def __call__(self, view: Alignment) -> FloatArray:
        view = view.restrict(self.task, self.depth)
        first = view.once(("first match", self._settings()), lambda: first_match(view, self._matches(view)))
        values = (first < self.k).astype(np.float64)
        if self.length != "full":
            values[~in_range(view.truth, self.length)[1]] = np.nan
        if self.pools == "full":
            values[~full_pools(view)] = np.nan
        return values

    def _settings(self) -> object:
        return (self.iou, self.strict, self.task, self.overlap, self.videos, self.length)

    def _matches(self, view: Alignment) -> BoolArray:
        if self.task == "VR":
            return view.in_judged_video()
        assert self.iou is not None
        truth = view.truth
        if self.length == "full" and truth.agreement is None:
            return view.matches(self.iou, self.strict, self.overlap, self.videos)
        pairs = view.pairs(self.overlap, self.videos)
        counts = (truth.relevance > 0) & in_range(truth, self.length)[0]
        good = passes(pairs.iou, self.iou, self.strict) & counts[pairs.judged]
        matched = np.bincount(pairs.row[good], minlength=len(view.query))
        needed = 1 if truth.agreement is None else truth.agreement[view.query]
        result: BoolArray = matched >= needed
        return result


def first_match(view: Alignment, matches: BoolArray) -> IntArray:
    """Return the rank (from 0) of each query's first matching prediction; ``NO_MATCH`` if there is none."""
    first = np.full(view.queries, NO_MATCH, dtype=np.int64)
    np.minimum.at(first, view.query[matches], view.rank[matches])
    return first


def full_pools(view: Alignment) -> BoolArray:
    """Whether each query's pool is as large as the largest; True for all if the truth has no pools."""
    pools = view.truth.pools
    if pools is None:
        return np.ones(view.queries, dtype=bool)
    sizes = np.diff(pools.offsets)
    result: BoolArray = sizes == sizes.max(initial=0)
    return result
