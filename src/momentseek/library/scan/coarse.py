"""The coarse list: scene means in 4 bits per two columns, read from tables in registers (``native/listing.c``).

The vectors lie in groups of like ones (:mod:`groups`), and what is coded is the difference from the group's mean.
Product quantisation (Jégou et al. 2011) with 16 centres per pair of columns takes 64 bytes for 256 columns, a quarter
of int8, and is read about as fast as memory delivers it (André et al. 2017). The sums that a query's tables give are
estimates of its products. A query reads the groups that promise most, until those left promise less than what it has
found by then.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from momentseek.core.native.kernels import address, call, kernels, writable
from momentseek.library.scan.kernels import QuantisedQueries
from momentseek.library.scan.threads import run_together
from momentseek.library.segments import check_map

MAX_TRAINING_MEANS = 65_536
"""Number of scene means, at most, from which the centres are learnt."""
TRAINING_ROUNDS = 20
CENTRES = 16
VECTORS_PER_BLOCK = 32
BLOCKS_PER_TASK = 1 << 10
NO_LIMIT = float("inf")

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CoarseList:
    """Compressed vectors for the first, approximate step of a search: 4 bits per two columns, sorted by group."""

    centres: Floats
    """(pairs of columns, 16, 2)."""
    groups: Floats
    """(groups, columns): the mean of each."""
    spreads: Floats
    """How far a group's vectors are from its mean along one direction (root mean square)."""
    edges: NDArray[np.int64]
    """The first block of each group, and the number of all blocks."""
    blocks: NDArray[np.uint8]
    """(blocks, bytes per vector, 32): a byte holds the codes of two pairs of columns."""
    numbers: Numbers
    """The number of the vector at each place of the blocks; -1 for padding at the end of a group."""
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

    def group_of(self, numbers: Numbers) -> NDArray[np.int64]:
        """The group of each of some vectors, by their numbers."""
        places = np.empty(self.count, np.int64)
        there = np.flatnonzero(self.numbers >= 0)
        places[self.numbers[there]] = there
        return np.searchsorted(self.edges, places[numbers] // VECTORS_PER_BLOCK, side="right") - 1

    @cached_property
    def given(self) -> tuple[int, ...]:
        """The arguments of a kernel for this list."""
        pairs, (count, dim), held = len(self.centres), self.groups.shape, len(self.blocks)
        return (
            address(self.centres, np.float32, pairs, CENTRES, 2), pairs, address(self.groups, np.float32, count, dim),
            address(self.spreads, np.float32, count), address(self.edges, np.int64, count + 1), count, dim,
            address(self.blocks, np.uint8, held, pairs // 2, VECTORS_PER_BLOCK), held,
            address(self.numbers, np.int32, held * VECTORS_PER_BLOCK),
        )  # fmt: skip


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
    """Encode vectors as blocks; the last block is padded."""
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
    """The layout of a list that stores vectors group after group: the number at each place, and the first blocks.

    >>> numbers, edges = lay_out(np.array([1, 2]))
    >>> numbers[[0, 1, 32, 33, 34]].tolist(), edges.tolist()
    ([0, -1, 1, 2, -1], [0, 1, 2])
    """
    edges = np.concatenate([[0], np.cumsum(-(-sizes // VECTORS_PER_BLOCK))])
    numbers = np.full(int(edges[-1]) * VECTORS_PER_BLOCK, -1, np.int32)
    count = np.arange(int(sizes.sum()))
    numbers[np.repeat(edges[:-1] * VECTORS_PER_BLOCK - (np.cumsum(sizes) - sizes), sizes) + count] = count
    return numbers, edges


@dataclass(frozen=True)
class Reach:
    """Limits of a query's search in a coarse list."""

    rank: int
    """Rank of the vector whose estimate the others are compared with."""
    most: int
    """Largest number of vectors to list."""
    share: float = 1.0
    """Largest share of the list to read."""
    hope: float | None = None
    """Assumed distance of a group's best vectors from its mean, in spreads; None reads every group."""
    margin: float | None = None
    """How far below the compared estimate others may be, in spreads of products; None lists up to ``most``."""


@dataclass(frozen=True, eq=False)
class NearVectors:
    """The vectors that a query finds in a coarse list, unordered."""

    numbers: Numbers
    estimates: Floats
    """Estimates of their products with the query."""
    compared: float
    """The estimate of the vector at the requested rank; -inf if there are fewer."""
    spread: float
    """Standard deviation of the query's products with all vectors, as far as their groups tell."""
    share: float
    """Share of the list that was read."""


def list_near(
    listed: CoarseList, owner: Numbers, is_open: NDArray[np.bool_] | None, query: Floats, reach: Reach
) -> NearVectors:
    """The vectors whose estimated products with a query are largest.

    ``owner`` gives the video of each vector; vectors of videos that are not open are left out.
    """
    most = max(1, min(reach.most, listed.count))
    numbers, estimates = np.empty(most, np.int32), np.empty(most, np.float32)
    done, seen = np.zeros(2, np.int64), np.zeros(2)
    call(
        kernels().list_near,
        *listed.given, address(owner, np.int32, listed.count), listed.count,
        None if is_open is None else address(is_open, np.bool_, -1), 0 if is_open is None else len(is_open),
        address(query, np.float32, listed.groups.shape[1]), reach.rank,
        NO_LIMIT if reach.hope is None else reach.hope, NO_LIMIT if reach.margin is None else reach.margin,
        reach.share, most,
        writable(numbers, np.int32, most), writable(estimates, np.float32, most), writable(done, np.int64, 2),
        writable(seen, np.float64, 2),
    )  # fmt: skip
    found, blocks = done.tolist()
    compared, spread = seen.tolist()
    return NearVectors(numbers[:found], estimates[:found], compared, spread, blocks / max(1, len(listed.blocks)))


@dataclass(frozen=True, eq=False)
class SceneMeans:
    """Scene means of numbered videos, as int8 codes with one scale per row."""

    name: str
    ids: NDArray[np.int64]
    """Ids of the videos, by their numbers."""
    owner: NDArray[np.int32]
    """The number of each mean's video."""
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    mapped: mmap.mmap | None = None
    """The map of the file of codes, if it was not read into memory."""

    def __post_init__(self) -> None:
        if not len(self.owner) == len(self.scales) == len(self.codes):
            raise ValueError("the scene means and their videos do not belong together")
        if self.owner.min(initial=0) < 0 or self.owner.max(initial=-1) >= len(self.ids):
            raise ValueError("a scene mean has no video")

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.codes.shape[1])

    @property
    def rows(self) -> int:
        """Number of means."""
        return len(self.scales)

    def check_size(self) -> None:
        """Refuse a file that was truncated since it was mapped."""
        check_map(self.mapped, f"the plan's means {self.name}")

    @cached_property
    def given(self) -> tuple[int, ...]:
        """The arguments of a kernel for these means."""
        return (
            address(self.codes, np.int8, self.rows, self.dim), address(self.scales, np.float32, self.rows),
            address(self.owner, np.int32, self.rows), self.rows, self.dim,
        )  # fmt: skip

    def videos(self, numbers: NDArray[np.int32], query: QuantisedQueries) -> tuple[Numbers, NDArray[np.float32]]:
        """The videos of some means, by their numbers, and the largest upper bound of each one's products with a query.

        The largest comes first; ties are in the order of the list. A mean that is NaN never matches.
        """
        videos, bounds = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.float32)
        done = np.zeros(1, np.int64)
        call(
            kernels().videos_of_means,
            *self.given, address(numbers, np.int32, -1), len(numbers), address(query.codes, np.int16, 1, self.dim),
            address(query.steps, np.float32, 1), address(query.slacks, np.float32, 1),
            writable(videos, np.int32, -1), writable(bounds, np.float32, -1), writable(done, np.int64, 1),
        )  # fmt: skip
        return videos[: done.item()], bounds[: done.item()]
