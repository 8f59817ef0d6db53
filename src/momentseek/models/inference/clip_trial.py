"""How many columns make bounds of best clips cheapest, found out on a sample of queries and videos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.models.inference.clip_bounds import Floats
from momentseek.moments.arrays import IntArray
from momentseek.native.directions import main_directions, products_of

SAMPLE_VIDEOS, SAMPLE_QUERIES, SAMPLE_DIRECTIONS = 256, 32, 2048
WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384)
"""Columns that are tried, the last of which is the length of all that are left out; and all columns."""
CODE_SLACK = 0.011
"""About what codes add to a bound, as a share of the lengths: (|t b| |e| + |d| |x'|) / (|q'| |x'|)."""
SCAN, TURN, SCORE, PLAIN = 1.6e-11, 3.5e-11, 5e-11, 2.6e-11
"""Seconds of one thread per product of numbers: in a bound, in turning, in scoring a pair, in plain products."""


@dataclass(frozen=True, eq=False)
class SampleVideos:
    """Some videos of a modality."""

    clips: Floats
    """Less their video's mean."""
    means: Floats
    starts: IntArray
    """Where each video's clips begin."""


def sample_videos(clips: NDArray[Any], offsets: IntArray) -> SampleVideos:
    """Videos from all over the corpus."""
    places = np.unique(np.linspace(0, len(offsets) - 2, SAMPLE_VIDEOS).astype(np.int64))
    counts = np.diff(offsets)[places]
    rows = np.concatenate([clips[offsets[v] : offsets[v + 1]] for v in places.tolist()]).astype(np.float32)
    rows[~np.isfinite(rows).all(axis=1)] = 0  # which is found out when all clips are encoded
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    means = (np.add.reduceat(rows, starts, axis=0) / counts[:, None]).astype(np.float32)
    rows -= np.repeat(means, counts, axis=0)
    return SampleVideos(rows, means, starts)


def principal_directions(clips: Floats, queries: Floats) -> Floats:
    """(columns, columns), orthogonal: from the direction with most of what clips and queries vary in to the least."""
    few = [x[:: max(1, len(x) // SAMPLE_DIRECTIONS)] for x in (clips, queries)]
    spread = np.zeros((clips.shape[1], clips.shape[1]), np.float32)
    for x in few:
        spread += products_of(x.T, x.T) / np.float32(max(1e-12, float(np.square(x).sum())))
    return main_directions(spread)


def choose_width(
    samples: Sequence[SampleVideos], questions: Sequence[Floats], turns: Sequence[Floats], videos: int, n: int
) -> int | None:
    """How many columns make ranking so many videos cheapest, by trying on a sample; None for no bounds at all."""
    queries, columns = questions[0].shape
    asked = np.unique(np.linspace(0, queries - 1, SAMPLE_QUERIES).astype(np.int64))
    widths = [*(w for w in WIDTHS if w < columns), columns]
    bounds: Any = [np.float32(0)] * len(widths)
    score: Any = np.float32(0)
    for sample, every, turn in zip(samples, questions, turns, strict=True):
        starts, base = sample.starts, products_of(sample.means, every[asked])
        x, q = products_of(sample.clips, turn.T), products_of(every[asked], turn.T)
        products = np.zeros((len(x), len(q)), np.float32)
        far, tail = (np.square(a).sum(axis=1) for a in (q, x))
        above = base + CODE_SLACK * np.sqrt(np.maximum.reduceat(tail, starts))[:, None] * np.sqrt(far)
        for i, (begin, end) in enumerate(pairwise([0, *(w - 1 for w in widths[:-1]), columns])):
            products += products_of(x[:, begin:end], q[:, begin:end])
            far, tail = (
                np.maximum(left - np.square(a[:, begin:end]).sum(axis=1), 0) for left, a in ((far, q), (tail, x))
            )
            reach = products + np.sqrt(tail)[:, None] * np.sqrt(far)
            bounds[i] = bounds[i] + above + np.maximum.reduceat(reach, starts)
        score = score + base + np.maximum.reduceat(products, starts)
    kept = min(len(score), max(1, round(n * len(score) / videos)))
    needed = np.partition(score, -kept, axis=0)[-kept]
    share = [float((b >= needed).mean()) for b in bounds]
    cost = [
        SCAN * w + (TURN * columns * w / queries if w < columns else 0) + SCORE * s * columns
        for w, s in zip(widths, share, strict=True)
    ]
    cheapest = int(np.argmin(cost))
    return widths[cheapest] if cost[cheapest] < PLAIN * columns else None
