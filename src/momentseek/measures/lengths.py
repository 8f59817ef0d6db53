"""QVHighlights' length ranges: short (0, 10], middle (10, 30], long (30, 150] seconds."""

from __future__ import annotations

from typing import Literal

import numpy as np

from momentseek.moments import Judgements
from momentseek.moments.arrays import BoolArray

LengthRange = Literal["full", "short", "middle", "long"]
LENGTH_BOUNDS_SECONDS: dict[str, tuple[float, float]] = {"short": (0, 10), "middle": (10, 30), "long": (30, 150)}


def in_range(truth: Judgements, length: LengthRange) -> tuple[BoolArray, BoolArray]:
    """Which judged moments lie in the range, and which queries have one that does."""
    if length == "full":
        return np.ones(len(truth.video), dtype=bool), np.ones(len(truth), dtype=bool)
    low, high = LENGTH_BOUNDS_SECONDS[length]
    seconds = truth.end - truth.start
    moments = (low < seconds) & (seconds <= high)
    queries = np.zeros(len(truth), dtype=bool)
    queries[truth.row_query[moments]] = True
    return moments, queries
