"""Mean and standard deviation over runs that differ only in their seed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Mean and standard deviation (of a sample: n - 1) over the seeds that have a value."""

    mean: float
    sd: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.sd:.4f}" if self.count > 1 else f"{self.mean:.4f}"


def spread(values: Iterable[float]) -> SeedSpread:
    """Mean ± sd; NaN are left out, and the sd of one value is not known.

    >>> spread([1.0, 3.0, math.nan])
    SeedSpread(mean=2.0, sd=1.4142135623730951, count=2)
    >>> print(spread([0.4, 0.5, 0.6]))
    0.5000 ± 0.1000
    """
    known = [v for v in values if not math.isnan(v)]
    if not known:
        return SeedSpread(math.nan, math.nan, 0)
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return SeedSpread(mean, math.nan, 1)
    return SeedSpread(mean, math.sqrt(math.fsum((v - mean) ** 2 for v in known) / (len(known) - 1)), len(known))
