"""The gap between iid and ood, over seeds, and how much of the first system's gap another closes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.benchmarks.debias.systems import GAP_MEASURES, RECALL_MEASURES, SeedScores
from momentseek.benchmarks.density import kernel_sums
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.measures import Alignment
from momentseek.measuring.resampling import (
    CHANCE_RESAMPLES,
    CONFIDENCE_LEVEL,
    SeedSpread,
    bootstrap_means,
    percentiles,
    spread,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A difference, and its 95 % bootstrap interval from low to high."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SplitGap:
    """A system's gap on one measure; intervals are over queries, standard deviations over seeds."""

    system: str
    measure: str
    iid: SeedSpread
    ood: SeedSpread
    gap: SeedSpread
    """The iid score minus the ood score, seed by seed."""
    interval: Change
    """The mean gap with its bootstrap interval."""
    relative: float
    """The share of the iid score that is lost: gap / iid."""
    closed: Change | None
    """The first system's gap minus this one's. A gap also closes when iid falls, so check ``ood_gain`` too."""
    iid_gain: Change | None
    ood_gain: Change | None
    """The ood score minus the first system's; None for the first system."""


def gaps(
    names: Sequence[str], iid: Sequence[SeedScores], ood: Sequence[SeedScores], seed: int = 0
) -> tuple[SplitGap, ...]:
    """Return the gap between iid and ood of each system on each measure; others are compared with the first system.

    Queries of each split are drawn with replacement, by video, and the draws are the same for all systems (paired).

    >>> import numpy as np
    >>> def alike(value, queries): return SeedScores(np.full((1, 18), value), np.full((queries, 18), value))
    >>> base, ours = gaps(["base", "ours"], [alike(.5, 9)] * 2, [alike(.1, 7), alike(.3, 7)])[::6]
    >>> round(base.relative, 2), base.closed, round(ours.closed.value, 2), round(ours.ood_gain.low, 2)
    (0.8, None, 0.2, 0.2)
    """
    drawn_iid, drawn_ood = (
        bootstrap_means(
            np.concatenate([s.gap_values() for s in side], axis=1), clusters=side[0].clusters, seed=seed + i
        )
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


GRID_CELLS = 40
KERNEL_BANDWIDTH = 0.05


@dataclass(frozen=True, eq=False)
class FirstPredictions:
    """First predictions in videos of known length: the query's index, and (start, end) as fractions of the video."""

    query: IntArray
    places: FloatArray


def first_places(run: Run, truth: Judgements) -> FirstPredictions:
    """Locate first predictions; those without length, or in a video of unknown length, are left out.

    >>> truth = Judgements.from_groups(["q"], [1], ["v"], [0], [5], durations={"v": 10.0})
    >>> first_places(Run.from_rows([("q", "v", 2, 12, .9), ("q", "v", 0, 1, .8)]), truth).places.tolist()
    [[0.2, 1.0]]
    """
    view = Alignment(run, truth, 1)
    seconds = np.where(view.video >= 0, truth.durations[view.video], np.nan)
    shares = np.clip(np.column_stack([view.start, view.end]) / seconds[:, None], 0, 1)
    known = (view.rank == 0) & (shares[:, 0] < shares[:, 1])  # NaN is never smaller
    return FirstPredictions(view.query[known], shares[known])


def density(places: FloatArray) -> FloatArray:
    """Return a density on a grid of start (rows) and end; it sums to 1, and is 0 where the end is before the start.

    >>> grid = density(np.array([[0.2125, 0.6125]]))
    >>> round(float(grid.sum()), 6), divmod(int(grid.argmax()), GRID_CELLS)
    (1.0, (8, 24))
    """
    centres = (np.arange(GRID_CELLS) + 0.5) / GRID_CELLS
    start, end = np.meshgrid(centres, centres, indexing="ij")
    values = kernel_sums(places, np.column_stack([start.ravel(), end.ravel()]), KERNEL_BANDWIDTH).reshape(
        GRID_CELLS, GRID_CELLS
    )
    values[start > end] = 0.0
    total = float(values.sum())
    return values / total if total else np.full((GRID_CELLS, GRID_CELLS), np.nan)


def distance(one: FloatArray, two: FloatArray) -> float:
    r"""Return the total variation: 0 for equal densities, 1 for two that share no location.

    .. math:: TV(p, q) = \frac{1}{2} \sum_i |p_i - q_i|

    >>> early, late = density(np.array([[0.0, 0.1]])), density(np.array([[0.8, 1.0]]))
    >>> distance(early, early), round(distance(early, late), 3)
    (0.0, 1.0)
    """
    return float(np.abs(one - two).sum() / 2)


def distance_by_chance(places: FloatArray, seed: int = 0) -> float:
    """Return the mean distance of resampled moments from these moments: the expected distance by chance."""
    rng = np.random.default_rng(seed)
    whole = density(places)
    drawn = (density(places[rng.integers(len(places), size=len(places))]) for _ in range(CHANCE_RESAMPLES))
    return float(np.mean([distance(whole, each) for each in drawn]))


def lean(predicted: FloatArray, train: FloatArray, ood: FloatArray) -> float:
    r"""Return the share of ``predicted`` at locations that are more common in train than in ood.

    .. math:: L(p) = \sum_{i:\, train_i > ood_i} p_i, \qquad L(train) - L(ood) = TV(train, ood)

    Here TV is the total variation (``distance``). L is compared with L(train) and L(ood): if a system only repeats the
    locations of its training moments, its predictions on ood have L near L(train), not near L(ood). L can also exceed
    L(train), as in the example: all predictions are at a location that is more common in train. ``distance`` alone does
    not show this, because predictions at only a few locations have a large distance from train and from ood.

    >>> train, ood = density(np.array([[0.2, 0.4], [0.6, 0.8]])), density(np.array([[0.6, 0.8]]))
    >>> repeated = density(np.array([[0.2, 0.4]]))
    >>> [round(lean(each, train, ood), 2) for each in (train, ood, repeated)]
    [0.5, 0.0, 1.0]
    """
    return float(predicted[train > ood].sum())


@dataclass(frozen=True, eq=False)
class Placing:
    """The density of a system's first predictions on a split, and its distances, mean and sd over seeds."""

    system: str
    split: str
    density: FloatArray
    to_train: SeedSpread
    to_truth: SeedSpread
    lean: SeedSpread
    """The share at locations that are more common in train than in ood (see ``lean``)."""


def placing(
    system: str,
    split: str,
    runs: Sequence[Run | None],
    truth: Judgements,
    train: FloatArray | None,
    true: FloatArray,
    ood: FloatArray,
    some: BoolArray | None = None,
) -> Placing | None:
    """Return where a system's runs predict, for ``some`` queries if given; None if there is no prediction.

    ``train``, ``true`` (of this split) and ``ood`` are the densities it is compared with.
    """
    grids = []
    for run in runs:
        if run is not None:
            firsts = first_places(run, truth)
            places = firsts.places if some is None else firsts.places[some[firsts.query]]
            if len(places):
                grids.append(density(places))
    if not grids:
        return None
    return Placing(
        system,
        split,
        np.mean(grids, axis=0),
        spread(distance(grid, train) if train is not None else math.nan for grid in grids),
        spread(distance(grid, true) for grid in grids),
        spread(lean(grid, train, ood) if train is not None else math.nan for grid in grids),
    )
