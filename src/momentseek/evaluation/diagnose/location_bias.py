"""Does a run know where moments usually lie, rather than where this one is (debiased grounding §3.2.2, §5.5)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.evaluation.diagnose.location_density import Density, density, divergence, divergence_by_chance
from momentseek.evaluation.diagnose.sides import Side
from momentseek.evaluation.evaluate import Missing, evaluate
from momentseek.measures import Alignment
from momentseek.moments import Judgements, Run

THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 10))
GAP_MEASURES = ("R@1[IoU>={0.3,0.5,0.7}]", "dR@1[IoU>={0.3,0.5,0.7}]", "mIoU")


@dataclass(frozen=True)
class RecallCurve:
    """R@1 and dR@1 of a run by IoU threshold (Fig. 12)."""

    recall: tuple[float, ...]
    discounted: tuple[float, ...]
    thresholds: tuple[float, ...] = THRESHOLDS


@dataclass(frozen=True)
class RunLocation:
    """One run: its curve, where its first predictions lie, and how far that is from where the true moments lie.

    ``divergence`` is 0 to 1; ``by_chance`` is what as many moments drawn from the truth's own density would have.
    """

    run: str
    curve: RecallCurve
    predicted: Density
    divergence: float
    by_chance: float
    left_out: int
    """First predictions without length, or in videos of unknown length."""


@dataclass(frozen=True)
class SideLocation:
    """A truth and its runs."""

    truth: str
    queries: int
    true: Density
    runs: tuple[RunLocation, ...]


@dataclass(frozen=True)
class SystemGap:
    """A system's figures on the first truth (iid), the second (ood), and the difference."""

    system: str
    iid: Mapping[str, float]
    ood: Mapping[str, float]

    @property
    def difference(self) -> dict[str, float]:
        """Measure → iid − ood: what the system loses where locations are unusual."""
        return {name: self.iid[name] - self.ood[name] for name in self.iid}


@dataclass(frozen=True)
class LocationReport:
    """One side, or two and the gaps between them."""

    sides: tuple[SideLocation, ...]
    gaps: tuple[SystemGap, ...] = ()


def location_bias(
    given: Sequence[Side],
    measures: Sequence[str] = (),
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    seed: int = 0,
) -> LocationReport:
    """R against dR by threshold, location densities, and with two sides the gap between them.

    >>> truth = Judgements.from_groups(["q"], [1], ["v"], [0], [50], durations={"v": 100})
    >>> run = Run.from_rows([("q", "v", 0, 80, 1)])
    >>> found = location_bias([Side(truth, (("ours", run),))]).sides[0].runs[0]
    >>> found.curve.recall[4], round(found.curve.discounted[4], 2), found.divergence
    (1.0, 0.7, 1.0)
    """
    found = tuple(_of_side(side, protocol, missing, seed) for side in given)
    gaps = []
    if len(given) == 2:
        for (name, iid), (other, ood) in zip(given[0].runs, given[1].runs, strict=True):
            one, two = (
                evaluate(r, s.truth, measures or GAP_MEASURES, protocol=protocol, missing=missing).means
                for r, s in ((iid, given[0]), (ood, given[1]))
            )
            gaps.append(SystemGap(name if name == other else f"{name} / {other}", one, two))
    return LocationReport(found, tuple(gaps))


def _of_side(side: Side, protocol: str, missing: Missing, seed: int) -> SideLocation:
    truth = side.truth
    relevant = truth.relevance > 0
    seconds = truth.durations[truth.video]
    if np.isnan(seconds[relevant]).any():
        raise MomentseekError(f"{truth.source}: location bias needs the duration of every video (`videos`)")
    true = density((truth.start / seconds)[relevant], (truth.end / seconds)[relevant])
    found = []
    for name, run in side.runs:
        predicted, left_out = predicted_density(run, truth)
        found.append(
            RunLocation(
                name,
                recall_curve(run, truth, protocol, missing),
                predicted,
                divergence(true, predicted),
                divergence_by_chance(true, predicted.moments, seed),
                left_out,
            )
        )
    return SideLocation(truth.source, len(truth), true, tuple(found))


def recall_curve(run: Run, truth: Judgements, protocol: str = "paper", missing: Missing = "error") -> RecallCurve:
    """R@1 and dR@1 at 0.1, 0.2, …, 0.9."""
    names = [f"{kind}@1[IoU>={t}]" for kind in ("R", "dR") for t in THRESHOLDS]
    means = evaluate(run, truth, names, protocol=protocol, missing=missing).means
    values = [means[name] for name in names]
    return RecallCurve(tuple(values[: len(THRESHOLDS)]), tuple(values[len(THRESHOLDS) :]))


def predicted_density(run: Run, truth: Judgements) -> tuple[Density, int]:
    """Where the run's first predictions lie, and how many cannot be placed."""
    view = Alignment(run, truth)
    first = view.rank == 0
    seconds = np.where(view.video >= 0, truth.durations[view.video], np.nan)
    known = first & ~np.isnan(seconds) & (view.start < view.end)
    placed = density(view.start[known] / seconds[known], view.end[known] / seconds[known])
    return placed, int(first.sum() - known.sum())
