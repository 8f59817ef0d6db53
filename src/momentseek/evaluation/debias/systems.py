"""The systems to compare, the blind baselines among them, and what every seed of a system scores on a split."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.baselines import BASELINES, BaselineSettings
from momentseek.evaluation.evaluate import evaluate
from momentseek.evaluation.result import Missing
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import FloatArray

IOU_THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 10))
RECALL_KINDS = ("dR", "R")
RECALL_MEASURES = tuple(f"{kind}@1[IoU>={t}]" for kind in RECALL_KINDS for t in IOU_THRESHOLDS)
GAP_MEASURES = tuple(f"{kind}@1[IoU>={t}]" for kind in RECALL_KINDS for t in (0.3, 0.5, 0.7))
"""Measures whose gap between iid and ood is reported."""


BLIND_BASELINES = ("bias-based", "moment-frequency", "predict-all", "chance")
RANDOM_BASELINES = ("bias-based", "chance")


@dataclass(frozen=True, eq=False)
class System:
    """A name, and per seed its runs on iid and ood; None where there is none. ``blind``: it never saw a video."""

    name: str
    runs: tuple[tuple[Run | None, Run | None], ...]
    blind: bool = False


@dataclass(frozen=True, eq=False)
class SeedScores:
    """Means ``(seeds, MEASURES)``, NaN for a seed without a run, and values per query, averaged over seeds."""

    means: FloatArray
    values: FloatArray

    def gap_values(self) -> FloatArray:
        """Values per query of the measures whose gap is reported."""
        return self.values[:, [RECALL_MEASURES.index(name) for name in GAP_MEASURES]]


def score_seeds(runs: Sequence[Run | None], truth: Judgements, missing: Missing = "error") -> SeedScores:
    """Score the seeds of a system on one split.

    >>> truth = Judgements.from_groups(["q"], [1], ["v"], [0], [50], durations={"v": 100})
    >>> found = score_seeds([Run.from_rows([("q", "v", 0, 80, 1)]), None], truth)
    >>> first, second = found.means
    >>> float(first[RECALL_MEASURES.index("dR@1[IoU>=0.5]")].round(2)), bool(np.isnan(second).all())
    (0.7, True)
    """
    means = np.full((len(runs), len(RECALL_MEASURES)), np.nan)
    values = np.full((len(runs), len(truth), len(RECALL_MEASURES)), np.nan)
    for i, run in enumerate(runs):
        if run is not None:
            found = evaluate(run, truth, RECALL_MEASURES, missing=missing)
            means[i] = [found.means[name] for name in RECALL_MEASURES]
            values[i] = found.values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a split that no seed answered has no mean
        return SeedScores(means, np.nanmean(values, axis=0))


def blind_systems(iid: Judgements, ood: Judgements, train: Judgements | None, seeds: int = 5) -> list[System]:
    """All of them, the random ones with several seeds; those that learn are left out where there is no training set.

    >>> at = dict(durations={"a": 10.0})
    >>> truth = Judgements.from_groups(["q"], [1], ["a"], [2], [5], **at)
    >>> [(s.name, len(s.runs)) for s in blind_systems(truth, truth, None, seeds=3)]
    [('predict-all', 1), ('chance', 3)]
    """
    found = []
    for name in BLIND_BASELINES:
        baseline = BASELINES[name]
        if baseline.learns and train is None:
            continue
        settings = [BaselineSettings(seed=seed, top=1) for seed in range(seeds if name in RANDOM_BASELINES else 1)]
        runs = tuple((baseline.predict(train, iid, s), baseline.predict(train, ood, s)) for s in settings)
        found.append(System(name, runs, blind=True))
    return found
