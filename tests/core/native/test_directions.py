from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.native.kernels import kernels, main_directions, products_of

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


@given(st.integers(0, 20), st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6))
def test_products_equal_numpy(rows, vectors, columns, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((n, columns), dtype=np.float32) for n in (rows, vectors))
    np.testing.assert_allclose(products_of(x, y), x @ y.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(products_of(np.asfortranarray(x), np.asfortranarray(y)), products_of(x, y))


@given(st.integers(1, 50), st.sampled_from([0.0, 1.0, 3.0]), st.integers(0, 10**6))
def test_first_directions_have_most_variance(columns, fall, seed):
    rng = np.random.default_rng(seed)
    values = np.arange(1, columns + 1) ** -fall
    turn = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    spread = ((turn * values) @ turn.T).astype(np.float32)
    found = main_directions(spread)
    np.testing.assert_allclose(found.T @ found, np.eye(columns), atol=1e-5)
    held = np.cumsum(np.einsum("ji,jk,ki->i", found, spread, found))
    assert (held >= 0.7 * np.cumsum(values) - 1e-5).all()  # a few rounds find them nearly: 0.74 at worst of 2,000 cases


@pytest.mark.parametrize("columns", [1, 7, 40])
def test_zero_variance_gives_some_basis(columns):
    found = main_directions(np.zeros((columns, columns), np.float32))
    np.testing.assert_allclose(found.T @ found, np.eye(columns), atol=1e-6)


def test_few_vectors_leave_directions_empty():
    x = np.random.default_rng(0).standard_normal((3, 30), dtype=np.float32)
    found = main_directions(x.T @ x)
    np.testing.assert_allclose(found.T @ found, np.eye(30), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(x @ found[:, :3], axis=1), np.linalg.norm(x, axis=1), rtol=1e-3)
