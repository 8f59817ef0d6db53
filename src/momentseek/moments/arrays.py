"""Array types shared by the whole package, and the two helpers every columnar table needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
CodeArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def offsets_of(counts: Iterable[int]) -> IntArray:
    """CSR offsets of group sizes: group i occupies rows ``offsets[i]:offsets[i + 1]``.

    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    sizes = np.fromiter(counts, dtype=np.int64)
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def encode_names(names: Sequence[str]) -> tuple[tuple[str, ...], CodeArray]:
    """Distinct names in order of first appearance, and each name's position among them.

    >>> encode_names(["b", "a", "b"])
    (('b', 'a'), array([0, 1, 0], dtype=int32))
    """
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(vocabulary.__getitem__, names), dtype=np.int32, count=len(names))
    return tuple(vocabulary), codes
