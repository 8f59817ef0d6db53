"""Which measures break the axioms of moment retrieval, shown by examples (AxIoU supplement A)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from momentseek.evaluation.diagnose.axiom_cases import Case, Trials, cases_from_run, random_cases
from momentseek.evaluation.diagnose.axiom_shrinking import shrink
from momentseek.measures import Measure, parse_all
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import BoolArray, FloatArray

Axiom = Literal["INV-k", "MON-k"]
AXIOMS: dict[Axiom, str] = {
    "INV-k": "a moment that is no better than one above it may change without changing the measure",
    "MON-k": "a moment that becomes the best so far must raise the measure",
}
AXIOM_MEASURES = (
    "R@{1,5,10}[IoU>={0.3,0.5,0.7}]",
    "AP@10[IoU>0.5]",
    "DCG@10",
    "AxIoU@{1,5,10}",
    "NDCG@10[IoU>=0.5]",
    "mIoU",
    "mAP",
)
WITH_DURATIONS = ("dR@1[IoU>=0.5]",)
OTHER_KINDS = ("HIT", "SaliencyAP", "Judged")
"""Measures that do not score moments by their overlap, of which the axioms do not speak."""
MAX_VALUE_ROUNDING = 1e-9
LIST_DEPTH = 10
DEFAULT_TRIALS = 3000


@dataclass(frozen=True)
class CounterExample:
    """A list that breaks an axiom, made as small as it goes; ``case.origin`` says where the first one was found."""

    case: Case
    r_before: float
    r_after: float
    best_above: float
    before: float
    after: float


@dataclass(frozen=True)
class AxiomVerdict:
    """How often an axiom was put to the test and broken. No counter-example in ``tried`` trials is no proof."""

    axiom: Axiom
    tried: int
    broken: int
    example: CounterExample | None = None
    note: str = ""


@dataclass(frozen=True)
class MeasureVerdicts:
    """Both axioms for one measure that looks at the first ``cutoff`` ranks."""

    measure: str
    cutoff: int
    verdicts: tuple[AxiomVerdict, AxiomVerdict]


@dataclass(frozen=True)
class AxiomReport:
    """All measures; how many lists came from the runs and how many from chance; what was left out and why."""

    measures: tuple[MeasureVerdicts, ...]
    from_runs: int
    at_random: int
    seed: int
    skipped: tuple[str, ...] = ()


def check_axioms(
    runs: Iterable[tuple[Run, Judgements]],
    measures: Sequence[Measure] | None = None,
    *,
    trials: int = DEFAULT_TRIALS,
    seed: int = 0,
) -> AxiomReport:
    """Search for counter-examples on lists of the runs (each with its truth) and on random lists.

    >>> report = check_axioms([], parse_all(["AxIoU@5", "R@1[IoU>=0.5]", "DCG@5"]), trials=500)
    >>> {m.measure: [v.axiom for v in m.verdicts if v.broken] for m in report.measures}
    {'AxIoU@5': [], 'R@1[IoU>=0.5]': ['MON-k'], 'DCG@5': ['INV-k']}
    """
    pairs = list(runs)
    known = all(not np.isnan(t.durations[t.video]).any() for _, t in pairs)
    if measures is None:
        measures = parse_all([*AXIOM_MEASURES, *(WITH_DURATIONS if known else ())])
    skipped = [f"{m.name}: it does not score moments by their overlap" for m in measures if m.NAME in OTHER_KINDS]
    chosen = [m for m in measures if m.NAME not in OTHER_KINDS]
    depth = max([LIST_DEPTH, *(_cutoff(m) for m in chosen if _cutoff(m) <= 2 * LIST_DEPTH)])
    rng = np.random.default_rng(seed)
    real = [c for run, truth in pairs for c in cases_from_run(run, truth, trials // len(pairs), depth, rng)]
    several = max((int(np.bincount(t.row_query[t.relevance > 0]).max(initial=1)) for _, t in pairs), default=1)
    random = random_cases(trials, depth, min(several, 3), rng)
    batches = [Trials(cases) for cases in (real, random) if cases]
    findings: dict[Axiom, list[_AxiomCount]] = {axiom: [] for axiom in AXIOMS}
    for measure in chosen:
        usable = batches[-1:] if measure.NAME == "dR" and not known else batches
        values = [batch.values(measure) for batch in usable]
        for axiom in AXIOMS:
            findings[axiom].append(_judge(axiom, measure, usable, values))
    verdicts = [_with_examples(axiom, findings[axiom]) for axiom in AXIOMS]
    found = [
        MeasureVerdicts(m.name, _cutoff(m), both) for m, both in zip(chosen, zip(*verdicts, strict=True), strict=True)
    ]
    return AxiomReport(tuple(found), len(real), len(random), seed, tuple(skipped))


@dataclass(frozen=True)
class _AxiomCount:
    measure: Measure
    tried: int
    broken: int
    first: Case | None


def _judge(
    axiom: Axiom, measure: Measure, batches: Sequence[Trials], values: Sequence[tuple[FloatArray, FloatArray]]
) -> _AxiomCount:
    tried = broken = 0
    first: Case | None = None
    for trials, (before, after) in zip(batches, values, strict=True):
        asked = _meets_condition(axiom, trials, measure) & ~np.isnan(before) & ~np.isnan(after)
        wrong = asked & _differs(axiom, after - before)
        tried, broken = tried + int(asked.sum()), broken + int(wrong.sum())
        if first is None and wrong.any():
            first = min((trials.cases[i] for i in np.flatnonzero(wrong).tolist()), key=lambda c: len(c.ranked))
    return _AxiomCount(measure, tried, broken, first)


def _with_examples(axiom: Axiom, findings: Sequence[_AxiomCount]) -> list[AxiomVerdict]:
    """Each finding with a small counter-example; measures share one where one serves several."""
    small: list[Case] = []
    for f in findings:
        if f.first and not (small and breaks(axiom, f.measure, small).any()):
            small.append(shrink(f.first, lambda cases, m=f.measure: breaks(axiom, m, cases)))  # type: ignore[misc]
    serves = [breaks(axiom, f.measure, small) if small else np.zeros(0, dtype=bool) for f in findings]
    most_first = np.argsort(-np.sum(serves, axis=0), kind="stable").tolist()
    verdicts = []
    for f, good in zip(findings, serves, strict=True):
        note = ""
        if axiom == "INV-k" and _cutoff(f.measure) == 1 and not f.broken:
            note = "holds trivially: only rank 1 counts, and INV-k speaks of the ranks below it"
        elif not f.tried:
            note = "no list met the axiom's condition"
        chosen = next(small[i] for i in most_first if good[i]) if f.first else None
        example = _example(f.measure, replace(chosen, origin=f.first.origin)) if chosen and f.first else None
        verdicts.append(AxiomVerdict(axiom, f.tried, f.broken, example, note))
    return verdicts


def breaks(axiom: Axiom, measure: Measure, cases: Sequence[Case]) -> BoolArray:
    """Per case: does it meet the axiom's condition and break what the axiom asks of the measure?"""
    trials = Trials(cases)
    before, after = trials.values(measure)
    return _meets_condition(axiom, trials, measure) & _differs(axiom, after - before)


def _meets_condition(axiom: Axiom, trials: Trials, measure: Measure) -> BoolArray:
    # A change below the cut-off cannot be seen: MON-k is not asked for there, and INV-k holds trivially.
    cutoff = _cutoff(measure)
    if axiom == "INV-k":
        return trials.invariant & (trials.rank <= cutoff) if cutoff > 1 else trials.invariant
    return trials.monotone & (trials.rank <= cutoff)


def _differs(axiom: Axiom, change: FloatArray) -> BoolArray:
    result: BoolArray = np.abs(change) > MAX_VALUE_ROUNDING if axiom == "INV-k" else change <= MAX_VALUE_ROUNDING
    return result


def _cutoff(measure: Measure) -> int:
    k = int(getattr(measure, "k", 1))
    return min(k, getattr(measure, "depth", None) or k)


def _example(measure: Measure, case: Case) -> CounterExample:
    trials = Trials([case])
    before, after = trials.values(measure)
    return CounterExample(
        case,
        r_before=float(trials.r_before[0]),
        r_after=float(trials.r_after[0]),
        best_above=float(trials.best_above[0]),
        before=float(before[0]),
        after=float(after[0]),
    )
