"""The gap between iid and ood, over seeds, and how much of the first system's gap another closes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.evaluation.bootstrap import CONFIDENCE_LEVEL, bootstrap_means, percentiles
from momentseek.evaluation.debias.systems import GAP_MEASURES, RECALL_MEASURES, SeedScores
from momentseek.evaluation.spread import SeedSpread, spread
from momentseek.moments.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Change:
    """A difference, and its 95 % bootstrap interval from low to high."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SplitGap:
    """A system on one measure; intervals are over queries, standard deviations over seeds."""

    system: str
    measure: str
    iid: SeedSpread
    ood: SeedSpread
    gap: SeedSpread
    """The iid score less the ood score, seed by seed."""
    interval: Change
    """The mean gap with its bootstrap interval."""
    relative: float
    """The share of the iid score that is lost: gap / iid."""
    closed: Change | None
    """The first system's gap less this one's. A gap also closes when iid falls, so look at ``ood_gain``."""
    iid_gain: Change | None
    ood_gain: Change | None
    """The ood score less the first system's; None for the first system."""


def gaps(
    names: Sequence[str], iid: Sequence[SeedScores], ood: Sequence[SeedScores], seed: int = 0
) -> tuple[SplitGap, ...]:
    """The gap between iid and ood of each system on each measure; the first system is what others are compared with.

    Queries of a split are drawn with replacement, the same for all systems (paired), those of the two splits apart.

    >>> import numpy as np
    >>> def alike(value, queries): return SeedScores(np.full((1, 18), value), np.full((queries, 18), value))
    >>> base, ours = gaps(["base", "ours"], [alike(.5, 9)] * 2, [alike(.1, 7), alike(.3, 7)])[::6]
    >>> round(base.relative, 2), base.closed, round(ours.closed.value, 2), round(ours.ood_gain.low, 2)
    (0.8, None, 0.2, 0.2)
    """
    drawn_iid, drawn_ood = (
        bootstrap_means(np.concatenate([s.gap_values() for s in side], axis=1), seed=seed + i)
        for i, side in enumerate((iid, ood))
    )
    drawn = drawn_iid - drawn_ood
    found = []
    for i, name in enumerate(names):
        for j, measure in enumerate(GAP_MEASURES):
            at = RECALL_MEASURES.index(measure)
            one, two = iid[i].means[:, at], ood[i].means[:, at]
            means = spread(one), spread(two), spread(one - two)
            column = i * len(GAP_MEASURES) + j
            first = (spread(iid[0].means[:, at]), spread(ood[0].means[:, at]))
            gap = means[0].mean - means[1].mean
            found.append(
                SplitGap(
                    name,
                    measure,
                    *means,
                    interval=_change(gap, drawn[:, column]),
                    relative=gap / means[0].mean if means[0].mean else float("nan"),
                    closed=_change(first[0].mean - first[1].mean - gap, drawn[:, j] - drawn[:, column]) if i else None,
                    iid_gain=_change(means[0].mean - first[0].mean, drawn_iid[:, column] - drawn_iid[:, j])
                    if i
                    else None,
                    ood_gain=_change(means[1].mean - first[1].mean, drawn_ood[:, column] - drawn_ood[:, j])
                    if i
                    else None,
                )
            )
    return tuple(found)


def _change(value: float, drawn: FloatArray) -> Change:
    low, high = percentiles(drawn[:, None], CONFIDENCE_LEVEL)
    return Change(value, float(low[0]), float(high[0]))
