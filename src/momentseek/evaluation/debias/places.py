"""Where each system predicts: near the training moments, or near the moments that are there?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.evaluation.debias.densities import density, distance, first_places, lean
from momentseek.evaluation.spread import SeedSpread, spread
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import BoolArray, FloatArray


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
