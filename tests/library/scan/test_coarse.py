from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.library.scan import coarse
from momentseek.library.scan.coarse import CoarseList
from momentseek.native.library import every_processor, kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


@pytest.fixture(params=["this processor", "every processor"], scope="module", autouse=True)
def processor(request):
    with every_processor() if request.param == "every processor" else contextlib.nullcontext():
        yield


def list_of(vectors: np.ndarray) -> CoarseList:
    centres = coarse.train_centres(vectors)
    return CoarseList(centres, coarse.encode(vectors, centres), len(vectors))


def codes_of(listed: CoarseList) -> np.ndarray:
    """(vectors, pairs of columns)."""
    rows = listed.blocks.transpose(0, 2, 1).reshape(-1, listed.blocks.shape[1])[: listed.count]
    return np.stack([rows & 15, rows >> 4], axis=2).reshape(len(rows), -1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.sampled_from([1, 2, 3, 4, 7, 24, 64, 255]))
@settings(max_examples=25)
def test_sums_are_those_of_the_tables(seed, count, dim):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dim)).astype(np.float32)
    listed = list_of(vectors)
    codes = codes_of(listed)
    wide = coarse.pad_columns(vectors).reshape(count, -1, 1, 2)
    distance = np.square(wide - listed.centres).sum(axis=3)
    np.testing.assert_allclose(
        np.take_along_axis(distance, codes[..., None].astype(int), 2)[..., 0], distance.min(2), atol=1e-5
    )
    table = coarse.query_tables(listed.centres, rng.normal(size=(2, dim)).astype(np.float32))[1]
    expected = table[np.arange(table.shape[0]), codes].astype(int).sum(axis=1)
    np.testing.assert_array_equal(coarse.sums_of(listed, table)[:count], expected)


def test_tables_of_many_columns_stay_within_16_bits():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(70, 2000)).astype(np.float32)
    listed = list_of(vectors)
    table = coarse.query_tables(listed.centres, vectors[:1])[0]
    expected = table[np.arange(table.shape[0]), codes_of(listed)].astype(int).sum(axis=1)
    assert expected.max() < 2**16
    np.testing.assert_array_equal(coarse.sums_of(listed, table)[:70], expected)


@pytest.mark.parametrize("sample", [1 << 15, 1 << 13])
@pytest.mark.parametrize("queries", [1, 5])
def test_a_list_holds_the_vectors_with_the_largest_sums(monkeypatch, sample, queries):
    monkeypatch.setattr(coarse, "MAX_SAMPLE", sample)
    rng = np.random.default_rng(1)
    listed = list_of(rng.normal(size=(20_011, 12)).astype(np.float32))
    asked = rng.normal(size=(queries, 12)).astype(np.float32)
    for query, found in zip(asked, coarse.nearest(listed, asked, 400), strict=True):
        sums = coarse.sums_of(listed, coarse.query_tables(listed.centres, query[None])[0])[: listed.count]
        least = sums[found].min()
        np.testing.assert_array_equal(found, np.flatnonzero(sums >= least))
        assert 0.5 * 400 < len(found) < 2 * 400
        assert set(coarse.rank_all(listed, query)[: len(found)].tolist()) == set(found.tolist())


def test_all_that_share_a_sum_are_found_even_if_there_are_many():
    vectors = np.ones((3000, 4), np.float32)
    listed = list_of(vectors)
    assert len(coarse.nearest(listed, vectors[:1], 10)[0]) == 3000


def test_as_many_as_there_are_need_no_scan():
    listed = list_of(np.eye(5, 8, dtype=np.float32))
    assert [n.tolist() for n in coarse.nearest(listed, np.ones((2, 8), np.float32), 5)] == [[0, 1, 2, 3, 4]] * 2


def test_the_best_vectors_come_early():
    """Of 4,000 vectors in 64 columns, those nearest to a noisy copy of one are in the first tenth."""
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(4000, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    listed = list_of(vectors)
    kept = []
    for row in range(20):
        query = vectors[row] + rng.normal(size=64).astype(np.float32) * 0.1
        best = np.argsort(-(vectors @ query))[:20]
        kept.append(np.isin(best, coarse.rank_all(listed, query)[:400]).mean())
    assert np.mean(kept) > 0.95


def test_centres_of_another_list_are_refused():
    one, other = (list_of(np.ones((3, dim), np.float32)) for dim in (8, 16))
    with pytest.raises(ValueError, match="belong together"):
        CoarseList(one.centres, other.blocks, 3)
