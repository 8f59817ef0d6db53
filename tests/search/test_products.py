"""A row's product has the same bits whichever rows it is computed with."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.search.stream_index import row_products


@given(seed=st.integers(0, 10**6), rows=st.integers(0, 3000), dim=st.sampled_from([8, 64, 384]))
def test_products_are_those_of_numbers_of_twice_the_length(seed, rows, dim):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, dim)).astype(np.float32)
    vector = rng.standard_normal(dim).astype(np.float32)
    found = row_products(table, vector)
    assert (found.shape, found.dtype) == ((rows,), np.float32)
    np.testing.assert_allclose(found, table.astype(np.float64) @ vector.astype(np.float64), atol=1e-4)


@given(step=st.integers(1, 50), dim=st.sampled_from([8, 259, 931]))
def test_a_row_has_the_same_product_among_any_others(step, dim):
    table = np.random.default_rng(step).standard_normal((120, dim)).astype(np.float32)
    parts = [row_products(table[at : at + step], table[0]) for at in range(0, len(table), step)]
    np.testing.assert_array_equal(np.concatenate(parts), row_products(table, table[0]))
