"""The best spans by two filters over the curve of a query and a video's clips, without torch between the steps.

XML and ReLoCLNet find starts and ends so. Going through their tensors copies each video for each of its queries; here
pairs are taken video by video and by a loop in C (``native/spans.c``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library.scan.threads import run_together
from momentseek.models.inference.encode import StageCallback
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.model import CurveFilters
from momentseek.moments.arrays import IntArray
from momentseek.native.halves import as_floats
from momentseek.native.library import address, call, kernels, writable
from momentseek.ranking import Spans

MIN_PAIRS = 4096
"""Pairs from which on going around tensors pays."""
PAIRS_PER_TASK = 1 << 10
PAIRS_PER_TURN = 1 << 16
"""Pairs between two calls for progress."""


@dataclass(frozen=True)
class SpanRules:
    """Which spans there are: clips of the shortest and the longest that a model scores, and of the shortest wanted."""

    shortest: int
    longest: int
    least: int


def fill_spans(
    filters: CurveFilters,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    query: IntArray,
    video: IntArray,
    slots: IntArray,
    usable: IntArray,
    rules: SpanRules,
    best: Spans,
    *,
    every: bool,
    progress: StageCallback | None = None,
) -> None:
    """Write the spans of pairs of a query and a video, those of a video together, into the rows ``slots`` of ``best``.

    Its arrays are ``(pairs, k)``. With ``every``, all spans are written, by first clip and length, else the best.
    """
    offsets = corpus.offsets["mask"]
    share = np.float32(1 / len(filters.terms))
    taps = np.ascontiguousarray(filters.weights, np.float32)
    asked = [np.ascontiguousarray(queries.values[name], np.float32) for name, _, _ in filters.terms]
    fine: list[bool] = []

    def score(low: int, high: int) -> None:
        first, beyond = int(video[low]), int(video[high - 1]) + 1
        starts, there = offsets[first : beyond + 1] - offsets[first], video[low:high] - first
        rows = slice(offsets[first], offsets[beyond])
        counts = np.diff(starts)[there]
        curves = np.zeros((high - low, int(counts.max())), np.float32)
        pairs = high - low
        chosen = np.ascontiguousarray(query[low:high], np.int64), np.ascontiguousarray(there, np.int64)
        for questions, (_, clips, lengths) in zip(asked, filters.terms, strict=True):
            vectors = as_floats(corpus.values[clips][rows])
            scale = as_floats(corpus.values[lengths][rows]) if lengths else None
            columns = vectors.shape[1]
            call(
                kernels().add_curves,
                address(vectors, np.float32, -1, columns),
                None if scale is None else address(scale, np.float32, len(vectors)), columns,
                address(starts, np.int64, -1), len(starts) - 1, len(vectors),
                address(questions, np.float32, -1, columns), len(questions),
                address(chosen[0], np.int64, pairs), address(chosen[1], np.int64, pairs), pairs,
                share, writable(curves, np.float32, pairs, -1), curves.shape[1],
            )  # fmt: skip
        fine.append(find_spans(curves, counts, usable[video[low:high]], taps, rules, slots[low:high], best, every))

    for begin in range(0, len(video), PAIRS_PER_TURN):
        end = min(begin + PAIRS_PER_TURN, len(video))
        edges = [*range(begin, end, PAIRS_PER_TASK), end]
        run_together([partial(score, low, high) for low, high in pairwise(edges)])
        if not all(fine):
            raise MomentseekError("the model's scores are no numbers; its training has diverged")
        if progress is not None:
            progress("spans", end, len(video))


def find_spans(
    curves: NDArray[np.float32],
    clips: IntArray,
    usable: IntArray,
    taps: NDArray[np.float32],
    rules: SpanRules,
    slots: IntArray,
    best: Spans,
    every: bool,
) -> bool:
    """Write the spans of curves ``(pairs, clips)``; returns whether all curves are numbers."""
    pairs, width = curves.shape
    rows, most = best.score.shape
    numbers = np.ones(1, np.int64)
    ready = [np.ascontiguousarray(a, np.int64) for a in (clips, usable, slots)]
    edges = (None, None) if every else tuple(writable(a, np.int16, rows, most) for a in (best.first, best.last))
    call(
        kernels().spans_of_curves,
        address(curves, np.float32, pairs, width), pairs, width,
        address(ready[0], np.int64, pairs), address(ready[1], np.int64, pairs),
        address(taps, np.float32, 2, -1), taps.shape[1], rules.shortest, rules.longest, rules.least,
        address(ready[2], np.int64, pairs), rows, most, writable(best.score, np.float32, rows, most), *edges,
        writable(numbers, np.int64, 1),
    )  # fmt: skip
    return bool(numbers[0])
