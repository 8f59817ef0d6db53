"""Find measures that break the axioms of moment retrieval, with counter-examples (AxIoU supplement A)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run
from momentseek.core.reports import text_table
from momentseek.measuring.diagnose.axiom_cases import Case, ListedMoment, Trials, cases_from_run, random_cases, shrink
from momentseek.measuring.measures import Measure, parse_all

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
"""Measures that do not score moments by their overlap; the axioms do not apply to them."""
MAX_VALUE_ROUNDING = 1e-9
LIST_DEPTH = 10
DEFAULT_TRIALS = 3000


@dataclass(frozen=True)
class CounterExample:
    """A minimal list that breaks an axiom; ``case.origin`` says where the original list was found."""

    case: Case
    r_before: float
    r_after: float
    best_above: float
    before: float
    after: float


@dataclass(frozen=True)
class AxiomVerdict:
    """How often an axiom was tested and broken; finding no counter-example proves nothing."""

    axiom: Axiom
    tried: int
    broken: int
    example: CounterExample | None = None
    note: str = ""


@dataclass(frozen=True)
class MeasureVerdicts:
    """The verdicts on both axioms for one measure, which uses the first ``cutoff`` ranks."""

    measure: str
    cutoff: int
    verdicts: tuple[AxiomVerdict, AxiomVerdict]


@dataclass(frozen=True)
class AxiomReport:
    """All measures, the numbers of lists from runs and of random lists, and what was left out and why."""

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
    """Add a small counter-example to each finding; measures share one if it works for several."""
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
            note = "holds trivially: only rank 1 counts, and INV-k is about the ranks below it"
        elif not f.tried:
            note = "no list met the axiom's condition"
        chosen = next(small[i] for i in most_first if good[i]) if f.first else None
        example = _counter_example(f.measure, replace(chosen, origin=f.first.origin)) if chosen and f.first else None
        verdicts.append(AxiomVerdict(axiom, f.tried, f.broken, example, note))
    return verdicts


def breaks(axiom: Axiom, measure: Measure, cases: Sequence[Case]) -> BoolArray:
    """Whether each case meets the axiom's condition and the measure breaks what the axiom requires."""
    trials = Trials(cases)
    before, after = trials.values(measure)
    return _meets_condition(axiom, trials, measure) & _differs(axiom, after - before)


def _meets_condition(axiom: Axiom, trials: Trials, measure: Measure) -> BoolArray:
    # A change below the cut-off has no effect: MON-k is not required there, and INV-k holds trivially.
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


def _counter_example(measure: Measure, case: Case) -> CounterExample:
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


def axiom_text(report: AxiomReport) -> str:
    """Render a table of verdicts, what they mean, and the smallest counter-examples."""
    rows = [[m.measure, f"1–{m.cutoff}" if m.cutoff > 1 else "1", *map(_verdict, m.verdicts)] for m in report.measures]
    blocks = [
        "AXIOMS: does the measure change when it should, and only then?",
        "\n".join(f"{axiom}  {meaning}." for axiom, meaning in AXIOMS.items()),
        text_table(["measure", "ranks", *AXIOMS], rows, align="lrll"),
        f"Each axiom was tested on {report.from_runs:,} lists of the runs with one moment improved and on "
        f"{report.at_random:,} random lists (seed {report.seed}).\n"
        "One counter-example proves an axiom broken; finding none proves nothing. Changes below the last rank that a\n"
        "measure uses have no effect, so MON-k is not required there.",
        *(_example(axiom, found) for (axiom, _), found in _group_examples(report).items()),
        *(f"Left out: {text}." for text in report.skipped),
    ]
    return "\n\n".join(blocks)


def _verdict(verdict: AxiomVerdict) -> str:
    if verdict.broken:
        return f"BROKEN in {verdict.broken:,} of {verdict.tried:,}"
    if verdict.note.startswith("holds trivially"):
        return "holds trivially (one rank)"
    return f"no counter-example in {verdict.tried:,}" if verdict.tried else f"not tested: {verdict.note}"


def _group_examples(report: AxiomReport) -> dict[tuple[str, str], list[tuple[str, CounterExample]]]:
    """Group the measures that share a counter-example."""
    groups: dict[tuple[str, str], list[tuple[str, CounterExample]]] = {}
    for measure in report.measures:
        for verdict in measure.verdicts:
            if verdict.example:
                case = verdict.example.case
                key = (verdict.axiom, repr((case.truth, case.ranked, case.rank, case.changed)))
                groups.setdefault(key, []).append((measure.measure, verdict.example))
    return groups


def _example(axiom: str, found: list[tuple[str, CounterExample]]) -> str:
    example = found[0][1]
    case = example.case
    lines = [f"How {axiom} is broken (the smallest list found):"]
    several = len({s.video for s in case.spans()}) > 1
    true = ", ".join(_span(t, several) for t in case.truth)
    lines.append(f"  true moment{'s' * (len(case.truth) > 1)}: {true}")
    for title, spans in (("before", case.ranked), ("after", case.after)):
        lines.append(f"  {title}:")
        for rank, span in enumerate(spans, 1):
            mark = "  ← changed" if title == "after" and rank == case.rank else ""
            lines.append(f"    {rank}. {_span(span, several)}  IoU {_best(span, case):.2f}{mark}")
    values = [[name, f"{e.before:.4g}", f"{e.after:.4g}"] for name, e in found]
    lines += ["  " + line for line in text_table(["measure", "before", "after"], values).splitlines()]
    where = f"rank {case.rank} rises from IoU {example.r_before:.2f} to {example.r_after:.2f}"
    if axiom == "INV-k":
        lines.append(
            f"  The moment at {where}, no better than the best above it ({example.best_above:.2f}), but counts."
        )
        if len(case.truth) > 1:
            lines.append("  It answers another of the true moments: INV-k assumes that one good answer is enough.")
    else:
        lines.append(f"  The moment at {where} and is now the best so far, yet the value does not rise.")
    lines.append(f"  First found in: {case.origin}.")
    return "\n".join(lines)


def _best(span: ListedMoment, case: Case) -> float:
    same = [t for t in case.truth if t.video == span.video and t.relevance > 0]
    return max((float(iou(span.start, span.end, t.start, t.end)) for t in same), default=0.0)


def _span(span: ListedMoment, several: bool) -> str:
    return f"{span.start:g}–{span.end:g} s" + (f" of {span.video}" if several else "")
