from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.core.native.kernels import every_processor, kernels
from momentseek.library.scan import coarse
from momentseek.library.scan.coarse import CoarseList, NearVectors, Reach
from momentseek.library.scan.pooling import nearest_groups, train_groups
from momentseek.library.segments import quantise

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


def tables_of(listed: CoarseList, query: np.ndarray) -> tuple[np.ndarray, np.float32, np.float64]:
    """What a query's tables hold, the size of their steps, and what all sums lack."""
    asked = coarse.pad_columns(query[None]).reshape(len(listed.centres), 1, 2)
    products = asked[..., 0] * listed.centres[..., 0] + asked[..., 1] * listed.centres[..., 1]
    low = products.min(axis=1, keepdims=True)
    most = np.float32(min(127, 65535 // len(listed.centres)))
    span = max(np.float32(1e-30), (products - low).max())
    return ((products - low) * (most / span) + np.float32(0.5)).astype(np.uint8), span / most, low.astype(float).sum()


def estimates_of(listed: CoarseList, query: np.ndarray) -> np.ndarray:
    """The estimated products of all vectors, in the order of their numbers, computed slowly."""
    tables, step, base = tables_of(listed, query)
    sums = tables[np.arange(len(tables)), codes_of(listed)].astype(int).sum(axis=1)
    group = listed.group_of(np.arange(listed.count, dtype=np.int32))
    return sums * step + base + listed.groups[group] @ query


def near(listed: CoarseList, query: np.ndarray, reach: Reach, is_open: np.ndarray | None = None) -> NearVectors:
    owner = np.arange(listed.count, dtype=np.int32)
    return coarse.list_near(listed, owner, is_open, query, reach)


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.sampled_from([1, 2, 3, 4, 7, 24, 64, 255]), st.integers(1, 5))
@settings(max_examples=25)
def test_estimates_are_those_of_the_tables(seed, count, dim, groups):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dim)).astype(np.float32)
    listed = list_of(vectors, groups=min(count, groups))
    codes = codes_of(listed)
    owner = nearest_groups(*quantise(vectors), listed.groups)
    np.testing.assert_array_equal(listed.group_of(np.arange(count, dtype=np.int32)), owner)
    wide = coarse.pad_columns(vectors - listed.groups[owner]).reshape(count, -1, 1, 2)
    distance = np.square(wide - listed.centres).sum(axis=3)
    np.testing.assert_allclose(
        np.take_along_axis(distance, codes[..., None].astype(int), 2)[..., 0], distance.min(2), atol=1e-5
    )
    query = rng.normal(size=dim).astype(np.float32)
    found = near(listed, query, Reach(1, count))
    assert sorted(found.numbers.tolist()) == list(range(count))
    assert (found.share, np.float32(found.compared)) == (1.0, found.estimates.max())
    np.testing.assert_allclose(found.estimates, estimates_of(listed, query)[found.numbers], rtol=1e-4, atol=2e-3)


def test_tables_of_many_columns_stay_within_16_bits():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(70, 2000)).astype(np.float32)
    listed = list_of(vectors)
    found = near(listed, vectors[0], Reach(1, 70))
    np.testing.assert_allclose(found.estimates, estimates_of(listed, vectors[0])[found.numbers], rtol=1e-3)


@pytest.fixture(scope="module")
def large() -> tuple[CoarseList, np.ndarray]:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(20_011, 12)).astype(np.float32)
    return list_of(vectors, groups=30), rng.normal(size=(5, 12)).astype(np.float32)


@pytest.mark.parametrize("margin", [0.0, 0.5, 3.0])
def test_a_list_holds_what_comes_within_the_margin(large, margin):
    listed, queries = large
    for query in queries:
        every = estimates_of(listed, query)
        found = near(listed, query, Reach(50, 20_011, margin=margin))
        assert found.compared == pytest.approx(np.sort(every)[-50], abs=1e-3)
        assert found.spread == pytest.approx(every.std(), rel=0.1)
        least = found.compared - margin * found.spread
        assert set(np.flatnonzero(every > least + 1e-3)) <= set(found.numbers.tolist())
        assert (every[found.numbers] > least - 1e-3).all()
        assert len(set(found.numbers.tolist())) == len(found.numbers)


def test_no_more_are_listed_than_may_be_and_they_are_the_best(large):
    listed, queries = large
    for query, most in itertools.product(queries, (1, 40, 400, 5000)):
        every = estimates_of(listed, query)
        found = near(listed, query, Reach(50, most))
        assert len(set(found.numbers.tolist())) == most
        assert every[found.numbers].min() >= np.sort(every)[-most] - 1e-3


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_only_the_groups_that_promise_most_are_read_up_to_a_share(large, share):
    listed, queries = large
    for query in queries:
        found = near(listed, query, Reach(1, 20_011, share))
        groups = set(listed.group_of(found.numbers).tolist())
        promise = listed.groups @ query + 2 * listed.spreads
        assert groups == set(np.argsort(-promise)[: len(groups)].tolist())
        blocks = np.diff(listed.edges)
        assert found.share == sum(blocks[g] for g in groups) / len(listed.blocks)
        assert share <= found.share < share + blocks.max() / len(listed.blocks)


@pytest.mark.parametrize("hope", [0.5, 2.0, 4.0])
def test_a_group_is_read_if_it_may_hold_what_is_wanted(large, hope):
    listed, queries = large
    reads = []
    for query in queries:
        every = estimates_of(listed, query)
        found = near(listed, query, Reach(50, 20_011, hope=hope, margin=0.1))
        promise = listed.groups @ query + hope * listed.spreads
        least = found.compared - 0.1 * found.spread
        read = promise[listed.group_of(np.arange(20_011, dtype=np.int32))] > least + 1e-3
        assert set(np.flatnonzero(read & (every > least + 1e-3))) <= set(found.numbers.tolist())
        assert (every[found.numbers] > least - 1e-3).all()
        reads.append(found.share)
    assert np.mean(reads) < {0.5: 0.2, 2.0: 0.6, 4.0: 1.01}[hope]


def test_vectors_of_closed_videos_count_for_nothing(large):
    listed, queries = large
    is_open = np.random.default_rng(4).random(20_011) < 0.3
    every = estimates_of(listed, queries[0])
    found = near(listed, queries[0], Reach(50, 20_011, margin=0.5), is_open)
    assert is_open[found.numbers].all()
    assert found.compared == pytest.approx(np.sort(every[is_open])[-50], abs=1e-3)
    assert set(np.flatnonzero(is_open & (every > found.compared - 0.499 * found.spread))) <= set(found.numbers.tolist())
    none = near(listed, queries[0], Reach(50, 20_011, hope=1.0, margin=0.5), np.zeros(20_011, bool))
    assert (len(none.numbers), none.compared, none.share) == (0, -np.inf, 1.0)


def test_a_group_too_far_away_is_left_out_and_one_that_is_near_is_taken_whole():
    """With means a thousand spreads apart, the offsets of groups lie beyond every sum of a table."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    vectors[:100] += 1000
    vectors[100:200] -= 1000
    listed = list_of(vectors, groups=3)
    found = near(listed, np.ones(8, np.float32), Reach(100, 120)).numbers
    assert set(range(100)) < set(found.tolist()) <= {*range(100), *range(200, 300)}
    found = near(listed, np.ones(8, np.float32), Reach(10, 300, hope=3.0, margin=0.1))
    assert set(found.numbers.tolist()) == set(range(100))
    assert found.share < 0.5


def test_of_equal_estimates_there_may_be_very_many():
    vectors = np.ones((3000, 4), np.float32)
    listed = list_of(vectors)
    assert len(near(listed, vectors[0], Reach(10, 3000, margin=0.0)).numbers) == 3000
    assert len(near(listed, vectors[0], Reach(10, 70, margin=0.0)).numbers) == 70


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
        kept.append(np.isin(best, near(listed, query, Reach(20, 400)).numbers).mean())
    assert np.mean(kept) > 0.95


def test_what_lies_outside_is_an_error_and_is_not_read(large):
    listed, queries = large
    strange = np.where(np.arange(20_011) == 7, 10**6, 0).astype(np.int32)
    with pytest.raises(IndexError):
        coarse.list_near(listed, strange, np.ones(1, bool), queries[0], Reach(1, 20_011))
    with pytest.raises(TypeError):
        near(listed, queries[0].astype(np.float64), Reach(1, 10))
    with pytest.raises(IndexError):
        near(listed, queries[0], Reach(0, 10))


def test_centres_of_another_list_are_refused():
    one, other = (list_of(np.ones((3, dim), np.float32)) for dim in (8, 16))
    with pytest.raises(ValueError, match="belong together"):
        replace(one, blocks=other.blocks)
    with pytest.raises(ValueError, match="belong together"):
        replace(one, edges=np.array([0, 2]))
    with pytest.raises(ValueError, match="belong together"):
        replace(one, count=2)
