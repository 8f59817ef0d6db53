"""Where cases come from: lists of a real run with one moment improved, and small random lists."""

from __future__ import annotations

import math

import numpy as np

from momentseek.evaluation.diagnose.cases import Case, ListedMoment
from momentseek.measures import Alignment
from momentseek.moments import Judgements, Run, iou
from momentseek.moments.arrays import FloatArray

RANDOM_VIDEO_SECONDS = 60
"""Seconds of the random lists' video; their times are whole seconds, so that examples read easily."""


def cases_from_run(run: Run, truth: Judgements, number: int, depth: int, rng: np.random.Generator) -> list[Case]:
    """Up to ``number`` cases from the first ``depth`` predictions of random queries, one of them made better.

    The better moment is nearer to a true one: moved part of the way, cut out of it, stretched around it, or a copy
    of one that stands higher. Queries without a relevant moment or predictions are passed over.
    """
    view = Alignment(run, truth)
    best = view.by_rank(view.best_iou(), depth)
    relevant = np.zeros(len(truth), dtype=bool)
    relevant[truth.row_query[truth.relevance > 0]] = True
    usable = np.flatnonzero(relevant & view.answered())
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
    # Half of the time aim below the best above (INV-k), where there is room, else above it (MON-k).
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
    """Lists of up to ``depth`` moments around up to ``moments`` true ones, in whole seconds of one short video.

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
    if _best(changed, truth) < _best(ranked[rank - 1], truth):
        changed, ranked = ranked[rank - 1], (*ranked[: rank - 1], changed, *ranked[rank:])
    return Case(truth, ranked, rank, changed, {"v": float(RANDOM_VIDEO_SECONDS)}, origin="random lists")


def _near(truth: tuple[ListedMoment, ...], rng: np.random.Generator) -> ListedMoment:
    goal = truth[int(rng.integers(len(truth)))]
    shift, stretch = rng.normal(0, 8, 2)
    start = min(max(0, round(goal.start + shift)), RANDOM_VIDEO_SECONDS - 1)
    end = min(max(start + 1, round(goal.end + shift + stretch)), RANDOM_VIDEO_SECONDS)
    return ListedMoment("v", start, end)


def _best(span: ListedMoment, truth: tuple[ListedMoment, ...]) -> float:
    return max(float(iou(span.start, span.end, t.start, t.end)) for t in truth)
