"""Array types for the whole package, and helpers for tables of columns and scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import overload

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
CodeArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
Positions = NDArray[np.intp]
"""Indices into an array, in numpy's index type."""


def offsets_of(counts: Iterable[int]) -> IntArray:
    """Return CSR offsets of group sizes: group i occupies rows ``offsets[i]:offsets[i + 1]``.

    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    sizes = np.fromiter(counts, dtype=np.int64)
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


class EncodedNames(Sequence[str]):
    """A sequence of names, stored as indices into a tuple of distinct names.

    >>> names = EncodedNames(("b", "a"), np.array([0, 1, 0], np.int32))
    >>> list(names), names[1:]
    (['b', 'a', 'b'], ['a', 'b'])
    """

    def __init__(self, vocabulary: tuple[str, ...], codes: CodeArray) -> None:
        self.vocabulary, self.codes = vocabulary, codes

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        if isinstance(position, slice):
            return [self.vocabulary[code] for code in self.codes[position].tolist()]
        return self.vocabulary[int(self.codes[position])]

    def __iter__(self) -> Iterator[str]:
        return map(self.vocabulary.__getitem__, self.codes.tolist())


def encode_names(names: Sequence[str]) -> tuple[tuple[str, ...], CodeArray]:
    """Return the distinct names in order of first appearance, and each name's index among them.

    >>> encode_names(["b", "a", "b"])
    (('b', 'a'), array([0, 1, 0], dtype=int32))
    """
    if isinstance(names, EncodedNames):
        return names.vocabulary, names.codes
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(vocabulary.__getitem__, names), dtype=np.int32, count=len(names))
    return tuple(vocabulary), codes


def stable_order(key: IntArray) -> IntArray:
    """Return the stable sorting permutation of non-negative integers.

    Key and position are packed into one number and sorted by value, which numpy does with vector instructions: three
    times as fast as a stable argsort. Keys too large to share 63 bits with the position use the latter.

    >>> stable_order(np.array([3, 1, 3, 0])).tolist()
    [3, 1, 0, 2]
    """
    bits = len(key).bit_length()
    if int(key.max(initial=0)).bit_length() + bits > 63:
        return np.argsort(key, kind="stable")
    packed = (key << bits) | np.arange(len(key))
    packed.sort()
    return packed & ((1 << bits) - 1)


def positions_of(wanted: IntArray, known: IntArray) -> IntArray:
    """Return the index of each wanted number among the known ones, which are sorted and distinct; -1 if missing.

    A hash table (Fibonacci hashing, Knuth 1973) finds nearly all of them; binary search finds the few that collide.
    This is several times as fast as searching for each.

    >>> positions_of(np.array([7, 3, 5]), np.array([1, 3, 7])).tolist()
    [2, 1, -1]
    """
    if not len(known):
        return np.full(len(wanted), -1)
    bits = (8 * len(known)).bit_length()

    def slot(numbers: IntArray) -> NDArray[np.uint64]:
        return (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)

    table = np.full(1 << bits, -1)
    table[slot(known)] = np.arange(len(known))
    position = table[slot(wanted)]
    unsure = np.flatnonzero((position >= 0) & (known[position] != wanted))
    at = np.minimum(np.searchsorted(known, wanted[unsure]), len(known) - 1)
    position[unsure] = np.where(known[at] == wanted[unsure], at, -1)
    return position


def runs_of_true(mask: BoolArray) -> tuple[Positions, Positions]:
    """Return the first and last (exclusive) indices of the runs of true values.

    >>> runs_of_true(np.array([True, True, False, True]))
    (array([0, 3]), array([2, 4]))
    """
    steps = np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))
    return np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)


def moving_mean(values: FloatArray, width: int) -> FloatArray:
    """Return the moving mean over ``width`` values (an odd number), fewer at the ends, along the first axis.

    >>> moving_mean(np.array([0.0, 0.0, 3.0, 0.0]), 3).tolist()
    [0.0, 1.0, 1.0, 1.5]
    """
    half = width // 2
    sums = np.concatenate((np.zeros((1, *values.shape[1:]), dtype=np.float64), np.cumsum(values, axis=0, dtype=float)))
    at = np.arange(len(values))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    count = (high - low).reshape(-1, *([1] * (values.ndim - 1)))
    result: FloatArray = (sums[high] - sums[low]) / count
    return result
