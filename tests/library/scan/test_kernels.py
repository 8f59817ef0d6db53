from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.library.scan.choice import KERNEL_VARIABLE, KernelChoice
from momentseek.library.scan.kernels import NumpyKernel, integer_product, split_bytes
from momentseek.library.scan.queries import quantise_queries
from momentseek.library.segments import Segment, build_segment


def numba_kernel():
    pytest.importorskip("numba")
    from momentseek.library.scan.compiled import CompiledKernel

    return CompiledKernel()


def random_segment(rng: np.random.Generator, videos: int, dim: int, longest: int = 6) -> Segment:
    rows = [rng.normal(size=(n, dim)).astype(np.float32) for n in rng.integers(0, longest, videos)]
    return build_segment("vision", range(videos), [r / np.linalg.norm(r, axis=1, keepdims=True) for r in rows])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 37, 64, 256, 1500]), st.integers(1, 9))
def test_bounds_of_all_kernels_agree_to_the_last_bit(seed, dim, count):
    rng = np.random.default_rng(seed)
    parts = [random_segment(rng, 12, dim), random_segment(rng, 5, dim)]
    queries = quantise_queries(rng.normal(size=(count, dim)).astype(np.float32), dim)
    places = rng.permutation(12)[:7]
    pieces = [(parts[0], places), (parts[1], None)]
    mine, other = NumpyKernel().bounds(pieces, queries), numba_kernel().bounds(pieces, queries)
    assert mine.shape == (count, 12)
    np.testing.assert_array_equal(mine, other)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 64, 256, 1500]), st.sampled_from([1e-7, 1e-3, 1, 30]))
def test_bounds_are_never_below_the_score_nor_far_above(seed, dim, size):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(40, dim)) * size).astype(np.float32)
    part = build_segment("vision", range(40), list(rows[:, None]))
    queries = quantise_queries(rng.normal(size=(2, dim)).astype(np.float32), dim)
    bounds = NumpyKernel().bounds([(part, None)], queries) + queries.floors[:, None]
    for bound, query in zip(bounds, queries.vectors, strict=True):
        for score in (NumpyKernel().scores([(part, None)], query), numba_kernel().scores([(part, None)], query)):
            assert (score <= bound).all()
        worst = 2 * (queries.slacks.max() * part.scales + queries.floors.max())
        assert (bound - score <= worst).all()


def test_scores_of_all_kernels_agree_and_equal_rows_score_alike():
    rng = np.random.default_rng(5)
    part = random_segment(rng, 50, 256)
    twice = Segment("t", "vision", part.ids, part.offsets, part.codes, part.scales, part.half)
    query = rng.normal(size=256).astype(np.float32)
    pieces = [(part, None), (twice, np.arange(50)[::-1].copy())]
    mine, other = NumpyKernel().scores(pieces, query), numba_kernel().scores(pieces, query)
    np.testing.assert_allclose(mine, other, rtol=0, atol=1e-5)
    for scores in (mine, other):
        np.testing.assert_array_equal(scores[:50], scores[50:][::-1])


def test_enough_rows_are_shared_among_threads_and_come_back_in_order():
    rng = np.random.default_rng(6)
    part = random_segment(rng, 9000, 16)
    queries = quantise_queries(rng.normal(size=(3, 16)).astype(np.float32), 16)
    np.testing.assert_array_equal(
        NumpyKernel().bounds([(part, None)], queries), numba_kernel().bounds([(part, None)], queries)
    )


@given(st.lists(st.integers(-32767, 32767), min_size=1, max_size=20))
def test_two_bytes_make_up_the_code(codes):
    high, low = split_bytes(np.array(codes, np.int16))
    assert (256 * high.astype(int) + low).tolist() == codes
    assert np.abs([high, low]).max() <= 128


def test_products_are_exact_at_the_extremes():
    codes = np.full((3, 1024), -127, np.int8)
    weights = np.full((1, 1024), (2**31 - 1) // (128 * 1024), np.int16)
    product = integer_product(codes, np.concatenate(split_bytes(weights)).T.astype(np.float32))
    assert product.tolist() == [[-127 * 1024 * int(weights[0, 0])]] * 3


def test_numpy_is_used_until_loading_numba_has_paid(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.delenv(KERNEL_VARIABLE, raising=False)
    monkeypatch.setattr("momentseek.library.scan.choice.is_compiled_loaded", lambda: False)
    choice = KernelChoice()
    assert choice.kernel(20_000, 1, 256).name == "numpy"
    assert choice.kernel(100_000_000, 1, 256).name == "numba"
    assert choice.kernel(10, 1, 256).name == "numba"


def test_without_numba_numpy_does_everything(monkeypatch):
    monkeypatch.setattr("momentseek.library.scan.choice.is_installed", lambda module: False)
    assert KernelChoice().kernel(10**9, 100, 256).name == "numpy"


def test_the_kernel_can_be_forced(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setenv(KERNEL_VARIABLE, "numpy")
    assert KernelChoice().kernel(10**9, 1, 256).name == "numpy"
    monkeypatch.setenv(KERNEL_VARIABLE, "numba")
    assert KernelChoice().kernel(1, 1, 256).name == "numba"
