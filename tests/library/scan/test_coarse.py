from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.library.scan import coarse
from momentseek.library.scan.coarse import CoarseList
from momentseek.library.scan.groups import nearest_groups, train_groups
from momentseek.library.segments import quantise
from momentseek.native.library import every_processor, kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


@pytest.fixture(params=["this processor", "every processor"], scope="module", autouse=True)
def processor(request):
    with every_processor() if request.param == "every processor" else contextlib.nullcontext():
        yield


def list_of(vectors: np.ndarray, groups: int = 1) -> CoarseList:
    means = train_groups(*quantise(vectors), groups)
    owner = nearest_groups(*quantise(vectors), means)
    rest = vectors - means[owner]
    centres = coarse.train_centres(rest)
    places, edges = coarse.lay_out(np.bincount(owner, minlength=groups))
    numbers = np.where(places < 0, -1, np.argsort(owner, kind="stable")[places]).astype(np.int32)
    coded = coarse.encode(np.where(numbers[:, None] < 0, 0, rest[numbers]).astype(np.float32), centres)
    spreads = np.array([np.sqrt(np.square(rest[owner == g]).mean()) for g in range(groups)], np.float32)
    return CoarseList(centres, means, np.nan_to_num(spreads), edges, coded, numbers, len(vectors))


def codes_of(listed: CoarseList) -> np.ndarray:
    """(vectors, pairs of columns), in the order of the vectors' numbers."""
    rows = listed.blocks.transpose(0, 2, 1).reshape(-1, listed.blocks.shape[1])
    codes = np.stack([rows & 15, rows >> 4], axis=2).reshape(len(rows), -1)
    ordered = np.empty((listed.count, codes.shape[1]), np.uint8)
    ordered[listed.numbers[listed.numbers >= 0]] = codes[listed.numbers >= 0]
    return ordered


def by_number(listed: CoarseList, values: np.ndarray) -> np.ndarray:
    """Values at the places of a list, in the order of the vectors' numbers."""
    ordered = np.empty(listed.count, np.int64)
    ordered[listed.numbers[listed.numbers >= 0]] = values.reshape(-1)[listed.numbers >= 0]
    return ordered


def totals_of(listed: CoarseList, query: np.ndarray) -> np.ndarray:
    """The sum of each vector with what its group adds, in the order of the numbers."""
    ready = coarse.ready_queries(listed, query[None])
    return by_number(listed, coarse.totals_of(listed, ready, 0, np.arange(len(listed.blocks))))


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.sampled_from([1, 2, 3, 4, 7, 24, 64, 255]), st.integers(1, 5))
@settings(max_examples=25)
def test_sums_are_those_of_the_tables(seed, count, dim, groups):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dim)).astype(np.float32)
    listed = list_of(vectors, groups=min(count, groups))
    codes = codes_of(listed)
    owner = nearest_groups(*quantise(vectors), listed.groups)
    wide = coarse.pad_columns(vectors - listed.groups[owner]).reshape(count, -1, 1, 2)
    distance = np.square(wide - listed.centres).sum(axis=3)
    np.testing.assert_allclose(
        np.take_along_axis(distance, codes[..., None].astype(int), 2)[..., 0], distance.min(2), atol=1e-5
    )
    table = coarse.query_tables(listed.centres, rng.normal(size=(2, dim)).astype(np.float32))[0][1]
    expected = table[np.arange(table.shape[0]), codes].astype(int).sum(axis=1)
    every = np.arange(len(listed.blocks))
    np.testing.assert_array_equal(by_number(listed, coarse.sums_of(listed, table, every)), expected)
    np.testing.assert_array_equal(listed.sizes, np.bincount(owner, minlength=len(listed.groups)))


def test_tables_of_many_columns_stay_within_16_bits():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(70, 2000)).astype(np.float32)
    listed = list_of(vectors)
    table = coarse.query_tables(listed.centres, vectors[:1])[0][0]
    expected = table[np.arange(table.shape[0]), codes_of(listed)].astype(int).sum(axis=1)
    assert expected.max() < 2**16
    found = coarse.sums_of(listed, table, np.arange(len(listed.blocks)))
    np.testing.assert_array_equal(by_number(listed, found), expected)


@pytest.mark.parametrize("sample", [1 << 15, 1 << 13])
@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_list_holds_the_vectors_with_the_largest_sums_of_the_groups_that_are_read(
    monkeypatch, sample, queries, share
):
    monkeypatch.setattr(coarse, "MAX_SAMPLE", sample)
    rng = np.random.default_rng(1)
    listed = list_of(rng.normal(size=(20_011, 12)).astype(np.float32), groups=30)
    asked = rng.normal(size=(queries, 12)).astype(np.float32)
    for query, found in zip(asked, coarse.nearest(listed, asked, 400, share), strict=True):
        totals = totals_of(listed, query)
        order, reach = coarse.rank_all(listed, query)
        assert sorted(order.tolist()) == list(range(20_011))
        assert (np.diff(totals[order]) <= 0).all()
        there = order[reach < share]
        assert share == 1.0 or share * 20_011 <= len(there) < share * 20_011 + listed.sizes.max()
        least = totals[found].min()
        np.testing.assert_array_equal(np.sort(found), np.sort(there[totals[there] >= least]))
        assert 0.5 * 400 < len(found) < 2 * 400


def test_a_group_too_far_away_is_left_out_and_one_that_is_near_is_taken_whole():
    """With means a thousand spreads apart, the offsets of groups lie beyond every sum of a table."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    vectors[:100] += 1000
    vectors[100:200] -= 1000
    listed = list_of(vectors, groups=3)
    found = coarse.nearest(listed, np.ones((2, 8), np.float32), 120)
    assert [set(range(100)) < set(f.tolist()) <= {*range(100), *range(200, 300)} for f in found] == [True, True]


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
        kept.append(np.isin(best, coarse.rank_all(listed, query)[0][:400]).mean())
    assert np.mean(kept) > 0.95


def test_centres_of_another_list_are_refused():
    one, other = (list_of(np.ones((3, dim), np.float32)) for dim in (8, 16))
    with pytest.raises(ValueError, match="belong together"):
        replace(one, blocks=other.blocks)
    with pytest.raises(ValueError, match="belong together"):
        replace(one, edges=np.array([0, 2]))
    with pytest.raises(ValueError, match="belong together"):
        replace(one, count=2)
