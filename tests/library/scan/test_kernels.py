from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.core.native.kernels import every_processor, kernels
from momentseek.library.scan.kernels import (
    KERNEL_VARIABLE,
    NumpyKernel,
    best_kernel,
    integer_product,
    quantise_queries,
    split_bytes,
)
from momentseek.library.segments import Segment, build_segment, read_segment, write_segment

needs_kernels = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")
WIDTHS = st.sampled_from([1, 2, 7, 15, 16, 24, 37, 64, 255, 256, 384, 512, 768, 1500])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(params=["this processor", "every processor"], scope="module")
def compiled(request):
    """The kernel in C, with what this processor has and with what all have."""
    from momentseek.library.scan.kernels import CompiledKernel

    with every_processor() if request.param == "every processor" else contextlib.nullcontext():
        yield CompiledKernel()


def random_segment(rng: np.random.Generator, videos: int, dim: int, longest: int = 6) -> Segment:
    rows = [rng.normal(size=(n, dim)).astype(np.float32) for n in rng.integers(0, longest, videos)]
    return build_segment("vision", range(videos), [r / np.linalg.norm(r, axis=1, keepdims=True) for r in rows])


@needs_kernels
@given(SEEDS, WIDTHS, st.one_of(st.integers(1, 4), st.sampled_from([8, 15, 16, 17, 33])))
@settings(max_examples=40)
def test_bounds_of_all_kernels_agree_to_the_last_bit(compiled, seed, dim, count):
    rng = np.random.default_rng(seed)
    parts = [random_segment(rng, 12, dim), random_segment(rng, 5, dim, 80)]
    parts[0].codes.flags.writeable = False
    queries = quantise_queries(rng.normal(size=(count, dim)).astype(np.float32), dim)
    pieces = [(parts[0], rng.permutation(12)[:7]), (parts[1], None)]
    mine, other = NumpyKernel().bounds(pieces, queries), compiled.bounds(pieces, queries)
    assert mine.shape == (count, 12)
    np.testing.assert_array_equal(mine, other)


@needs_kernels
@given(SEEDS, st.sampled_from([1, 7, 64, 256, 1500]), st.sampled_from([1e-7, 1e-3, 1, 30]))
@settings(max_examples=25)
def test_bounds_are_never_below_the_score_nor_far_above(compiled, seed, dim, size):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(40, dim)) * size).astype(np.float32)
    part = build_segment("vision", range(40), list(rows[:, None]))
    queries = quantise_queries(rng.normal(size=(2, dim)).astype(np.float32), dim)
    bounds = NumpyKernel().bounds([(part, None)], queries) + queries.floors[:, None]
    for bound, query in zip(bounds, queries.vectors, strict=True):
        for score in (NumpyKernel().scores([(part, None)], query), compiled.scores([(part, None)], query)):
            assert (score <= bound).all()
        worst = 2 * (queries.slacks.max() * part.scales + queries.floors.max())
        assert (bound - score <= worst).all()


@needs_kernels
@given(SEEDS, WIDTHS)
@settings(max_examples=20)
def test_scores_of_all_kernels_agree_and_equal_rows_score_alike(compiled, seed, dim):
    rng = np.random.default_rng(seed)
    part = random_segment(rng, 50, dim)
    query = rng.normal(size=dim).astype(np.float32)
    pieces = [(part, None), (part, np.arange(50)[::-1].copy())]
    mine, other = NumpyKernel().scores(pieces, query), compiled.scores(pieces, query)
    np.testing.assert_allclose(mine, other, rtol=0, atol=1e-5)
    for scores in (mine, other):
        np.testing.assert_array_equal(scores[:50], scores[50:][::-1])


@needs_kernels
@pytest.mark.parametrize("dim", [3, 8, 40])
def test_every_half_is_the_number_it_stands_for(compiled, dim):
    """All 65,536 of them, each in a row of its own; infinity and what is no number never match."""
    half = np.zeros((1 << 16, dim), np.float16)
    half[:, dim - 1 - dim % 2] = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    count, codes = len(half), np.zeros(half.shape, np.int8)
    part = Segment("h", "vision", np.arange(count), np.arange(count + 1), codes, np.ones(count, np.float32), half)
    query = np.ones(dim, np.float32)
    np.testing.assert_array_equal(compiled.scores([(part, None)], query), NumpyKernel().scores([(part, None)], query))


@needs_kernels
@pytest.mark.parametrize("count", [1, 5])
def test_scales_that_are_no_numbers_are_treated_alike(compiled, count):
    rng = np.random.default_rng(3)
    part = random_segment(rng, 30, 20)
    scales = part.scales.copy()
    scales[::3], scales[1::7] = np.nan, np.inf
    part = replace(part, scales=scales)
    queries = quantise_queries(rng.normal(size=(count, 20)).astype(np.float32), 20)
    pieces = [(part, None)]
    np.testing.assert_array_equal(NumpyKernel().bounds(pieces, queries), compiled.bounds(pieces, queries))


@needs_kernels
@pytest.mark.parametrize("count", [1, 3, 20])
def test_enough_rows_are_shared_among_threads_and_come_back_in_order(compiled, count):
    rng = np.random.default_rng(6)
    part = random_segment(rng, 9000, 16)
    queries = quantise_queries(rng.normal(size=(count, 16)).astype(np.float32), 16)
    np.testing.assert_array_equal(
        NumpyKernel().bounds([(part, None)], queries), compiled.bounds([(part, None)], queries)
    )


@needs_kernels
def test_a_mapped_file_is_scanned_where_it_lies(compiled, tmp_path, monkeypatch):
    monkeypatch.setattr("momentseek.library.segments.MAX_READ_BYTES", 0)
    rng = np.random.default_rng(8)
    made = random_segment(rng, 40, 33)
    part = read_segment(tmp_path, write_segment(tmp_path, made))
    assert part.mapped is not None
    queries = quantise_queries(rng.normal(size=(4, 33)).astype(np.float32), 33)
    found = compiled.bounds([(part, None)], queries)
    np.testing.assert_array_equal(found, NumpyKernel().bounds([(made, None)], queries))


@needs_kernels
@pytest.mark.parametrize("damage", [-1, 1 << 40])
@pytest.mark.parametrize("count", [1, 2])
def test_a_damaged_table_of_rows_is_named_and_nothing_is_read_beyond(compiled, damage, count):
    part = random_segment(np.random.default_rng(9), 20, 8)
    offsets = part.offsets.copy()
    offsets[7] = damage
    part = replace(part, offsets=offsets)
    queries = quantise_queries(np.ones((count, 8), np.float32), 8)
    with pytest.raises(LibraryError, match="table of rows is damaged"):
        compiled.bounds([(part, None)], queries)
    with pytest.raises(LibraryError, match="table of rows is damaged"):
        compiled.scores([(part, None)], queries.vectors[0])


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


@needs_kernels
def test_the_compiled_kernel_is_used_where_it_is_built(monkeypatch):
    monkeypatch.delenv(KERNEL_VARIABLE, raising=False)
    assert best_kernel().name == "native"


def test_without_the_library_numpy_does_everything(monkeypatch):
    monkeypatch.delenv(KERNEL_VARIABLE, raising=False)
    monkeypatch.setattr("momentseek.library.scan.kernels.has_kernels", lambda: False)
    assert best_kernel().name == "numpy"
    monkeypatch.setenv(KERNEL_VARIABLE, "native")
    with pytest.raises(MomentseekError, match=r"python -m momentseek\.core\.native\.build"):
        best_kernel()


@needs_kernels
def test_the_kernel_can_be_forced(monkeypatch):
    for name in ("numpy", "native"):
        monkeypatch.setenv(KERNEL_VARIABLE, name)
        assert best_kernel().name == name
    monkeypatch.setenv(KERNEL_VARIABLE, "numba")
    with pytest.raises(MomentseekError, match="may be native or numpy"):
        best_kernel()
