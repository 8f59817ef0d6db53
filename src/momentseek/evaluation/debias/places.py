"""Where moments and first predictions lie, as smooth densities over (start, end), and how far apart two of them are.

Models answer in whole clips, so counts in bins would differ by where the bins' edges fall; kernels as wide as a clip of
sixteen do not care.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.evaluation.bootstrap import CHANCE_RESAMPLES
from momentseek.evaluation.spread import SeedSpread, spread
from momentseek.measures import Alignment
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.moments.density import kernel_sums

GRID_CELLS = 40
KERNEL_BANDWIDTH = 0.05


@dataclass(frozen=True, eq=False)
class FirstPredictions:
    """Each query's first prediction that has a place: the query's index, and (start, end) as shares of the video."""

    query: IntArray
    places: FloatArray


def first_places(run: Run, truth: Judgements) -> FirstPredictions:
    """Where first predictions lie; those without length, or in a video of unknown length, are left out.

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
    """(GRID, GRID) over start (rows) and end, sum 1, nothing where a moment would end before it starts.

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
    r"""Total variation: 0 for the same density, 1 for two that share no place.

    .. math:: TV(p, q) = \frac{1}{2} \sum_i |p_i - q_i|

    >>> early, late = density(np.array([[0.0, 0.1]])), density(np.array([[0.8, 1.0]]))
    >>> distance(early, early), round(distance(early, late), 3)
    (0.0, 1.0)
    """
    return float(np.abs(one - two).sum() / 2)


def distance_by_chance(places: FloatArray, seed: int = 0) -> float:
    """The mean distance from these moments of as many drawn from them: what no system needs to be ashamed of."""
    rng = np.random.default_rng(seed)
    whole = density(places)
    drawn = (density(places[rng.integers(len(places), size=len(places))]) for _ in range(CHANCE_RESAMPLES))
    return float(np.mean([distance(whole, each) for each in drawn]))


def lean(predicted: FloatArray, train: FloatArray, ood: FloatArray) -> float:
    r"""The share of ``predicted`` at places that are commoner in train than in ood.

    .. math:: L(p) = \sum_{i:\, train_i > ood_i} p_i, \qquad L(train) - L(ood) = TV(train, ood)

    So training moments themselves lean most, and ood's least: a system that learnt places leans as train does. The
    distances alone do not tell, as predictions that keep to a few places are far from everything.

    >>> train, ood = density(np.array([[0.0, 0.3], [0.1, 0.5]])), density(np.array([[0.6, 0.9]]))
    >>> stubborn = density(np.array([[0.0, 0.3]]))
    >>> round(lean(stubborn, train, ood), 2), round(lean(ood, train, ood), 2)
    (1.0, 0.0)
    """
    return float(predicted[train > ood].sum())


@dataclass(frozen=True, eq=False)
class Placing:
    """A system's first predictions on a split: their density, and its distances, mean and sd over seeds."""

    system: str
    split: str
    density: FloatArray
    to_train: SeedSpread
    to_truth: SeedSpread
    lean: SeedSpread
    """The share at places that are commoner in train than in ood (``densities.lean``)."""


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
    """The placing of a system with these runs; of ``some`` queries only, if told; None without any prediction.

    ``train``, ``true`` (of this split) and ``ood`` are the densities to hold it against.
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
