from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.media.pixels import Turn, clockwise, shrunk, upright

TURNS = {0: Turn(), 90: Turn(True, -1, 1), 180: Turn(False, -1, -1), 270: Turn(True, 1, -1)}


def test_rotation_is_clockwise() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    for degrees, turn in TURNS.items():
        assert clockwise(turn) == degrees
        np.testing.assert_array_equal(upright(pixels, turn), np.rot90(pixels, -degrees // 90))


def test_mirroring() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    np.testing.assert_array_equal(upright(pixels, Turn(across=-1)), pixels[:, ::-1])
    np.testing.assert_array_equal(upright(pixels, Turn(down=-1)), pixels[::-1])
    np.testing.assert_array_equal(upright(pixels, Turn(transposed=True)), pixels.transpose(1, 0, 2))


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 1000))
def test_shrinking_never_enlarges(width: int, height: int, short: int) -> None:
    w, h = shrunk(width, height, short)
    assert 1 <= w <= width
    assert 1 <= h <= height
    assert min(w, h) == min(short, width, height)
