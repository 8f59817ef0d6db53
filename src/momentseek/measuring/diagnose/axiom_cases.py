"""Test cases for the axioms of moment retrieval: a query and a ranked list of which one moment is changed.

Cases come from lists of a real run with one moment improved, and from small random lists. Each becomes a query, so the
real measures evaluate thousands of them in two calls: the lists before the change and after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.measures import Alignment, Measure

MIN_IOU_RISE = 0.001
"""Smallest increase in IoU of a case, far above the rounding errors of float32 overlaps."""


RANDOM_VIDEO_SECONDS = 60
"""Length of the video of random lists; their times are whole seconds, so that examples are easy to read."""


class ListedMoment(NamedTuple):
    """A span of a video, with its relevance if it is judged.

    Unlike a ``Moment``, it may be impossible, because ``invalid="keep"`` can read such spans.
    """

    video: str
    start: float
    end: float
    relevance: int = 1


@dataclass(frozen=True, slots=True)
class Case:
    """A query's judged moments and ranked list; ``changed`` replaces the moment at ``rank`` (from 1)."""

    truth: tuple[ListedMoment, ...]
    ranked: tuple[ListedMoment, ...]
    rank: int
    changed: ListedMoment
    durations: Mapping[str, float] = field(default_factory=dict)
    agreement: int = 1
    origin: str = ""
    """Description of where the list comes from."""

    def spans(self) -> list[ListedMoment]:
        """Return all moments: the true ones, the ranked ones, and the changed one."""
        return [*self.truth, *self.ranked, self.changed]

    def with_spans(self, spans: Sequence[ListedMoment]) -> Case:
        """Return the case with its moments, in the order of ``spans()``, replaced."""
        ends = len(self.truth)
        return replace(self, truth=tuple(spans[:ends]), ranked=tuple(spans[ends:-1]), changed=spans[-1])

    @property
    def after(self) -> tuple[ListedMoment, ...]:
        """The list after the change."""
        return (*self.ranked[: self.rank - 1], self.changed, *self.ranked[self.rank :])


class Trials:
    r"""Many cases laid out for evaluation, and which axiom's condition each meets (AxIoU supplement A.1).

    With r(k) the best IoU of the moment at rank k with a relevant moment, the change must raise r(k) (condition
    A.1). If it stays at or below the best above it, INV-k asks that the measure does not move (condition A.2); if
    it rises above the best above it, MON-k asks that the measure rises (condition A.3).

    >>> true, first, second, better = (ListedMoment("v", 0, end) for end in (10, 8, 2, 5))
    >>> case = Case(truth=(true,), ranked=(first, second), rank=2, changed=better)
    >>> trials = Trials([case])
    >>> trials.r_before.tolist(), trials.r_after.tolist(), trials.best_above.tolist(), trials.invariant.tolist()
    ([0.2], [0.5], [0.8], [True])
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        truth = _judgements(cases)
        self.before = Alignment(_run(cases, [c.ranked for c in cases]), truth)
        self.after = Alignment(_run(cases, [c.after for c in cases]), truth)
        self.rank: IntArray = np.array([c.rank for c in cases], dtype=np.int64)
        depth = max((len(c.ranked) for c in cases), default=1)
        before, after = (v.by_rank(v.best_iou(), depth) for v in (self.before, self.after))
        place = np.arange(len(cases)), self.rank - 1
        self.r_before: FloatArray = before[place]
        self.r_after: FloatArray = after[place]
        above = np.arange(depth) < self.rank[:, None] - 1
        self.best_above: FloatArray = np.where(above, before, 0.0).max(axis=1, initial=0.0)
        rises = self.r_after - self.r_before >= MIN_IOU_RISE
        self.invariant: BoolArray = rises & (self.rank > 1) & (self.r_after <= self.best_above)
        self.monotone: BoolArray = rises & ((self.rank == 1) | (self.r_after - self.best_above >= MIN_IOU_RISE))

    def values(self, measure: Measure) -> tuple[FloatArray, FloatArray]:
        """Return the measure's value of each case before and after the change."""
        return measure(self.before), measure(self.after)


def _judgements(cases: Sequence[Case]) -> Judgements:
    rows = [(_name(i, t.video), t) for i, c in enumerate(cases) for t in c.truth]
    agreement = [c.agreement for c in cases]
    return Judgements.from_groups(
        range(len(cases)),
        [len(c.truth) for c in cases],
        [name for name, _ in rows],
        [t.start for _, t in rows],
        [t.end for _, t in rows],
        [t.relevance for _, t in rows],
        durations={_name(i, v): seconds for i, c in enumerate(cases) for v, seconds in c.durations.items()},
        agreement=agreement if any(n != 1 for n in agreement) else None,
        invalid="keep",
    )


def _run(cases: Sequence[Case], lists: Sequence[tuple[ListedMoment, ...]]) -> Run:
    rows = [(_name(i, s.video), s) for i, spans in enumerate(lists) for s in spans]
    return Run.from_groups(
        range(len(cases)),
        map(len, lists),
        [name for name, _ in rows],
        [s.start for _, s in rows],
        [s.end for _, s in rows],
        invalid="keep",
    )


def _name(case: int, video: str) -> str:
    # Cases are independent: the same video may have another length in another case.
    return f"{case}/{video}"


def cases_from_run(run: Run, truth: Judgements, number: int, depth: int, rng: np.random.Generator) -> list[Case]:
    """Build ``number`` cases from the first ``depth`` predictions of random queries, with one of them improved.

    The improved moment is closer to a true one: moved part of the way, cut out of it, stretched around it, or a copy
    of one with a better rank. Queries without a relevant moment or without predictions are skipped.
    """
    view = Alignment(run, truth)
    best = view.by_rank(view.best_iou(), depth)
    relevant = np.zeros(len(truth), dtype=bool)
    relevant[truth.row_query[truth.relevance > 0]] = True
    usable = np.flatnonzero(relevant & view.has_predictions())
    if not len(usable):
        return []
    return [_improve_one(run, truth, int(q), best[q], depth, rng) for q in rng.choice(usable, number)]


def _improve_one(
    run: Run, truth: Judgements, query: int, best: FloatArray, depth: int, rng: np.random.Generator
) -> Case:
    name = truth.query_ids[query]
    rows = run.rows(name)
    ranked = tuple(
        ListedMoment(run.videos[v], s, e)
        for v, s, e in zip(
            run.video[rows][:depth].tolist(),
            run.start[rows][:depth].tolist(),
            run.end[rows][:depth].tolist(),
            strict=True,
        )
    )
    judged = range(int(truth.offsets[query]), int(truth.offsets[query + 1]))
    moments = tuple(
        ListedMoment(truth.videos[truth.video[i]], float(truth.start[i]), float(truth.end[i]), int(truth.relevance[i]))
        for i in judged
    )
    rank = int(rng.integers(1, len(ranked) + 1))
    goal = [m for m in moments if m.relevance > 0][int(rng.integers(sum(m.relevance > 0 for m in moments)))]
    above = float(best[: rank - 1].max(initial=0.0))
    changed = _towards(ranked, rank, goal, float(best[rank - 1]), above, rng)
    seconds = truth.durations[truth.video[judged.start : judged.stop]].tolist()
    return Case(
        truth=moments,
        ranked=ranked,
        rank=rank,
        changed=changed,
        durations={m.video: d for m, d in zip(moments, seconds, strict=True) if not math.isnan(d)},
        agreement=1 if truth.agreement is None else int(truth.agreement[query]),
        origin=f"query {name} of {run.source}, rank {rank}",
    )


def _towards(
    ranked: tuple[ListedMoment, ...], rank: int, goal: ListedMoment, now: float, above: float, rng: np.random.Generator
) -> ListedMoment:
    old = ranked[rank - 1]
    way = rng.integers(4)
    if way == 0 and old.video == goal.video:
        part = rng.random()
        return ListedMoment(
            old.video, old.start + part * (goal.start - old.start), old.end + part * (goal.end - old.end)
        )
    if way == 1 and rank > 1:
        return ranked[int(rng.integers(rank - 1))]
    # Half of the time, if possible, aim below the best above (INV-k); otherwise aim above it (MON-k).
    low, high = (now, above) if above > now and rng.random() < 0.5 else (max(now, above), 1.0)
    overlap = low + (high - low) * (1 - rng.random())
    length = goal.end - goal.start
    slide = rng.random()
    if way == 2:
        start = goal.start + slide * (1 - overlap) * length
        return ListedMoment(goal.video, start, start + overlap * length)
    start = max(0.0, goal.start - slide * (length / overlap - length))
    return ListedMoment(goal.video, start, start + length / overlap)


def random_cases(number: int, depth: int, moments: int, rng: np.random.Generator) -> list[Case]:
    """Build lists of up to ``depth`` moments around up to ``moments`` true ones, in whole seconds of a short video.

    >>> case = random_cases(1, 3, 1, np.random.default_rng(0))[0]
    >>> len(case.truth), 1 <= case.rank <= len(case.ranked) <= 3
    (1, True)
    """
    return [_random(depth, moments, rng) for _ in range(number)]


def _random(depth: int, moments: int, rng: np.random.Generator) -> Case:
    truth = tuple(
        ListedMoment("v", start, start + int(rng.integers(5, 21)))
        for start in rng.integers(0, RANDOM_VIDEO_SECONDS - 20, int(rng.integers(1, moments + 1))).tolist()
    )
    ranked = tuple(_near(truth, rng) for _ in range(int(rng.integers(1, depth + 1))))
    rank = int(rng.integers(1, len(ranked) + 1))
    changed = _near(truth, rng)
    if _best_overlap(changed, truth) < _best_overlap(ranked[rank - 1], truth):
        changed, ranked = ranked[rank - 1], (*ranked[: rank - 1], changed, *ranked[rank:])
    return Case(truth, ranked, rank, changed, {"v": float(RANDOM_VIDEO_SECONDS)}, origin="random lists")


def _near(truth: tuple[ListedMoment, ...], rng: np.random.Generator) -> ListedMoment:
    goal = truth[int(rng.integers(len(truth)))]
    shift, stretch = rng.normal(0, 8, 2).tolist()
    start = min(max(0, round(goal.start + shift)), RANDOM_VIDEO_SECONDS - 1)
    end = min(max(start + 1, round(goal.end + shift + stretch)), RANDOM_VIDEO_SECONDS)
    return ListedMoment("v", start, end)


def _best_overlap(span: ListedMoment, truth: tuple[ListedMoment, ...]) -> float:
    """Return the best IoU with a true moment; all moments must have a positive length."""
    return max(_overlap(span, t) for t in truth)


def _overlap(one: ListedMoment, other: ListedMoment) -> float:
    """Return the IoU of two moments, ten times as fast as ``moments.iou``, which uses arrays."""
    shared = max(0.0, min(one.end, other.end) - max(one.start, other.start))
    return shared / ((one.end - one.start) + (other.end - other.start) - shared)


ROUND_SECONDS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.1)
MAX_ROUNDS = 60
Cost = tuple[float, ...]


def shrink(case: Case, still: Callable[[Sequence[Case]], BoolArray]) -> Case:
    """Return the simplest case reachable from ``case`` for which ``still`` holds.

    >>> first, second = ListedMoment("v", 1.23, 5.0), ListedMoment("v", 8.01, 9.99)
    >>> long = Case((ListedMoment("v", 3.1, 17.7),), (first, second), 2, ListedMoment("v", 7.5, 12.34))
    >>> small = shrink(long, lambda cases: np.array([c.changed.end > c.truth[0].start for c in cases]))
    >>> small.truth == small.ranked == (small.changed,), small.changed
    (True, ListedMoment(video='v', start=0.0, end=10.0, relevance=1))
    """
    case = _simplest(case, _plain, still) or case
    for _ in range(MAX_ROUNDS):
        # Shorter lists first: there is less to round in them.
        better = next(filter(None, (_simplest(case, change, still) for change in (_fewer, _plainer, _rounder))), None)
        if better is None:
            return case
        case = better
    return case


def _simplest(
    case: Case, change: Callable[[Case], Iterator[Case]], still: Callable[[Sequence[Case]], BoolArray]
) -> Case | None:
    """Return the simplest changed case for which ``still`` holds; None if none is simpler than ``case``."""
    now = cost(case)
    possible = (c for c in change(case) if all(0 <= s.start < s.end for s in c.spans()))
    priced = sorted(((cost(c), i, c) for i, c in enumerate(possible)), key=lambda entry: entry[:2])
    simpler = [c for price, _, c in priced if price < now]
    return next((c for c, holds in zip(simpler, still(simpler), strict=True) if holds), None) if simpler else None


def cost(case: Case) -> Cost:
    """Return how hard a case is to read: a tuple that compares the most important aspect first."""
    spans = case.spans()
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
    """Return 0 for multiples of ten, and more for times with more digits."""
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
    """Yield all lists of one or two moments on a grid of 5 s, with a true moment at 0–10 s."""
    true = case.truth[0]._replace(start=0.0, end=10.0, relevance=1)
    seconds = {true.video: 20.0} if case.durations else {}
    pairs = [ListedMoment(true.video, start, end) for start, end in combinations((0.0, 5.0, 10.0, 15.0, 20.0), 2)]
    for rank in (1, 2):
        for *ranked, changed in product(pairs, repeat=rank + 1):
            yield replace(case, truth=(true,), ranked=tuple(ranked), rank=rank, changed=changed, durations=seconds)


def _plainer(case: Case) -> Iterator[Case]:
    video = case.truth[0].video
    seconds = {video: case.durations[video]} if video in case.durations else {}
    yield replace(case.with_spans([s._replace(video=video) for s in case.spans()]), durations=seconds)
    yield replace(case, truth=tuple(t._replace(relevance=1) for t in case.truth))
    first = min(s.start for s in case.spans())
    yield case.with_spans([s._replace(start=s.start - first, end=s.end - first) for s in case.spans()])
    last = max(s.end for s in case.spans())
    for seconds_now in (100.0, 10 * np.ceil(last / 10)):
        yield replace(case, durations={v: float(max(seconds_now, last)) for v in case.durations})


def _rounder(case: Case) -> Iterator[Case]:
    spans = case.spans()
    for grid in ROUND_SECONDS:
        yield case.with_spans([s._replace(start=_on(s.start, grid), end=_on(s.end, grid)) for s in spans])
    for i, span in enumerate(spans):
        times = list(dict.fromkeys((s.start, s.end) for s in spans))
        for grid in ROUND_SECONDS:
            start, end = _on(span.start, grid), _on(span.end, grid)
            times += [(start, span.end), (span.start, end), (start, end)]
        for less in (10.0, 5.0, 1.0):
            times += [(span.start - less, span.end - less), (span.start, span.end - less)]
        for start, end in times:
            yield case.with_spans([*spans[:i], span._replace(start=start, end=end), *spans[i + 1 :]])
