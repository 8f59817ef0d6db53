"""Calibration of confidence levels: the share of correct hits at each level, with intervals.

A reliability diagram plots the stated confidence against how often it was right (Murphy and Winkler, Reliability of
Subjective Probability Forecasts, 1977).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

RIGHT_RELEVANCE = 3.0
"""Minimum relevance of a correct hit, on TVR-Ranking's scale from 0 to 4."""
NORMAL_95 = 1.959963984540054
"""Standard deviations on either side of the mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True)
class ReliabilityBin:
    """The number of hits at one level, or in one range of scores, and how many of them are right.

    >>> strong = ReliabilityBin("strong", right=15, count=16)
    >>> strong.share, *(round(end, 2) for end in strong.interval)
    (0.9375, 0.72, 0.99)
    """

    name: str
    right: int
    count: int

    @property
    def share(self) -> float | None:
        """Share of the hits that are right; None if there are no hits."""
        return self.right / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the share, by Wilson (1927), which also suits small numbers of hits."""
        if not self.count:
            return 0.0, 1.0
        n, share, z = self.count, self.right / self.count, NORMAL_95
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def bins_by_level(hits: Iterable[tuple[str, bool]], levels: Sequence[str]) -> list[ReliabilityBin]:
    """Return a bin for each level, given the level of each hit and whether it is right.

    >>> [(bin.name, bin.right, bin.count) for bin in bins_by_level([("b", True), ("b", False)], ["a", "b"])]
    [('a', 0, 0), ('b', 1, 2)]
    """
    given = list(hits)
    return [
        ReliabilityBin(level, sum(right for one, right in given if one == level), sum(one == level for one, _ in given))
        for level in levels
    ]
