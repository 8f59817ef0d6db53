"""Does a run predict where moments usually are, rather than where this one is (debiased grounding §3.2.2, §5.5)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, offsets_of
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.reports import count, decimals, percentage, text_table
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures import Alignment
from momentseek.measuring.resampling import CHANCE_RESAMPLES
from momentseek.measuring.result import Missing


@dataclass(frozen=True)
class Side:
    """A truth and the runs that answer it, with their names."""

    truth: Judgements
    runs: tuple[tuple[str, Run], ...]


def sides(runs: Sequence[tuple[str, Run]], truths: Sequence[Judgements]) -> tuple[Side, ...]:
    """Assign each run to the truth whose queries it answers; a run that answers both is assigned to both.

    >>> iid = Judgements.from_rows([("a", "v", 0, 1, 1)])
    >>> ood = Judgements.from_rows([("b", "v", 0, 1, 1)])
    >>> runs = [("x", Run.from_rows([("b", "v", 0, 1, 1)])), ("y", Run.from_rows([("a", "v", 0, 1, 1)]))]
    >>> [[name for name, _ in side.runs] for side in sides(runs, [iid, ood])]
    [['y'], ['x']]
    """
    if len(truths) == 1:
        return (Side(truths[0], tuple(runs)),)
    shared = set(truths[0].query_ids) & set(truths[1].query_ids) if len(truths) == 2 else set()
    if len(truths) > 2:
        raise MomentseekError(
            "give one truth, or two: the one like the training data (iid) first, the other (ood) second"
        )
    if shared:
        raise MomentseekError(
            f"{truths[0].source} and {truths[1].source} share query {min(shared)}{' and others' * (len(shared) > 1)}, "
            "so it is not clear which of them a run answers"
        )
    given: list[list[tuple[str, Run]]] = [[], []]
    for name, run in runs:
        answers = [i for i, t in enumerate(truths) if any(q in t for q in run.query_ids)]
        if not answers:
            raise MomentseekError(f"{run.source}: answers no query of {truths[0].source} or {truths[1].source}")
        for i in answers:
            given[i].append((name, run if len(answers) == 1 else _only(run, truths[i])))
    if not given[0] or len(given[0]) != len(given[1]):
        raise MomentseekError(
            f"{_answer(len(given[0]))} {truths[0].source} and {_answer(len(given[1]))} {truths[1].source}; "
            "give every system's run for both, in the same order"
        )
    return tuple(Side(t, tuple(r)) for t, r in zip(truths, given, strict=True))


def _answer(runs: int) -> str:
    return "1 run answers" if runs == 1 else f"{runs} runs answer"


def _only(run: Run, truth: Judgements) -> Run:
    """Return the part of the run that answers the truth's queries."""
    kept = np.array([q in truth for q in run.query_ids], dtype=bool)
    rows = kept[run.row_query]
    return replace(
        run,
        query_ids=tuple(compress(run.query_ids, kept)),
        offsets=offsets_of(run.counts[kept].tolist()),
        queries=None if run.queries is None else tuple(compress(run.queries, kept)),
        saliency=None,
        findings=(),
        **{name: getattr(run, name)[rows] for name in ("video", "start", "end", "score")},
    )


GRID_BINS = 20
POSSIBLE_CELLS = GRID_BINS * (GRID_BINS + 1) // 2
"""Number of cells that can hold a moment, which never ends before it starts."""
CURVE_THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 10))
SPLIT_MEASURES = ("R@1[IoU>={0.3,0.5,0.7}]", "dR@1[IoU>={0.3,0.5,0.7}]", "mIoU")


@dataclass(frozen=True, eq=False)
class Density:
    """Counts on a 20 × 20 grid of start (rows) and end (columns), as fractions of the video's length."""

    counts: FloatArray

    @property
    def moments(self) -> int:
        """Number of moments that were counted."""
        return int(self.counts.sum())

    @property
    def effective_cells(self) -> float:
        """The number of equally full cells with the same entropy, 1 to 210: 2 to the power of the entropy."""
        share = self.counts[self.counts > 0] / max(1.0, float(self.counts.sum()))
        return float(2 ** -(share * np.log2(share)).sum()) if len(share) else float("nan")

    @property
    def fullest(self) -> float:
        """The share of moments in the fullest cell."""
        return float(self.counts.max() / self.counts.sum()) if self.counts.sum() else float("nan")


def density(start: ArrayLike, end: ArrayLike) -> Density:
    """Count moments by start and end, as fractions of the video clipped to [0, 1].

    >>> grid = density([0.0, 0.0, 0.5], [1.0, 1.0, 0.99])
    >>> int(grid.counts[0, 19]), round(grid.fullest, 2), round(grid.effective_cells, 2)
    (2, 0.67, 1.89)
    """
    rows, columns = (np.clip(np.asarray(x, dtype=np.float64), 0, 1) for x in (start, end))
    counts, _, _ = np.histogram2d(rows, columns, bins=GRID_BINS, range=[[0, 1], [0, 1]])
    return Density(counts)


def divergence(one: Density, two: Density) -> float:
    r"""Return the Jensen–Shannon divergence, base 2: 0 for equal densities, 1 for two that share no cell.

    .. math:: JS = H\left(\frac{p + q}{2}\right) - \frac{H(p) + H(q)}{2}

    >>> whole, beginning = density([0.0], [1.0]), density([0.0], [0.1])
    >>> divergence(whole, whole), divergence(whole, beginning)
    (0.0, 1.0)
    """
    if not one.moments or not two.moments:
        return float("nan")
    p, q = (d.counts / d.counts.sum() for d in (one, two))
    return min(1.0, max(0.0, _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2))


def divergence_by_chance(truth: Density, moments: int, seed: int = 0) -> float:
    """Return the mean divergence from ``truth`` of random samples of it: the value for perfect predictions."""
    if not truth.moments or not moments:
        return float("nan")
    rng = np.random.default_rng(seed)
    share = (truth.counts / truth.counts.sum()).ravel()
    drawn = rng.multinomial(moments, share, CHANCE_RESAMPLES).reshape(CHANCE_RESAMPLES, GRID_BINS, GRID_BINS)
    return float(np.mean([divergence(truth, Density(counts.astype(np.float64))) for counts in drawn]))


def _entropy(p: FloatArray) -> float:
    positive = p[p > 0]
    return float(-(positive * np.log2(positive)).sum())


@dataclass(frozen=True)
class RecallCurve:
    """R@1 and dR@1 of a run by IoU threshold (Fig. 12)."""

    recall: tuple[float, ...]
    discounted: tuple[float, ...]
    thresholds: tuple[float, ...] = CURVE_THRESHOLDS


@dataclass(frozen=True)
class RunLocation:
    """One run: its curve, the locations of its first predictions, and their divergence from the true locations.

    ``divergence`` is 0 to 1; ``by_chance`` is the divergence of as many moments drawn from the truth's own density.
    """

    run: str
    curve: RecallCurve
    predicted: Density
    divergence: float
    by_chance: float
    left_out: int
    """Number of first predictions without length, or in videos of unknown length."""


@dataclass(frozen=True)
class SideLocation:
    """The locations of a truth's moments, and of its runs' predictions."""

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
        """Measure → iid − ood: what the system loses if locations are unusual."""
        return {name: self.iid[name] - self.ood[name] for name in self.iid}


@dataclass(frozen=True)
class LocationReport:
    """The locations of one truth, or of two with the gaps between them."""

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
    """Compare R and dR by threshold and location densities, and with two sides the gap between them.

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
                evaluate(r, s.truth, measures or SPLIT_MEASURES, protocol=protocol, missing=missing).means
                for r, s in ((iid, given[0]), (ood, given[1]))
            )
            gaps.append(SystemGap(name if name == other else f"{name} / {other}", one, two))
    return LocationReport(found, tuple(gaps))


def _of_side(side: Side, protocol: str, missing: Missing, seed: int) -> SideLocation:
    truth = side.truth
    relevant = truth.relevance > 0
    seconds = truth.durations[truth.video]
    if np.isnan(seconds[relevant]).any():
        raise MomentseekError(
            f"{truth.source}: location bias needs the duration of every video ({parameter('videos')})"
        )
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
    """Return R@1 and dR@1 of a run at the IoU thresholds 0.1, 0.2, …, 0.9."""
    names = [f"{kind}@1[IoU>={t}]" for kind in ("R", "dR") for t in CURVE_THRESHOLDS]
    means = evaluate(run, truth, names, protocol=protocol, missing=missing).means
    values = [means[name] for name in names]
    return RecallCurve(tuple(values[: len(CURVE_THRESHOLDS)]), tuple(values[len(CURVE_THRESHOLDS) :]))


def predicted_density(run: Run, truth: Judgements) -> tuple[Density, int]:
    """Return the locations of the run's first predictions, and how many of them cannot be located."""
    view = Alignment(run, truth)
    first = view.rank == 0
    seconds = np.where(view.video >= 0, truth.durations[view.video], np.nan)
    known = first & ~np.isnan(seconds) & (view.start < view.end)
    placed = density(view.start[known] / seconds[known], view.end[known] / seconds[known])
    return placed, int(first.sum() - known.sum())


def location_text(report: LocationReport) -> str:
    """Render R and dR by threshold, then densities, then the gap between two truths."""
    blocks = ["LOCATION BIAS: does the run find this moment, or the location where moments usually are?"]
    for side in report.sides:
        curves = [
            [run.run, kind, *(percentage(v, unit="") for v in values)]
            for run in side.runs
            for kind, values in (("R@1", run.curve.recall), ("dR@1", run.curve.discounted))
        ]
        header = ["run", "%", *(f"{t:g}" for t in side.runs[0].curve.thresholds)]
        places = [["true moments", "", "", decimals(side.true.effective_cells, 0), percentage(side.true.fullest)]]
        for run in side.runs:
            spread = decimals(run.predicted.effective_cells, 0), percentage(run.predicted.fullest)
            places.append([run.run, decimals(run.divergence, 3), decimals(run.by_chance, 3), *spread])
        blocks += [
            f"{Path(side.truth).name}: {count(side.queries, 'query', 'queries')}, by IoU threshold\n"
            + text_table(header, curves, align="llr"),
            "dR discounts a hit by how far its boundaries are off. A large gap at low thresholds means hits that are\n"
            "long or lucky rather than accurate.",
            text_table(["", "JS divergence", "by chance", "cells", "fullest"], places),
            "JS divergence: how far the locations (start, end) of first predictions are from those of true moments,\n"
            "0 to 1; by chance: the value for perfect predictions; cells: over how many of "
            f"{POSSIBLE_CELLS} locations\nthey spread; fullest: the share in the most common one.",
        ]
        unplaced = {r.run: r.left_out for r in side.runs if r.left_out}
        blocks += [
            f"Note: {n:,} first prediction{'s' * (n != 1)} of {run} cannot be located in a video."
            for run, n in unplaced.items()
        ]
    if report.gaps:
        rows = [
            [gap.system, name, decimals(gap.iid[name]), decimals(gap.ood[name]), f"{difference:+.4f}"]
            for gap in report.gaps
            for name, difference in gap.difference.items()
        ]
        blocks += [
            text_table(["run", "measure", "iid", "ood", "gap"], rows, align="llr"),
            "iid: the first truth; ood: the second. What a run loses at unusual locations, it owed to the usual ones.",
        ]
    return "\n\n".join(blocks)
