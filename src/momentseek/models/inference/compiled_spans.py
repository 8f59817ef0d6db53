"""The best spans of many pairs of a query and a video, compiled by numba: from vectors to spans without a stop between.

For each pair: the curve of the query's products with the video's clips, what two filters answer to it, logarithms of
the probabilities that a clip is the first and the last (:class:`momentseek.models.layers.BoundaryFilters`), and a heap
of the best sums of a first and a last clip. Nothing of this but the result is kept.
"""

# mypy: disable-error-code="call-arg,unreachable,no-untyped-call,import-untyped,untyped-decorator"

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba import types

from momentseek.library.scan.blocks import read_only

_PLACES, _NUMBERS, _TABLE = read_only(types.int64, 1), read_only(types.float32, 1), read_only(types.float32, 2)


@nb.njit(
    types.void(
        _TABLE, _NUMBERS, _PLACES, _TABLE, _PLACES, _PLACES, types.float32, types.float32[:, ::1],
    ),
    nogil=True,
    cache=True,
    fastmath={"reassoc", "contract"},
)  # fmt: skip
def add_curves(  # pragma: no cover  (compiled)
    rows: Any, lengths: Any, starts: Any, queries: Any, query: Any, video: Any, share: Any, curves: Any
) -> None:
    """Add ``share`` of the products of each pair's query and clips to its curve; ``lengths`` multiply rows, if any."""
    columns = rows.shape[1]
    for pair in range(query.size):
        asked, begin = queries[query[pair]], starts[video[pair]]
        for clip in range(starts[video[pair] + 1] - begin):
            row = rows[begin + clip]
            total = np.float32(0)
            for j in range(columns):
                total += row[j] * asked[j]
            if lengths.size:
                total *= lengths[begin + clip]
            curves[pair, clip] += share * total


@nb.njit(types.void(_NUMBERS, types.intp, _NUMBERS, types.float32[::1]), nogil=True, cache=True)
def _log_probabilities(curve: Any, clips: int, taps: Any, out: Any) -> None:  # pragma: no cover  (compiled)
    """Logarithms of the softmax, over the clips there are, of what a filter answers to a curve that is 0 outside."""
    half = taps.size // 2
    most = np.float32(-np.inf)
    for clip in range(clips):
        total = np.float32(0)
        for tap in range(taps.size):
            place = clip + tap - half
            if 0 <= place < clips:
                total += taps[tap] * curve[place]
        out[clip] = total
        most = max(most, total)
    total = np.float32(0)
    for clip in range(clips):
        total += np.exp(out[clip] - most)
    shift = most + np.log(total)
    for clip in range(clips):
        out[clip] -= shift


@nb.njit(types.boolean(types.float32, types.int32, types.float32, types.int32), nogil=True, cache=True)
def _worse(score: Any, place: Any, other: Any, there: Any) -> Any:  # pragma: no cover  (compiled)
    """Whether the first of two spans comes after the other: ties go to the earlier place."""
    return score < other or (score == other and place > there)


@nb.njit(
    types.void(types.float32[::1], types.int32[::1], types.intp, types.float32, types.int32), nogil=True, cache=True
)
def _sink(  # pragma: no cover  (compiled)
    scores: Any, places: Any, size: int, score: Any, place: Any
) -> None:
    """Put a span in the place of the worst, which is the first of a heap."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and _worse(scores[child + 1], places[child + 1], scores[child], places[child]):
            child += 1
        if not _worse(scores[child], places[child], score, place):
            break
        scores[hole], places[hole] = scores[child], places[child]
        hole = child
    scores[hole], places[hole] = score, place


@nb.njit(
    types.boolean(
        _TABLE, _PLACES, _PLACES, _TABLE, types.intp, types.intp, types.intp, _PLACES, types.float32[:, ::1],
        types.int16[:, ::1], types.int16[:, ::1],
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def best_of_curves(  # pragma: no cover  (compiled)
    curves: Any, clips: Any, usable: Any, filters: Any, shortest: int, longest: int, least: int, slots: Any,
    score: Any, first: Any, last: Any,
) -> bool:  # fmt: skip
    """Write the best spans of each curve, best first, into the rows ``slots``; ties go to the earlier, shorter span.

    ``filters`` are those of the start and of the end. Spans have ``shortest`` to ``longest`` clips and at least
    ``least``, and end before clip ``usable``. Returns whether all curves are numbers.
    """
    width, most = curves.shape[1], score.shape[1]
    starts, ends = np.empty(width, np.float32), np.empty(width, np.float32)
    scores, places = np.empty(most, np.float32), np.empty(most, np.int32)
    numbers = True
    for pair in range(slots.size):
        count, limit = clips[pair], min(usable[pair], clips[pair])
        _log_probabilities(curves[pair], count, filters[0], starts)
        _log_probabilities(curves[pair], count, filters[1], ends)
        numbers = numbers and not np.isnan(starts[0] + ends[0])
        scores[:] = -np.inf
        places[:] = np.int32(2**31 - 1)
        lengths = longest - shortest + 1
        highest = np.float32(-np.inf)
        for clip in range(limit):
            highest = max(highest, ends[clip])
        for begin in np.argsort(-starts[:limit]):  # likely starts first, so that the others are soon out of reach
            if starts[begin] + highest < scores[0]:
                break
            for length in range(max(shortest, least), min(longest, limit - begin) + 1):
                total = starts[begin] + ends[begin + length - 1]
                place = np.int32(begin * lengths + length - shortest)
                if total >= scores[0] and _worse(scores[0], places[0], total, place):
                    _sink(scores, places, most, total, place)
        row = slots[pair]
        for size in range(most - 1, -1, -1):
            score[row, size] = scores[0]
            place = places[0] if scores[0] > -np.inf else np.int32(0)
            first[row, size] = place // lengths
            last[row, size] = place // lengths + shortest - 1 + place % lengths
            _sink(scores, places, size, scores[size], places[size])
    return numbers


@nb.njit(
    types.boolean(
        _TABLE, _PLACES, _PLACES, _TABLE, types.intp, types.intp, types.intp, _PLACES, types.float32[:, ::1]
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def all_of_curves(  # pragma: no cover  (compiled)
    curves: Any, clips: Any, usable: Any, filters: Any, shortest: int, longest: int, least: int, slots: Any, score: Any
) -> bool:  # fmt: skip
    """Write the scores of all spans, by first clip and length, into the rows ``slots``, where minus infinity stands."""
    starts, ends = np.empty(curves.shape[1], np.float32), np.empty(curves.shape[1], np.float32)
    lengths = longest - shortest + 1
    numbers = True
    for pair in range(slots.size):
        count, limit = clips[pair], min(usable[pair], clips[pair])
        _log_probabilities(curves[pair], count, filters[0], starts)
        _log_probabilities(curves[pair], count, filters[1], ends)
        numbers = numbers and not np.isnan(starts[0] + ends[0])
        for begin in range(limit):
            for length in range(max(shortest, least), min(longest, limit - begin) + 1):
                score[slots[pair], begin * lengths + length - shortest] = starts[begin] + ends[begin + length - 1]
    return numbers
