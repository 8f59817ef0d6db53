"""The coarse list: scene means in 4 bits per two columns, scanned from tables in registers (``native/coarse.c``).

Product quantisation (Jégou et al. 2011) with 16 centres per pair of columns takes 64 bytes for 256 columns, a quarter
of int8, and is read about as fast as memory delivers it (André et al. 2017). What comes before what is all that is
asked of it: the vectors whose sums reach a threshold, which a sample of the list gives.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.runtime import thread_count
from momentseek.library.scan.threads import is_alone, run_together
from momentseek.native.library import address, call, kernels, writable

MAX_TRAINING_MEANS = 65_536
"""Number of scene means, at most, from which the centres are learnt."""
TRAINING_ROUNDS = 20
CENTRES = 16
VECTORS_PER_BLOCK = 32
MAX_ENTRY = 127
"""The largest number of a query's table, so that two fit a byte."""
MAX_SAMPLE = 1 << 13
"""Vectors, about, from which the threshold of a list is found."""
BLOCKS_PER_TASK = 1 << 10

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CoarseList:
    """Vectors in 4 bits per two columns."""

    centres: Floats
    """(pairs of columns, 16, 2)."""
    blocks: NDArray[np.uint8]
    """(blocks, bytes per vector, 32): a byte holds the codes of two pairs of columns."""
    count: int
    mapped: mmap.mmap | None = None
    """The map of its file, if it was not read into memory."""

    def __post_init__(self) -> None:
        pairs, held = len(self.centres), len(self.blocks) * VECTORS_PER_BLOCK
        if self.blocks.shape[1:] != (pairs // 2, VECTORS_PER_BLOCK) or not self.count <= held < self.count + 32:
            raise ValueError("the coarse list and its centres do not belong together")


def pad_columns(vectors: Floats) -> Floats:
    """Vectors with zeros appended until their columns are a multiple of four."""
    missing = -vectors.shape[1] % 4
    return np.ascontiguousarray(np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors)


def train_centres(sample: Floats) -> Floats:
    """Centres for each pair of columns, learnt from a sample by k-means (Lloyd's algorithm from random rows)."""
    rows = pad_columns(sample)
    pairs = rows.shape[1] // 2
    rng = np.random.default_rng(1)
    first = rows[rng.choice(len(rows), CENTRES, replace=len(rows) < CENTRES)]
    centres = np.ascontiguousarray(first.reshape(CENTRES, pairs, 2).transpose(1, 0, 2))
    ready = address(rows, np.float32, -1, 2 * pairs), len(rows), 2 * pairs, writable(centres, np.float32, pairs, 16, 2)
    edges = np.linspace(0, pairs, 1 + min(pairs, 8)).astype(int).tolist()
    run_together(
        partial(call, kernels().train_pairs, *ready, TRAINING_ROUNDS, low, high) for low, high in pairwise(edges)
    )
    return centres


def encode(vectors: Floats, centres: Floats) -> NDArray[np.uint8]:
    """The blocks of vectors; the last is filled up."""
    rows = pad_columns(vectors)
    dim = rows.shape[1]
    blocks = np.zeros((-(-len(rows) // VECTORS_PER_BLOCK), dim // 4, VECTORS_PER_BLOCK), np.uint8)

    def work(low: int, high: int) -> None:
        part = rows[low * VECTORS_PER_BLOCK : high * VECTORS_PER_BLOCK]
        call(
            kernels().encode_pairs,
            address(part, np.float32, -1, dim), len(part), dim, address(centres, np.float32, dim // 2, 16, 2),
            writable(blocks[low:high], np.uint8, high - low, dim // 4, VECTORS_PER_BLOCK),
        )  # fmt: skip

    edges = [*range(0, len(blocks), BLOCKS_PER_TASK), len(blocks)]
    run_together(partial(work, low, high) for low, high in pairwise(edges))
    return blocks


def query_tables(centres: Floats, queries: Floats) -> NDArray[np.uint8]:
    """(queries, pairs, 16): what each centre adds to a query's product, from 0 on and in steps that a query shares."""
    asked = pad_columns(queries).reshape(len(queries), len(centres), 2)
    products = np.matmul(asked.transpose(1, 0, 2), centres.transpose(0, 2, 1)).transpose(1, 0, 2)
    products -= products.min(axis=2, keepdims=True)
    most = min(MAX_ENTRY, (2**16 - 1) // max(1, len(centres)))
    span = np.maximum(products.max(axis=(1, 2), keepdims=True), np.float32(1e-30))
    return np.ascontiguousarray(np.rint(products * (most / span)).astype(np.uint8))


def sums_of(listed: CoarseList, table: NDArray[np.uint8], stride: int = 1) -> NDArray[np.uint16]:
    """The sums of a query's table for the vectors of every ``stride``-th block."""
    blocks, width, _ = listed.blocks.shape
    sums = np.empty(-(-blocks // stride) * VECTORS_PER_BLOCK, np.uint16)
    call(
        kernels().sums_of_list,
        address(listed.blocks, np.uint8, -1, width, VECTORS_PER_BLOCK), blocks, width, stride,
        address(table, np.uint8, 2 * width, CENTRES), writable(sums, np.uint16, -1),
    )  # fmt: skip
    return sums


def rank_all(listed: CoarseList, query: Floats) -> NDArray[np.int64]:
    """The numbers of all vectors, those with the largest sums first."""
    sums = sums_of(listed, query_tables(listed.centres, query[None])[0])[: listed.count]
    return np.argsort(-sums.astype(np.int32), kind="stable")


def nearest(listed: CoarseList, queries: Floats, count: int) -> list[Numbers]:
    """The numbers of about ``count`` vectors with the largest sums for each query, in order of the numbers."""
    if count >= listed.count:
        return [np.arange(listed.count, dtype=np.int32)] * len(queries)
    tables = query_tables(listed.centres, queries)
    least = np.array([threshold(listed, table, count) for table in tables], np.uint16)
    found: dict[int, list[Numbers]] = {}

    def work(low: int, high: int) -> None:
        found[low] = above(listed, tables, least, low, high, 2 * count)

    blocks = len(listed.blocks)
    parts = 1 if is_alone() else max(1, min(4 * thread_count(), blocks // 256))
    edges = np.linspace(0, blocks, parts + 1).astype(int).tolist()
    run_together([partial(work, low, high) for low, high in pairwise(edges) if low < high])
    pieces = [found[low] for low in sorted(found)]
    return [_join([piece[q] for piece in pieces], listed.count) for q in range(len(queries))]


def _join(pieces: Sequence[Numbers], count: int) -> Numbers:
    numbers = np.concatenate(pieces)
    return numbers[: np.searchsorted(numbers, count)]  # what fills up the last block is no vector


def threshold(listed: CoarseList, table: NDArray[np.uint8], count: int) -> int:
    """A sum that about ``count`` vectors of the list reach, and hardly ever fewer."""
    stride = max(1, listed.count // MAX_SAMPLE)
    sums = sums_of(listed, table, stride)
    if stride == 1:
        sums = sums[: listed.count]
    share = count * len(sums) / listed.count
    rank = min(len(sums), int(share + share**0.5 * (stride > 1)) + 1)
    return int(np.partition(sums, len(sums) - rank)[len(sums) - rank])


def above(
    listed: CoarseList, tables: NDArray[np.uint8], least: NDArray[np.uint16], low: int, high: int, room: int
) -> list[Numbers]:
    """For each query, the vectors in some blocks whose sums reach its threshold."""
    width = listed.blocks.shape[1]
    room = min(room, (high - low) * VECTORS_PER_BLOCK)
    while True:
        out = np.empty((len(tables), room), np.int32)
        counts = np.empty(len(tables), np.int64)
        call(
            kernels().list_above,
            address(listed.blocks, np.uint8, -1, width, VECTORS_PER_BLOCK), width,
            address(tables, np.uint8, -1, 2 * width, CENTRES), len(tables), address(least, np.uint16, len(tables)),
            writable(out, np.int32, len(tables), room), room, writable(counts, np.int64, len(tables)), low, high,
        )  # fmt: skip
        if counts.max(initial=0) <= room:
            return [row[:n] for row, n in zip(out, counts.tolist(), strict=True)]
        room = int(counts.max())
