from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from momentseek.core.native.kernels import every_processor, kernels
from momentseek.library.scan.coarse import SceneMeans
from momentseek.library.scan.kernels import NumpyKernel, quantise_queries
from momentseek.library.segments import build_segment, quantise

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


def means_of(vectors: np.ndarray) -> SceneMeans:
    return SceneMeans("m", np.arange(len(vectors)), np.arange(len(vectors), dtype=np.int32), *quantise(vectors))


@pytest.mark.parametrize("dim", [1, 16, 37, 256])
@pytest.mark.parametrize("processor", ["this", "every"])
def test_the_best_mean_of_a_video_counts_with_the_bound_of_the_scan(dim, processor):
    rng = np.random.default_rng(dim)
    vectors = rng.normal(size=(90, dim)).astype(np.float32)
    query = quantise_queries(rng.normal(size=dim), dim)
    numbers = rng.integers(0, 90, 200).astype(np.int32)
    means = replace(means_of(vectors), owner=rng.integers(0, 40, 90).astype(np.int32))
    bounds = NumpyKernel().bounds([(build_segment("vision", range(90), list(vectors[:, None])), None)], query)[0]
    expected: dict[int, np.float32] = {}
    for number in numbers.tolist():
        video = int(means.owner[number])
        expected[video] = max(expected.get(video, -np.inf), bounds[number])
    with every_processor() if processor == "every" else contextlib.nullcontext():
        videos, best = means.videos(numbers, query)
    assert dict(zip(videos.tolist(), best, strict=True)) == expected
    assert (np.diff(best) <= 0).all()
    assert [len(a) for a in means.videos(numbers[:0], query)] == [0, 0]


def test_equal_videos_stay_in_the_order_of_the_list():
    means = means_of(np.ones((50, 4), np.float32))
    numbers = np.random.default_rng(0).permutation(50).astype(np.int32)
    for sign in (1, -1, 0):
        assert means.videos(numbers, quantise_queries(np.full(4, sign), 4))[0].tolist() == numbers.tolist()


def test_nan_mean_never_matches_and_missing_mean_is_an_error():
    means = means_of(np.ones((3, 4), np.float32))
    means = replace(means, scales=np.array([1, np.nan, 1], np.float32))
    query = quantise_queries(np.ones(4), 4)
    assert means.videos(np.array([0, 1], np.int32), query)[0].tolist() == [0]
    for outside in (-1, 3):
        with pytest.raises(IndexError):
            means.videos(np.array([0, outside], np.int32), query)


def test_means_without_a_video_are_refused():
    means = means_of(np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match="no video"):
        replace(means, ids=np.arange(2))
    with pytest.raises(ValueError, match="belong together"):
        replace(means, owner=np.zeros(2, np.int32))
