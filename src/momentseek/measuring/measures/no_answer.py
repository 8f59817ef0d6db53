"""FalseAlarm, FalseRejection and RejectionAUC: does a system reject queries that have no answer?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.measure import Measure, register


def is_answerable(view: Alignment) -> BoolArray:
    """Whether there is a relevant moment, for each judged query."""
    truth = view.truth
    answerable = np.zeros(view.queries, dtype=bool)
    answerable[truth.row_query[truth.relevance > 0]] = True
    return answerable


def best_scores(view: Alignment) -> FloatArray:
    """Return the highest score of each judged query's predictions; minus infinity for an empty list."""
    best = np.full(view.queries, -math.inf)
    np.maximum.at(best, view.query, view.score)
    return best


@dataclass(frozen=True, kw_only=True)
class RejectionMeasure(Measure):
    """Base class of the measures that decide at a score level which queries count as answered.

    A query is answered if one of its predictions scores at least ``level``, or at least the level at which ``keep``
    percent of the queries that have an answer are answered; with neither, if it has any prediction.
    """

    COUNTS_EMPTY = True
    LOWER_IS_BETTER = True

    level: float | None = None
    keep: int | None = None

    def __post_init__(self) -> None:
        if self.level is not None and self.keep is not None:
            raise MomentseekError(f"measure {self.name}: give a level or keep, not both")
        if self.keep is not None and not 1 <= self.keep <= 100:
            raise MomentseekError(f"measure {self.name}: keep is a percentage from 1 to 100, not {self.keep}")

    def is_answered(self, view: Alignment) -> BoolArray:
        """Whether the run answers each judged query at this level."""
        best = best_scores(view)
        level = -math.inf if self.level is None else self.level
        if self.keep is not None:
            known = np.sort(best[is_answerable(view)])[::-1]
            level = known[math.ceil(len(known) * self.keep / 100) - 1] if len(known) else math.inf
        result: BoolArray = (best >= level) & (best > -math.inf)
        return result


@register
@dataclass(frozen=True, kw_only=True)
class FalseAlarm(RejectionMeasure):
    """1 if a query without any relevant moment is answered, else 0; queries that have one do not count.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("dog", "v", 0, 10, 1), ("zebra", "v", 0, 60, 0)])
    >>> view = Alignment(Run.from_rows([("dog", "v", 0, 9, .9), ("zebra", "v", 3, 5, .4)]), truth)
    >>> [float(parse(name)(view)[1]) for name in ("FalseAlarm", "FalseAlarm[level=0.5]", "FalseAlarm[keep=100]")]
    [1.0, 0.0, 0.0]
    """

    NAME = "FalseAlarm"
    ABOUT = "queries without a relevant moment that are answered anyway (lower is better)"

    def __call__(self, view: Alignment) -> FloatArray:
        return np.where(is_answerable(view), np.nan, self.is_answered(view).astype(np.float64))


@register
@dataclass(frozen=True, kw_only=True)
class FalseRejection(RejectionMeasure):
    """1 if a query that has a relevant moment is not answered, else 0; queries without one do not count.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("dog", "v", 0, 10, 1)])
    >>> float(parse("FalseRejection[level=0.95]")(Alignment(Run.from_rows([("dog", "v", 0, 9, .9)]), truth))[0])
    1.0
    """

    NAME = "FalseRejection"
    ABOUT = "queries with a relevant moment that are not answered (lower is better)"

    def __call__(self, view: Alignment) -> FloatArray:
        return np.where(is_answerable(view), (~self.is_answered(view)).astype(np.float64), np.nan)


@register
@dataclass(frozen=True, kw_only=True)
class RejectionAUC(Measure):
    r"""How well scores separate queries with an answer from those without: the area under the ROC curve.

    .. math:: AUC(q) = P(s > s_q) + P(s = s_q) / 2

    for each query q without a relevant moment, over the best scores s of the queries that have one; an empty list is
    below all scores. 0.5 is chance (Hanley and McNeil, Radiology 143, 1982).

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("dog", "v", 0, 10, 1), ("cat", "v", 0, 9, 1), ("zebra", "v", 0, 60, 0)])
    >>> run = Run.from_rows([("dog", "v", 0, 9, .9), ("cat", "v", 0, 9, .2), ("zebra", "v", 3, 5, .4)])
    >>> float(parse("RejectionAUC")(Alignment(run, truth))[2])
    0.5
    """

    NAME = "RejectionAUC"
    ABOUT = "area under the ROC curve of best scores, queries with an answer against those without"
    COUNTS_EMPTY = True

    def __call__(self, view: Alignment) -> FloatArray:
        best, answerable = best_scores(view), is_answerable(view)
        known = np.sort(best[answerable])
        if not len(known):
            return np.full(view.queries, np.nan)
        below = np.searchsorted(known, best, side="left")
        tied = np.searchsorted(known, best, side="right") - below
        return np.where(answerable, np.nan, (len(known) - below - tied / 2) / len(known))
