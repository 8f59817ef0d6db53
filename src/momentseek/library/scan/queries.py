"""Queries made ready for an integer scan, with a bound on what the integers may miss.

A stored row ``x`` has codes ``c`` and a scale ``s`` with ``|x - s c| <= s / 2`` in every column; its float16 copy
differs from ``x`` by at most ``2**-11 |x| <= 127 s / 2048``, or ``2**-25`` if that is more. A query ``v`` gets int16
codes ``b`` and a step ``t`` with ``v = t b + f``. Hence, for the float16 row ``h``,

    h · v  <=  s (t c·b + slack) + floor,    slack = (1/2 + 127/2048 + 1/256) |v|₁ + 127 |f|₁,   floor = 2**-24 |v|₁

where the last fraction of slack pays for float32 rounding. The scan therefore gives each video an *upper bound* of its
exact score, and the exact search (:mod:`exact`) needs no guess about how many videos to look at again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library.segments import MAX_CODE

MAX_QUERY_CODE = np.iinfo(np.int16).max


@dataclass(frozen=True, eq=False)
class QuantisedQueries:
    """Queries as float32 and as int16 codes: ``vectors ~ codes * steps``."""

    vectors: NDArray[np.float32]
    codes: NDArray[np.int16]
    steps: NDArray[np.float32]
    slacks: NDArray[np.float32]
    floors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.vectors)

    def part(self, start: int, stop: int) -> QuantisedQueries:
        """The queries from ``start`` up to ``stop``."""
        keep = slice(start, stop)
        return QuantisedQueries(
            self.vectors[keep], self.codes[keep], self.steps[keep], self.slacks[keep], self.floors[keep]
        )


def quantise_queries(queries: NDArray[Any], dim: int) -> QuantisedQueries:
    """Codes for queries ``(q, dim)``; one vector ``(dim,)`` counts as one query.

    The codes are as wide as an int32 sum over all columns allows.

    >>> ready = quantise_queries(np.array([0.6, -0.8], np.float32), 2)
    >>> ready.codes.tolist(), bool(abs(ready.codes * ready.steps - ready.vectors).max() < 2e-5)
    ([[24575, -32767]], True)
    """
    vectors = np.atleast_2d(np.ascontiguousarray(queries, dtype=np.float32))
    if vectors.ndim != 2 or vectors.shape[1] != dim:
        raise MomentseekError(
            f"a query of {vectors.shape[-1]} columns cannot search vectors of {dim}; encode it by the library's encoder"
        )
    if not np.isfinite(vectors).all():
        raise MomentseekError("the query's vector is not finite; check the encoder")
    widest = min(MAX_QUERY_CODE, (2**31 - 1) // (128 * max(dim, 1)))
    steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(widest)
    codes = np.rint(vectors / np.where(steps > 0, steps, 1)[:, None]).astype(np.int16)
    wide = vectors.astype(np.float64)
    missed = np.abs(wide - codes * steps[:, None].astype(np.float64)).sum(axis=1)
    size = np.abs(wide).sum(axis=1)
    slacks = (0.5 + MAX_CODE / 2048 + 1 / 256) * size + MAX_CODE * missed
    floors = size * 2.0**-24
    return QuantisedQueries(
        vectors, codes, steps.astype(np.float32), slacks.astype(np.float32), floors.astype(np.float32)
    )
