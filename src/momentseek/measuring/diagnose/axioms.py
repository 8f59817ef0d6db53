"""Which measures break the axioms of moment retrieval, shown by examples (AxIoU supplement A)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations, product
from typing import Literal

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.diagnose.axiom_cases import Case, ListedMoment, Trials, cases_from_run, random_cases
from momentseek.measuring.measures import Measure, parse_all

ROUND_SECONDS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.1)
MAX_ROUNDS = 60
Cost = tuple[float, ...]


def shrink(case: Case, still: Callable[[Sequence[Case]], BoolArray]) -> Case:
    """The simplest case reachable from ``case`` for which ``still`` holds.

    >>> first, second = ListedMoment("v", 1.23, 5.0), ListedMoment("v", 8.01, 9.99)
    >>> long = Case((ListedMoment("v", 3.1, 17.7),), (first, second), 2, ListedMoment("v", 7.5, 12.34))
    >>> small = shrink(long, lambda cases: np.array([c.changed.end > c.truth[0].start for c in cases]))
    >>> small.truth == small.ranked == (small.changed,), small.changed
    (True, ListedMoment(video='v', start=0.0, end=10.0, relevance=1))
    """
    case = _best(case, _plain, still) or case
    for _ in range(MAX_ROUNDS):
        # Shorter lists first: there is less to round in them.
        better = next(filter(None, (_best(case, change, still) for change in (_fewer, _plainer, _rounder))), None)
        if better is None:
            return case
        case = better
    return case


def _best(
    case: Case, change: Callable[[Case], Iterator[Case]], still: Callable[[Sequence[Case]], BoolArray]
) -> Case | None:
    """The simplest of the changed cases that is simpler than ``case`` and for which ``still`` holds."""
    now = cost(case)
    possible = (c for c in change(case) if all(0 <= s.start < s.end for s in (*c.truth, *c.ranked, c.changed)))
    priced = sorted(((cost(c), i, c) for i, c in enumerate(possible)), key=lambda entry: entry[:2])
    simpler = [c for price, _, c in priced if price < now]
    return next((c for c, holds in zip(simpler, still(simpler), strict=True) if holds), None) if simpler else None


def cost(case: Case) -> Cost:
    """What makes a case hard to read, the worst first."""
    spans = [*case.truth, *case.ranked, case.changed]
    times = [t for s in spans for t in (s.start, s.end)]
    return (
        len(case.ranked),
        len(case.truth),
        len({s.video for s in spans}),
        sum(abs(t.relevance - 1) for t in case.truth),
        sum(_odd(t) for t in times),
        sum(times),
        sum(_odd(d) for d in case.durations.values()),
        sum(case.durations.values()),
    )


@lru_cache(maxsize=10_000)
def _odd(seconds: float) -> int:
    """0 for whole tens, more the more digits a time takes."""
    return next((i for i, grid in enumerate(ROUND_SECONDS) if _on(seconds, grid) == seconds), len(ROUND_SECONDS))


def _on(seconds: float, grid: float) -> float:
    return round(round(seconds / grid) * grid, 6)


def _fewer(case: Case) -> Iterator[Case]:
    for i in range(len(case.ranked)):
        if i != case.rank - 1:
            kept = (*case.ranked[:i], *case.ranked[i + 1 :])
            yield replace(case, ranked=kept, rank=case.rank - (i < case.rank - 1))
    for i in range(len(case.truth) if len(case.truth) > 1 else 0):
        yield replace(case, truth=(*case.truth[:i], *case.truth[i + 1 :]))


def _plain(case: Case) -> Iterator[Case]:
    """Lists of one and two moments around a true one at 0–10 s, laid on a grid of 5 s in all ways."""
    true = case.truth[0]._replace(start=0.0, end=10.0, relevance=1)
    seconds = {true.video: 20.0} if case.durations else {}
    pairs = [ListedMoment(true.video, start, end) for start, end in combinations((0.0, 5.0, 10.0, 15.0, 20.0), 2)]
    for rank in (1, 2):
        for *ranked, changed in product(pairs, repeat=rank + 1):
            yield replace(case, truth=(true,), ranked=tuple(ranked), rank=rank, changed=changed, durations=seconds)


def _plainer(case: Case) -> Iterator[Case]:
    video = case.truth[0].video
    seconds = {video: case.durations[video]} if video in case.durations else {}
    yield replace(_every(case, lambda s: s._replace(video=video)), durations=seconds)
    yield replace(case, truth=tuple(t._replace(relevance=1) for t in case.truth))
    first = min(s.start for s in (*case.truth, *case.ranked, case.changed))
    yield _every(case, lambda s: s._replace(start=s.start - first, end=s.end - first))
    last = max(s.end for s in (*case.truth, *case.ranked, case.changed))
    for seconds_now in (100.0, 10 * np.ceil(last / 10)):
        yield replace(case, durations={v: float(max(seconds_now, last)) for v in case.durations})


def _rounder(case: Case) -> Iterator[Case]:
    for grid in ROUND_SECONDS:
        yield _every(case, partial(_round_times, grid=grid))
    spans = [*case.truth, *case.ranked, case.changed]
    for i, span in enumerate(spans):
        for other in dict.fromkeys((s.start, s.end) for s in spans):
            yield _one(case, i, *other)
        for grid in ROUND_SECONDS:
            yield _one(case, i, _on(span.start, grid), span.end)
            yield _one(case, i, span.start, _on(span.end, grid))
            yield _one(case, i, _on(span.start, grid), _on(span.end, grid))
        for less in (10.0, 5.0, 1.0):
            yield _one(case, i, span.start - less, span.end - less)
            yield _one(case, i, span.start, span.end - less)


def _round_times(span: ListedMoment, grid: float) -> ListedMoment:
    return span._replace(start=_on(span.start, grid), end=_on(span.end, grid))


def _every(case: Case, change: Callable[[ListedMoment], ListedMoment]) -> Case:
    return replace(
        case,
        truth=tuple(map(change, case.truth)),
        ranked=tuple(map(change, case.ranked)),
        changed=change(case.changed),
    )


def _one(case: Case, i: int, start: float, end: float) -> Case:
    """The case with span ``i`` (true moments, then the list, then the changed moment) at other times."""
    truth, ranked = list(case.truth), list(case.ranked)
    if i < len(truth):
        truth[i] = truth[i]._replace(start=start, end=end)
    elif i < len(truth) + len(ranked):
        ranked[i - len(truth)] = ranked[i - len(truth)]._replace(start=start, end=end)
    else:
        return replace(case, changed=case.changed._replace(start=start, end=end))
    return replace(case, truth=tuple(truth), ranked=tuple(ranked))


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
