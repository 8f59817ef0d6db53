"""Cases: one query, one ranked list, and one moment of it changed; what the axioms of moment retrieval speak of.

A case becomes a query, so thousands of them are evaluated at once, by the real measures, in two calls each:
the lists before the change and the lists after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from momentseek.measures import Alignment, Measure
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import BoolArray, FloatArray, IntArray

MIN_IOU_RISE = 0.001
"""The least rise of IoU that a case must make, far above what float32 overlaps can lose."""


class ListedMoment(NamedTuple):
    """A stretch of a video, with its relevance where it is judged.

    Unlike a ``Moment`` it may be impossible, as what is read with ``invalid="keep"`` may be.
    """

    video: str
    start: float
    end: float
    relevance: int = 1


@dataclass(frozen=True, slots=True)
class Case:
    """A query's judged moments and ranked list; ``changed`` replaces the moment at ``rank`` (from 1)."""

    truth: tuple[ListedMoment, ...]
    ranked: tuple[ListedMoment, ...]
    rank: int
    changed: ListedMoment
    durations: Mapping[str, float] = field(default_factory=dict)
    agreement: int = 1
    origin: str = ""
    """Where the list comes from, in words."""

    @property
    def after(self) -> tuple[ListedMoment, ...]:
        """The list with the changed moment in its place."""
        return (*self.ranked[: self.rank - 1], self.changed, *self.ranked[self.rank :])


class Trials:
    r"""Many cases laid out for evaluation, and which axiom's condition each meets (AxIoU supplement A.1).

    With r(k) the best IoU of the moment at rank k with a relevant moment, the change must raise r(k) (condition
    A.1). If it stays at or below the best above it, INV-k asks that the measure does not move (condition A.2); if
    it rises above the best above it, MON-k asks that the measure rises (condition A.3).

    >>> true, first, second, better = (ListedMoment("v", 0, end) for end in (10, 8, 2, 5))
    >>> case = Case(truth=(true,), ranked=(first, second), rank=2, changed=better)
    >>> trials = Trials([case])
    >>> trials.r_before.tolist(), trials.r_after.tolist(), trials.best_above.tolist(), trials.invariant.tolist()
    ([0.2], [0.5], [0.8], [True])
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        truth = _judgements(cases)
        self.before = Alignment(_run(cases, [c.ranked for c in cases]), truth)
        self.after = Alignment(_run(cases, [c.after for c in cases]), truth)
        self.rank: IntArray = np.array([c.rank for c in cases], dtype=np.int64)
        depth = max((len(c.ranked) for c in cases), default=1)
        before, after = (v.by_rank(v.best_iou(), depth) for v in (self.before, self.after))
        place = np.arange(len(cases)), self.rank - 1
        self.r_before: FloatArray = before[place]
        self.r_after: FloatArray = after[place]
        above = np.arange(depth) < self.rank[:, None] - 1
        self.best_above: FloatArray = np.where(above, before, 0.0).max(axis=1, initial=0.0)
        rises = self.r_after - self.r_before >= MIN_IOU_RISE
        self.invariant: BoolArray = rises & (self.rank > 1) & (self.r_after <= self.best_above)
        self.monotone: BoolArray = rises & ((self.rank == 1) | (self.r_after - self.best_above >= MIN_IOU_RISE))

    def values(self, measure: Measure) -> tuple[FloatArray, FloatArray]:
        """What the measure gives each case before and after the change."""
        return measure(self.before), measure(self.after)


def _judgements(cases: Sequence[Case]) -> Judgements:
    rows = [(_name(i, t.video), t) for i, c in enumerate(cases) for t in c.truth]
    agreement = [c.agreement for c in cases]
    return Judgements.from_groups(
        range(len(cases)),
        [len(c.truth) for c in cases],
        [name for name, _ in rows],
        [t.start for _, t in rows],
        [t.end for _, t in rows],
        [t.relevance for _, t in rows],
        durations={_name(i, v): seconds for i, c in enumerate(cases) for v, seconds in c.durations.items()},
        agreement=agreement if any(n != 1 for n in agreement) else None,
        invalid="keep",
    )


def _run(cases: Sequence[Case], lists: Sequence[tuple[ListedMoment, ...]]) -> Run:
    rows = [(_name(i, s.video), s) for i, spans in enumerate(lists) for s in spans]
    return Run.from_groups(
        range(len(cases)),
        map(len, lists),
        [name for name, _ in rows],
        [s.start for _, s in rows],
        [s.end for _, s in rows],
        invalid="keep",
    )


def _name(case: int, video: str) -> str:
    # Cases are strangers: the same video may have another length in another case.
    return f"{case}/{video}"
