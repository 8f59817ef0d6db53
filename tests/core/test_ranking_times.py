from __future__ import annotations

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.ranking import moments_of

EDGES = np.array([0.0, 1.5, 3.0, 4.0, 0.0, 2.0, 4.0])
"""Edges of a video of three clips and, from index 4, of one of two."""


def test_end_time_rules():
    first, last, place = np.array([0, 1, 0]), np.array([2, 1, 1]), np.array([0, 0, 4])
    start, end = moments_of(first, last, EDGES, place)
    assert start.tolist() == [0.0, 1.5, 0.0]
    assert end.tolist() == [4.0, 3.0, 4.0]
    start, end = moments_of(first, last, EDGES, place, "start")
    assert start.tolist() == [0.0, 1.5, 0.0]
    assert end.tolist() == [3.0, 3.0, 2.0]


def test_rejects_unknown_rule():
    with pytest.raises(MomentseekError, match="inclusive or start"):
        moments_of(np.array([0]), np.array([0]), EDGES, 0, "middle")  # type: ignore[arg-type]
