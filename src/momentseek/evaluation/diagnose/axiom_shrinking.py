"""Make a counter-example small: fewest predictions, fewest true moments, roundest times.

First try all lists of one or two moments at round times; then go greedily: propose many slightly simpler cases,
keep the simplest that still does what the first one did, repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations, product

import numpy as np

from momentseek.evaluation.diagnose.axiom_cases import Case, ListedMoment
from momentseek.moments.arrays import BoolArray

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
