from __future__ import annotations

import numpy as np
import pytest

from momentseek.core.native.kernels import as_floats, every_processor, float_copy, kernels

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_every_half_float_converts_as_in_numpy():
    with np.errstate(all="ignore"):
        expected = EVERY.astype(np.float32)
    np.testing.assert_array_equal(float_copy(EVERY), expected)
    np.testing.assert_array_equal(as_floats(EVERY[5:20].reshape(3, 5)), expected[5:20].reshape(3, 5))
    if kernels() is not None:
        with every_processor():
            np.testing.assert_array_equal(float_copy(EVERY), expected)


@pytest.mark.parametrize("array", [np.eye(3, dtype=np.float32), np.eye(4, dtype=np.float16)[::2].T, np.arange(3)])
def test_other_arrays_become_floats_too(array):
    np.testing.assert_array_equal(as_floats(array), array)
    copy = float_copy(array)
    assert copy.dtype == np.float32
    assert copy.flags.c_contiguous
    assert not np.shares_memory(copy, array)


def test_float32_is_not_copied():
    array = np.eye(3, dtype=np.float32)
    assert as_floats(array) is array
