"""Products in blocks are those at once, bit for bit, and no thread of BLAS is woken for them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.search import stream_index as products
from momentseek.search.stream_index import row_products


@given(seed=st.integers(0, 10**6), rows=st.integers(0, 3000), dim=st.sampled_from([8, 64, 384]))
def test_a_product_in_blocks_is_the_product_at_once(seed, rows, dim):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, dim)).astype(np.float32)
    vector = rng.standard_normal(dim).astype(np.float32)
    found = row_products(table, vector)
    assert (found.shape, found.dtype) == ((rows,), np.float32)
    np.testing.assert_allclose(found, table.astype(np.float64) @ vector.astype(np.float64), atol=1e-4)


def test_blocks_are_smaller_than_what_is_shared_among_threads(monkeypatch):
    table = np.random.default_rng(1).standard_normal((1000, 256)).astype(np.float32)
    whole = row_products(table, table[0])
    monkeypatch.setattr(products, "BLOCK_VALUES", 64 * 256)
    np.testing.assert_array_equal(row_products(table, table[0]), whole)
