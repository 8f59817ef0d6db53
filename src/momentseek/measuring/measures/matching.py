"""The greedy matching of TVR-Ranking §4, for all queries at once.

In rank order, each prediction takes the remaining judged moment it overlaps most, if the overlap passes the threshold.
A compiled kernel (``native/matching.c``) runs this loop over all predictions, if it is built.
"""

from __future__ import annotations

import numpy as np

from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.native.kernels import address, call, kernels, writable
from momentseek.measuring.measures.alignment import Alignment, Overlap, OverlapPairs, passes

MAX_COMPARISONS = 100_000_000
"""Above this number, a sorted join is faster than comparing every prediction with all moments of its query."""


def match(view: Alignment, threshold: float, *, strict: bool, absorb: bool, overlap: Overlap = "union") -> IntArray:
    """Return the judged moment that each prediction is matched with (a row of the truth), or −1.

    With ``absorb``, moments of relevance 0 can be matched too, and use up the prediction that overlaps them most.
    """
    key = ("match", threshold, strict, absorb, overlap)
    return view.once(key, lambda: _match(view, threshold, strict, absorb, overlap))


def sum_matched_gains(
    view: Alignment, threshold: float, gains: FloatArray, *, strict: bool, absorb: bool
) -> FloatArray:
    """Return the cumulative gain of the predictions of each query, (queries, ranks).

    ``gains`` has a row for each grade of relevance and a column for each rank: the gain of a prediction at that rank
    that matches a moment of that grade. Sums run from the left, like the official code's.
    """
    ranks = gains.shape[1]
    sums = np.zeros((view.queries, ranks))
    if kernels() is None or not (strict or threshold > 0):
        matched = match(view, threshold, strict=strict, absorb=absorb)
        hit = np.flatnonzero((matched >= 0) & (view.rank < ranks))
        sums[view.query[hit], view.rank[hit]] = gains[view.truth.relevance[matched[hit]], view.rank[hit]]
        return np.cumsum(sums, axis=1, out=sums)
    pairs = view.once(("preferred", "union", True), lambda: _pairs_by_preference(view, "union", True))
    relevance, count = view.truth.relevance, len(pairs.row)
    used = np.zeros(len(relevance), np.uint8)
    call(
        kernels().sum_matched_gains,
        *(address(some, np.int64, count) for some in (pairs.row, pairs.judged)),
        address(pairs.iou, np.float64, count),
        count,
        threshold,
        strict,
        absorb,
        *(address(some, np.int64, len(view.query)) for some in (view.query, view.rank)),
        len(view.query),
        address(relevance, np.int8, len(relevance)),
        writable(used, np.uint8, len(relevance)),
        len(relevance),
        address(gains, np.float64, len(gains), ranks),
        *gains.shape,
        writable(sums, np.float64, view.queries, ranks),
        view.queries,
    )
    return sums


def sum_best_gains(truth: Judgements, gains: FloatArray) -> FloatArray:
    """Return the cumulative gain of the moments of each query in the ideal order, (queries, ranks)."""
    grades, ranks = gains.shape
    sums = np.zeros((len(truth), ranks))
    if kernels() is None:
        of_grade = np.bincount(truth.row_query * grades + (grades - 1 - truth.relevance), minlength=len(truth) * grades)
        falling = np.repeat(np.tile(np.arange(grades - 1, -1, -1), len(truth)), of_grade)
        rank = np.arange(len(falling)) - np.repeat(truth.offsets[:-1], truth.counts)
        seen = np.flatnonzero(rank < ranks)
        sums[truth.row_query[seen], rank[seen]] = gains[falling[seen], rank[seen]]
        return np.cumsum(sums, axis=1, out=sums)
    call(
        kernels().sum_best_gains,
        address(truth.offsets, np.int64, len(truth) + 1),
        len(truth),
        address(truth.relevance, np.int8, len(truth.video)),
        len(truth.video),
        address(gains, np.float64, grades, ranks),
        grades,
        ranks,
        writable(sums, np.float64, len(truth), ranks),
    )
    return sums


def _match(view: Alignment, threshold: float, strict: bool, absorb: bool, overlap: Overlap) -> IntArray:
    touching = strict or threshold > 0  # pairs that do not overlap cannot pass
    pairs = view.once(("preferred", overlap, touching), lambda: _pairs_by_preference(view, overlap, touching))
    good = passes(pairs.iou, threshold, strict)
    if not absorb:
        good &= view.truth.relevance[pairs.judged] > 0
    return greedy(pairs.row[good], pairs.judged[good], len(view.query), len(view.truth.video))


def _pairs_by_preference(view: Alignment, overlap: Overlap, touching: bool) -> OverlapPairs:
    """Sort each prediction's moments by descending overlap; equal overlaps stay in order of relevance."""
    comparisons = len(view.query) * int(view.truth.counts.max(initial=0))
    if overlap == "union" and touching and comparisons < MAX_COMPARISONS and kernels() is not None:
        return _compiled_pairs(view)
    return _by_preference(view.pairs(overlap), touching)


def _compiled_pairs(view: Alignment) -> OverlapPairs:
    truth, predictions = view.truth, len(view.query)
    run = view.run
    given = (
        *(address(some, np.int64, predictions) for some in (view.query, view.video, view.row)),
        predictions,
        *(address(some, np.float64, len(run.video)) for some in (run.start, run.end)),
        len(run.video),
        address(truth.offsets, np.int64, len(truth) + 1),
        address(truth.video, np.int32, len(truth.video)),
        address(truth.relevance, np.int8, len(truth.video)),
        *(address(some, np.float64, len(truth.video)) for some in (truth.start, truth.end)),
        len(truth),
        len(truth.video),
    )
    room, done = predictions, np.zeros(1, np.int64)
    while True:
        pairs = OverlapPairs(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float64))
        out = (writable(pairs.row, np.int64, room), writable(pairs.judged, np.int64, room))
        found = (*out, writable(pairs.iou, np.float64, room), room, writable(done, np.int64, 1))
        call(kernels().overlapping_pairs, *given, *found)
        count = int(done[0])
        if count <= room:
            return OverlapPairs(pairs.row[:count], pairs.judged[:count], pairs.iou[:count])
        room = count


def _by_preference(pairs: OverlapPairs, touching: bool) -> OverlapPairs:
    """Sort each prediction's moments by descending overlap; equal overlaps stay in order of relevance."""
    if touching:
        near = pairs.iou > 0
        pairs = OverlapPairs(pairs.row[near], pairs.judged[near], pairs.iou[near])
    order = np.lexsort((-pairs.iou, pairs.row))
    return OverlapPairs(pairs.row, pairs.judged[order], pairs.iou[order])


def greedy(row: IntArray, judged: IntArray, rows: int, moments: int) -> IntArray:
    """Assign to each row, in order, the first of its listed moments that no earlier row has taken.

    ``row`` ascends; ``judged`` lists each row's moments in order of preference.

    >>> greedy(np.array([0, 0, 1, 1, 2]), np.array([2, 0, 2, 0, 0]), 3, 4).tolist()
    [2, 0, -1]
    """
    taken = np.full(rows, -1, dtype=np.int64)
    if not len(row):
        return taken
    if kernels() is not None:
        listed = (address(some, np.int64, len(row)) for some in (row, judged))
        used = np.zeros(moments, np.uint8)
        call(
            kernels().take_in_turn,
            *listed,
            len(row),
            writable(taken, np.int64, rows),
            rows,
            writable(used, np.uint8, moments),
            moments,
        )
        return taken
    free = [True] * moments
    for asking, wanted in zip(row.tolist(), judged.tolist(), strict=True):
        if taken[asking] < 0 and free[wanted]:
            taken[asking], free[wanted] = wanted, False
    return taken
