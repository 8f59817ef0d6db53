"""The best videos by the mean of each modality's best clip: exact, without multiplying every number of every clip.

Every video gets an upper bound of its score (`clip_bounds`); the videos with the best bounds are scored, and then every
other one whose bound reaches the n-th best score. How many columns bounds are cheapest with is tried on a sample
(`clip_trial`). Where even all of them would cost more than plain products do, there are no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.threads import run_together
from momentseek.models.inference.clip_bounds import Floats, bounds_of, encode_clips, first_directions
from momentseek.models.inference.clip_trial import choose_width, principal_directions, sample_videos
from momentseek.moments.arrays import IntArray
from momentseek.native.halves import as_floats
from momentseek.native.library import address, call, is_wide, kernels, writable

MAX_BOUNDS = 1 << 26
"""Bounds held at once (256 MB); more queries than that allows are answered in parts."""
MIN_PRODUCTS = 1 << 36
"""Products of numbers from which on bounds are tried: about two seconds of plain products on one thread."""
PAIRS_PER_TASK = 1 << 12
"""Pairs that a thread scores at a time."""
BOUNDS_PER_TASK = 1 << 20
"""Bounds that a thread picks from at a time."""


@dataclass(frozen=True, eq=False)
class LateVectors:
    """Vectors of queries ``(queries, columns)`` and of the clips of all videos ``(clips, columns)`` in one modality."""

    queries: Floats
    clips: NDArray[Any]


def rank_by_best_clips(
    vectors: Sequence[LateVectors],
    offsets: IntArray,
    n: int,
    progress: Callable[[int, int], None] | None = None,
    width: int | None = None,
) -> tuple[IntArray, Floats] | None:
    """Places and scores ``(queries, n)`` of the best videos, best first, ties in the corpus' order; or None.

    A video's score is the mean over modalities of the largest dot product of a query with one of its clips, which are
    the rows from ``offsets[video]`` on. None says that plain products are quicker, that the kernel cannot be used, or
    that there are numbers that are none.
    ``width``, an even number, sets the number of columns instead of a trial.
    """
    queries, videos = len(vectors[0].queries), len(offsets) - 1
    if n >= videos or not np.diff(offsets).all() or (width is None and work_of(vectors) < MIN_PRODUCTS):
        return None
    if not is_wide() or not all(np.isfinite(v.queries).all() for v in vectors):
        return None
    samples = [sample_videos(v.clips, offsets) for v in vectors]
    questions = [v.queries for v in vectors]
    turns = [np.empty(0, np.float32)] * len(vectors)

    def turn(i: int) -> None:
        turns[i] = principal_directions(samples[i].clips, questions[i])

    run_together([partial(turn, i) for i in range(len(vectors))])
    width = width or choose_width(samples, questions, turns, videos, n)
    if width is None:
        return None
    codes = [encode_clips(v.clips, offsets, first_directions(t, width)) for v, t in zip(vectors, turns, strict=True)]
    if not all(np.isfinite(c.means).all() for c in codes):
        return None
    step = max(1, MAX_BOUNDS // videos)
    found = []
    for begin in range(0, queries, step):
        part = [LateVectors(v.queries[begin : begin + step], v.clips) for v in vectors]
        bounds = bounds_of([v.queries for v in part], codes, offsets)
        found.append(best_within(part, offsets, bounds, n))
        if progress is not None:
            progress((begin + len(bounds)) * videos, queries * videos)
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def work_of(vectors: Sequence[LateVectors]) -> int:
    """Products of numbers that scoring every clip takes."""
    return sum(v.clips.size * len(v.queries) for v in vectors)


def best_within(vectors: Sequence[LateVectors], offsets: IntArray, bounds: Floats, n: int) -> tuple[IntArray, Floats]:
    """The ``n`` best videos of each query, given bounds ``(queries, videos)``, by scoring as few as that takes."""
    queries, videos = bounds.shape
    few = min(videos, n + n // 4)
    first = np.empty((queries, few), np.int64)

    def pick(low: int, high: int) -> None:
        first[low:high] = np.argpartition(bounds[low:high], videos - few, axis=1)[:, videos - few :]

    share_queries(pick, queries, videos)
    row = np.repeat(np.arange(queries), few)
    score = score_pairs(vectors, offsets, row, first.reshape(-1)).reshape(first.shape)
    needed = np.partition(score, few - n, axis=1)[:, few - n, None]
    others: list[tuple[IntArray, IntArray]] = []

    def list_others(low: int, high: int) -> None:
        reach = bounds[low:high] >= needed[low:high]
        np.put_along_axis(reach, first[low:high], values=False, axis=1)
        place = np.flatnonzero(reach)
        others.append((low + place // videos, place % videos))

    share_queries(list_others, queries, videos)
    more_row, more = (np.concatenate([o[i] for o in others]) for i in range(2))
    row = np.concatenate([row, more_row])
    video = np.concatenate([first.reshape(-1), more])
    scores = np.concatenate([score.reshape(-1), score_pairs(vectors, offsets, more_row, more)])
    good = np.flatnonzero(~(scores < needed[row, 0]))
    good = good[np.lexsort((video[good], -scores[good], row[good]))]
    begins = np.searchsorted(row[good], np.arange(queries))
    chosen = good[begins[:, None] + np.arange(n)]
    return video[chosen], scores[chosen]


def share_queries(work: Callable[[int, int], None], queries: int, videos: int) -> None:
    """Do something for all queries, given the first and the last, some at a time and shared among threads."""
    step = max(1, BOUNDS_PER_TASK // videos)
    run_together([partial(work, low, high) for low, high in pairwise([*range(0, queries, step), queries])])


def score_pairs(vectors: Sequence[LateVectors], offsets: IntArray, query: IntArray, video: IntArray) -> Floats:
    """The score of each pair of a query and a video."""
    small = video.astype(np.uint16) if len(offsets) <= 1 << 16 else video  # sorted by their digits
    order = np.argsort(small, kind="stable")
    asked, there = query[order], video[order]
    found = np.zeros(len(order), np.float32)
    share = np.float32(1 / len(vectors))

    def score(low: int, high: int) -> None:
        first, beyond = there[low], there[high - 1] + 1
        starts, mine = offsets[first : beyond + 1] - offsets[first], there[low:high] - first
        for v in vectors:
            rows = as_floats(v.clips[offsets[first] : offsets[beyond]])
            columns = rows.shape[1]
            call(
                kernels().add_pair_scores,
                address(rows, np.float32, -1, columns), columns,
                address(starts, np.int64, -1), len(starts) - 1, len(rows),
                address(v.queries, np.float32, -1, columns), len(v.queries),
                address(asked[low:high], np.int64, -1), address(mine, np.int64, high - low), high - low,
                share, writable(found[low:high], np.float32, high - low),
            )  # fmt: skip

    edges = [*range(0, len(order), PAIRS_PER_TASK), len(order)]
    run_together([partial(score, low, high) for low, high in pairwise(edges)])
    out = np.empty_like(found)
    out[order] = found
    return out
