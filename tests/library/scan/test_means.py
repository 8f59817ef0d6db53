from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from momentseek.library.scan.kernels import NumpyKernel
from momentseek.library.scan.means import SceneMeans, best_of_videos
from momentseek.library.scan.queries import quantise_queries
from momentseek.library.segments import build_segment, quantise
from momentseek.native.library import every_processor, kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


def means_of(vectors: np.ndarray) -> SceneMeans:
    return SceneMeans("m", np.arange(len(vectors)), np.arange(len(vectors), dtype=np.int32), *quantise(vectors))


@pytest.mark.parametrize("dim", [1, 16, 37, 256])
@pytest.mark.parametrize("processor", ["this", "every"])
def test_bounds_of_means_are_those_of_the_scan(dim, processor):
    rng = np.random.default_rng(dim)
    vectors = rng.normal(size=(90, dim)).astype(np.float32)
    query = quantise_queries(rng.normal(size=dim), dim)
    numbers = rng.integers(0, 90, 200).astype(np.int32)
    expected = NumpyKernel().bounds([(build_segment("vision", range(90), list(vectors[:, None])), None)], query)[0]
    with every_processor() if processor == "every" else contextlib.nullcontext():
        np.testing.assert_array_equal(means_of(vectors).bounds(numbers, query), expected[numbers])


def test_a_mean_that_is_no_number_never_matches_and_one_that_is_not_there_is_an_error():
    means = means_of(np.ones((3, 4), np.float32))
    means = replace(means, scales=np.array([1, np.nan, 1], np.float32))
    query = quantise_queries(np.ones(4), 4)
    assert means.bounds(np.array([0, 1], np.int32), query)[1] == -np.inf
    for outside in (-1, 3):
        with pytest.raises(IndexError):
            means.bounds(np.array([0, outside], np.int32), query)


def test_the_best_mean_of_a_video_counts():
    rng = np.random.default_rng(0)
    owner, bounds = rng.integers(0, 40, 300).astype(np.int32), rng.normal(size=300).astype(np.float32)
    videos, best = best_of_videos(owner, bounds)
    assert videos.tolist() == sorted(set(owner.tolist()))
    assert best.tolist() == [bounds[owner == v].max() for v in videos]
    assert [len(a) for a in best_of_videos(owner[:0], bounds[:0])] == [0, 0]


def test_means_without_a_video_are_refused():
    means = means_of(np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match="no video"):
        replace(means, ids=np.arange(2))
    with pytest.raises(ValueError, match="belong together"):
        replace(means, owner=np.zeros(2, np.int32))
