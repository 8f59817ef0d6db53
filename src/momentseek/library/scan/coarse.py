"""The coarse list: scene means in 4 bits per two columns, scanned from tables in registers (``native/coarse.c``).

The vectors lie in groups of like ones (:mod:`groups`), and what is coded is the difference from the group's mean.
Product quantisation (Jégou et al. 2011) with 16 centres per pair of columns takes 64 bytes for 256 columns, a quarter
of int8, and is read about as fast as memory delivers it (André et al. 2017). A query reads the groups that promise
most, until these hold as large a share of all vectors as it is told. What comes before what is all that is asked of it:
the vectors whose sums reach a threshold, which a sample of the groups gives.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
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
MIN_BLOCKS_PER_TASK = 256
"""Below so many blocks, times queries, a second thread costs more than it saves."""
HOPE = 2.0
"""Spreads above its mean that a group's best vectors are taken to lie when groups are put in order."""
MAX_OFFSET = 1 << 40
"""Beyond any sum, and what a group's mean may add to one."""

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CoarseList:
    """Vectors in 4 bits per two columns, group after group."""

    centres: Floats
    """(pairs of columns, 16, 2)."""
    groups: Floats
    """(groups, columns): the mean of each."""
    spreads: Floats
    """How far a group's vectors lie from its mean along one direction (the root of the mean square)."""
    edges: NDArray[np.int64]
    """The first block of each group, and the number of all blocks."""
    blocks: NDArray[np.uint8]
    """(blocks, bytes per vector, 32): a byte holds the codes of two pairs of columns."""
    numbers: Numbers
    """The number of the vector at each place of the blocks; -1 where a group's last block is filled up."""
    count: int
    mapped: mmap.mmap | None = None
    """The map of its file, if it was not read into memory."""

    def __post_init__(self) -> None:
        pairs, places, edges = len(self.centres), len(self.blocks) * VECTORS_PER_BLOCK, self.edges
        fits = self.blocks.shape[1:] == (pairs // 2, VECTORS_PER_BLOCK) and len(self.numbers) == places
        fits = fits and len(self.groups) == len(self.spreads) == len(edges) - 1
        fits = fits and edges[0] == 0 and edges[-1] == len(self.blocks) and bool((np.diff(edges) >= 0).all())
        if not fits or self.numbers.max(initial=-1) >= self.count:
            raise ValueError("the coarse list and its centres do not belong together")

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of vectors of each group."""
        filled = (self.numbers >= 0).reshape(-1, VECTORS_PER_BLOCK).sum(axis=1)
        return np.diff(np.concatenate([[0], np.cumsum(filled)])[self.edges])

    @cached_property
    def group_of_block(self) -> NDArray[np.int64]:
        """The group that each block belongs to."""
        return np.repeat(np.arange(len(self.groups)), np.diff(self.edges))


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


def lay_out(sizes: NDArray[np.int64]) -> tuple[Numbers, NDArray[np.int64]]:
    """Where vectors lie in a list that has them group after group: the number at each place, and the first blocks.

    >>> numbers, edges = lay_out(np.array([1, 2]))
    >>> numbers[[0, 1, 32, 33, 34]].tolist(), edges.tolist()
    ([0, -1, 1, 2, -1], [0, 1, 2])
    """
    edges = np.concatenate([[0], np.cumsum(-(-sizes // VECTORS_PER_BLOCK))])
    numbers = np.full(int(edges[-1]) * VECTORS_PER_BLOCK, -1, np.int32)
    count = np.arange(int(sizes.sum()))
    numbers[np.repeat(edges[:-1] * VECTORS_PER_BLOCK - (np.cumsum(sizes) - sizes), sizes) + count] = count
    return numbers, edges


def query_tables(centres: Floats, queries: Floats) -> tuple[NDArray[np.uint8], Floats]:
    """(queries, pairs, 16): what each centre adds to a query's product, from 0 on; and the size of a query's steps."""
    asked = pad_columns(queries).reshape(len(queries), len(centres), 2)
    products = np.matmul(asked.transpose(1, 0, 2), centres.transpose(0, 2, 1)).transpose(1, 0, 2)
    products -= products.min(axis=2, keepdims=True)
    most = min(MAX_ENTRY, (2**16 - 1) // max(1, len(centres)))
    span = np.maximum(products.max(axis=(1, 2), keepdims=True), np.float32(1e-30))
    tables = np.ascontiguousarray(np.rint(products * (most / span)).astype(np.uint8))
    return tables, span[:, 0, 0] / np.float32(most)


@dataclass(frozen=True, eq=False)
class CoarseQueries:
    """Queries made ready for a coarse list."""

    tables: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    """(queries, groups): what the group's mean adds to a sum of the tables."""
    reach: NDArray[np.float64]
    """(queries, groups): the share of all vectors in the groups that promise more, which are read before."""


def ready_queries(listed: CoarseList, queries: Floats) -> CoarseQueries:
    """What a coarse list needs of queries. The groups that may hold the largest products come first."""
    tables, steps = query_tables(listed.centres, queries)
    # A matrix product would wake threads for a tenth of a millisecond's work.
    products = np.einsum("gd,qd->qg", listed.groups, queries) if len(queries) < 8 else queries @ listed.groups.T
    order = np.argsort(-(products + HOPE * listed.spreads), axis=1, kind="stable")
    sizes = listed.sizes[order]
    reach = np.empty(products.shape)
    np.put_along_axis(reach, order, (np.cumsum(sizes, axis=1) - sizes) / max(1, listed.count), axis=1)
    offsets = np.rint(np.clip(products / steps[:, None], -MAX_OFFSET, MAX_OFFSET)).astype(np.int64)
    return CoarseQueries(tables, offsets, reach)


def sums_of(listed: CoarseList, table: NDArray[np.uint8], which: NDArray[np.int64]) -> NDArray[np.uint16]:
    """The sums of a query's table for the vectors of some blocks, ``(blocks, 32)``."""
    held, width, _ = listed.blocks.shape
    sums = np.empty((len(which), VECTORS_PER_BLOCK), np.uint16)
    call(
        kernels().sums_of_blocks,
        address(listed.blocks, np.uint8, held, width, VECTORS_PER_BLOCK), held, width,
        address(which, np.int64, len(which)), len(which),
        address(table, np.uint8, 2 * width, CENTRES), writable(sums, np.uint16, len(which), VECTORS_PER_BLOCK),
    )  # fmt: skip
    return sums


def totals_of(listed: CoarseList, ready: CoarseQueries, query: int, which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums with what their groups' means add, ``(blocks, 32)``: in the order of products, as far as codes tell it."""
    sums = sums_of(listed, ready.tables[query], which)
    return np.asarray(sums + ready.offsets[query][listed.group_of_block[which], None])


def rank_all(listed: CoarseList, query: Floats) -> tuple[Numbers, NDArray[np.float64]]:
    """The numbers of all vectors, those with the largest sums first; and the reach of the group that each is in."""
    ready = ready_queries(listed, query[None])
    totals = totals_of(listed, ready, 0, np.arange(len(listed.blocks))).reshape(-1)
    places = np.flatnonzero(listed.numbers >= 0)
    places = places[np.argsort(-totals[places], kind="stable")]
    reach = ready.reach[0][listed.group_of_block[places // VECTORS_PER_BLOCK]]
    return listed.numbers[places], reach


def nearest(listed: CoarseList, queries: Floats, count: int, share: float = 1.0) -> list[Numbers]:
    """The numbers of about ``count`` vectors with the largest sums for each query, in no order.

    Only a ``share`` of the vectors is read, in the groups that promise most.
    """
    if count >= listed.count:
        return [np.arange(listed.count, dtype=np.int32)] * len(queries)
    ready = ready_queries(listed, queries)
    chosen = ready.reach < share
    least = np.array([threshold(listed, ready, q, chosen[q], count) for q in range(len(queries))])
    group, query = np.nonzero(chosen.T)
    wanted = least[query] - ready.offsets[query, group]
    some = wanted < 1 << 16  # in the other groups no sum can be so large
    asked = GroupEntries(group[some], query[some], np.maximum(wanted[some], 0).astype(np.uint16))
    starts = np.searchsorted(asked.group, np.arange(len(listed.groups) + 1))
    found: dict[int, list[Numbers]] = {}

    def work(low: int, high: int) -> None:
        found[low] = above(listed, ready.tables, asked, starts, low, high, 2 * count)

    load = np.cumsum(np.diff(starts) * np.diff(listed.edges))
    parts = 1 if is_alone() else int(max(1, min(4 * thread_count(), load[-1] // MIN_BLOCKS_PER_TASK)))
    cuts = np.searchsorted(load, np.linspace(0, load[-1], parts + 1)[1:-1], side="right")
    edges = [0, *cuts.tolist(), len(listed.groups)]
    run_together([partial(work, low, high) for low, high in pairwise(edges) if low < high])
    return [_join([pieces[q] for pieces in found.values()], listed.numbers) for q in range(len(queries))]


def _join(pieces: Sequence[Numbers], numbers: Numbers) -> Numbers:
    found = numbers[np.concatenate(pieces)]
    return found[found >= 0]  # what fills up a block is no vector


def threshold(listed: CoarseList, ready: CoarseQueries, query: int, chosen: NDArray[np.bool_], count: int) -> int:
    """A sum that about ``count`` vectors of the chosen groups reach, and hardly ever fewer."""
    held = int(listed.sizes[chosen].sum())
    if count >= held:
        return -MAX_OFFSET
    stride = max(1, held // MAX_SAMPLE)
    which = np.flatnonzero(chosen[listed.group_of_block])[::stride].copy()
    totals = totals_of(listed, ready, query, which)
    totals = totals[listed.numbers.reshape(-1, VECTORS_PER_BLOCK)[which] >= 0]
    share = count * len(totals) / held
    rank = min(len(totals), int(share + share**0.5 * (stride > 1)) + 1)
    return int(np.partition(totals, len(totals) - rank)[len(totals) - rank])


@dataclass(frozen=True, eq=False)
class GroupEntries:
    """Which query reads which group, in order of the groups, and the least sum it wants there."""

    group: NDArray[np.int64]
    query: NDArray[np.int64]
    least: NDArray[np.uint16]


def above(
    listed: CoarseList,
    tables: NDArray[np.uint8],
    asked: GroupEntries,
    starts: NDArray[np.int64],
    low: int,
    high: int,
    room: int,
) -> list[Numbers]:
    """For each query, the places of the vectors in some groups whose sums reach what it wants."""
    held, width, _ = listed.blocks.shape
    room = min(room, int(listed.edges[high] - listed.edges[low]) * VECTORS_PER_BLOCK)
    while True:
        out = np.empty((len(tables), room), np.int32)
        counts = np.empty(len(tables), np.int64)
        call(
            kernels().list_above,
            address(listed.blocks, np.uint8, held, width, VECTORS_PER_BLOCK), held, width,
            address(tables, np.uint8, -1, 2 * width, CENTRES), len(tables),
            address(listed.edges, np.int64, len(listed.groups) + 1),
            address(starts, np.int64, len(listed.groups) + 1),
            address(asked.query, np.int64, -1), address(asked.least, np.uint16, len(asked.query)), len(asked.query),
            writable(out, np.int32, len(tables), room), room, writable(counts, np.int64, len(tables)), low, high,
        )  # fmt: skip
        if counts.max(initial=0) <= room:
            return [row[:n] for row, n in zip(out, counts.tolist(), strict=True)]
        room = int(counts.max())
