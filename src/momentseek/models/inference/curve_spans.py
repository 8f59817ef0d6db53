"""The best spans by two filters over the curve of a query and a video's clips, without torch between the steps.

XML and ReLoCLNet find starts and ends so. Going through their tensors copies each video for each of its queries; here
pairs are taken video by video and by a compiled loop (:mod:`compiled_spans`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library.scan.choice import compiled_module
from momentseek.library.scan.threads import run_together
from momentseek.models.inference.encode import StageCallback
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.model import CurveFilters
from momentseek.moments.arrays import IntArray
from momentseek.ranking import Spans

MIN_PAIRS = 4096
"""Pairs from which on loading the kernel pays."""
NO_LENGTHS: NDArray[np.float32] = np.zeros(0, np.float32)
PAIRS_PER_TASK = 1 << 10
PAIRS_PER_TURN = 1 << 16
"""Pairs between two calls for progress."""


@dataclass(frozen=True)
class SpanRules:
    """Which spans there are: clips of the shortest and the longest that a model scores, and of the shortest wanted."""

    shortest: int
    longest: int
    least: int


@cache
def span_kernel() -> Any:
    """The compiled kernel, or None where numba is not installed or does not know the processor."""
    return compiled_module("momentseek.models.inference.compiled_spans")


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
    kernel = span_kernel()
    offsets = corpus.offsets["mask"]
    share = np.float32(1 / len(filters.terms))
    taps = np.ascontiguousarray(filters.weights, np.float32)
    fine: list[bool] = []

    def score(low: int, high: int) -> None:
        first, beyond = int(video[low]), int(video[high - 1]) + 1
        starts, there = offsets[first : beyond + 1] - offsets[first], video[low:high] - first
        rows = slice(offsets[first], offsets[beyond])
        counts = np.diff(starts)[there]
        curves = np.zeros((high - low, int(counts.max())), np.float32)
        for asked, clips, lengths in filters.terms:
            vectors = np.ascontiguousarray(corpus.values[clips][rows], np.float32)
            scale = np.ascontiguousarray(corpus.values[lengths][rows], np.float32) if lengths else NO_LENGTHS
            part = query[low:high], there, share, curves
            kernel.add_curves(vectors, scale, starts, queries.values[asked], *part)
        ready = curves, counts, usable[video[low:high]], taps, rules.shortest, rules.longest, rules.least
        if every:
            fine.append(kernel.all_of_curves(*ready, slots[low:high], best.score))
        else:
            fine.append(kernel.best_of_curves(*ready, slots[low:high], best.score, best.first, best.last))

    for begin in range(0, len(video), PAIRS_PER_TURN):
        end = min(begin + PAIRS_PER_TURN, len(video))
        edges = [*range(begin, end, PAIRS_PER_TASK), end]
        run_together([partial(score, low, high) for low, high in pairwise(edges)])
        if not all(fine):
            raise MomentseekError("the model's scores are no numbers; its training has diverged")
        if progress is not None:
            progress("spans", end, len(video))
