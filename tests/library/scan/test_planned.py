from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.core.native.kernels import every_processor, kernels
from momentseek.library.scan.exact import BestVideos
from momentseek.library.scan.kernels import CompiledKernel, quantise_queries
from momentseek.library.scan.scan import CoveredSegments, first_videos, merge
from momentseek.library.segments import Segment, build_segment

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


@pytest.fixture(params=["this processor", "every processor"], scope="module", autouse=True)
def processor(request):
    with every_processor() if request.param == "every processor" else contextlib.nullcontext():
        yield


def segments_of(rng: np.random.Generator, dim: int) -> list[Segment]:
    """Three segments, some of whose videos have no rows, equal rows or rows that are no numbers."""
    out, first = [], 0
    for name, videos in (("a", 30), ("b", 17), ("c", 40)):
        rows = [rng.normal(size=(int(rng.integers(0, 6)), dim)).astype(np.float32) for _ in range(videos)]
        rows[3] = rows[5] = np.ones((2, dim), np.float32)
        made = build_segment("vision", rng.permutation(videos) + first, rows)
        scales, half = made.scales.copy(), made.half.copy()
        scales[0], half[0] = np.nan, np.nan
        out.append(replace(made, name=name, scales=scales, half=half))
        first += videos
    return out


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 7, 16, 33, 64]),
    st.integers(1, 60),
    st.sampled_from([None, 0.0, 0.5, 5.0]),
)
@settings(max_examples=40)
def test_the_best_are_those_of_scoring_every_video_that_comes_near_enough(seed, dim, k, margin):
    rng = np.random.default_rng(seed)
    segments = segments_of(rng, dim)
    query = quantise_queries(rng.normal(size=dim), dim)
    covers = ("c", "a")
    videos = rng.permutation(70)[: int(rng.integers(0, 71))].astype(np.int32)
    bounds = np.sort(rng.normal(size=len(videos)).astype(np.float32))[::-1].copy()

    parts = [segments[2], segments[0]]
    scores = CompiledKernel().scores([(part, None) for part in parts], query.vectors[0])
    ids = np.concatenate([part.ids for part in parts])
    near = videos[: first_videos(k)]
    for video, bound in zip(videos[len(near) :], bounds[len(near) :], strict=True):
        reached = np.sort(scores[near])[::-1]
        if margin is None or len(reached) < k or bound >= np.float32(reached[k - 1] - margin):
            near = np.append(near, video)
    near = near[scores[near] > -np.inf]
    near = near[np.lexsort((ids[near], -scores[near]))][:k]

    best = CoveredSegments(segments, covers).rank(query, k, videos, bounds, margin)
    assert best.ids[0].tolist() == ids[near].tolist()
    assert best.scores[0].tolist() == scores[near].tolist()
    assert [segments[s].ids[at] for s, at in zip(best.segment[0], best.at[0], strict=True)] == best.ids[0].tolist()


def test_a_number_beyond_the_videos_is_an_error():
    segments = segments_of(np.random.default_rng(0), 8)
    covered = CoveredSegments(segments, ("a", "b"))
    query = quantise_queries(np.ones(8), 8)
    for outside in (-1, 47):
        with pytest.raises(IndexError):
            covered.rank(query, 3, np.array([1, outside], np.int32), np.ones(2, np.float32), None)


def test_two_lists_become_one_by_score_and_then_by_id():
    def best(ids: list[int], scores: list[float], segment: int) -> BestVideos:
        return BestVideos(
            np.array([ids]),
            np.array([scores], np.float32),
            np.full((1, len(ids)), segment),
            np.array([range(len(ids))]),
        )

    both = merge(best([7, 2], [3, 1], 0), best([5, 1, 9], [3, 1, 0], 1), 4)
    assert both.ids.tolist() == [[5, 7, 1, 2]]
    assert both.segment.tolist() == [[1, 0, 1, 0]]
    assert both.at.tolist() == [[0, 0, 1, 1]]
