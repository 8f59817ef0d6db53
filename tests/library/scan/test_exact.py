from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.helpers.exact_scan import top_videos

from momentseek.core.errors import MomentseekError
from momentseek.library.segments import Segment, build_segment


def brute(
    segments: Sequence[Segment], query: NDArray[np.float32], k: int, banned: set[int]
) -> list[tuple[float, int, int, int]]:
    """The definition: all clips in float16 against the query, the maximum, ties by id."""
    rows = []
    for index, part in enumerate(segments):
        for at, video in enumerate(part.ids.tolist()):
            half = part.half[part.offsets[at] : part.offsets[at + 1]].astype(np.float32)
            scores = [s for s in np.einsum("rd,d->r", half, query).tolist() if np.isfinite(s)]
            if scores and video not in banned:
                rows.append((-max(scores), video, index, at))
    return [(-score, video, index, at) for score, video, index, at in sorted(rows)[:k]]


@st.composite
def libraries(draw: st.DrawFn) -> tuple[list[Segment], NDArray[np.float32]]:
    """Segments whose rows are few and often equal, so that ties abound; some rows are zero, some videos empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dim = draw(st.sampled_from([1, 2, 7, 64, 1100]))
    pool = rng.normal(size=(draw(st.integers(1, 12)), dim)).astype(np.float32)
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    pool[0] *= draw(st.sampled_from([0, 1, 1e-5]))
    ids = rng.permutation(60)
    segments, taken = [], 0
    for count in draw(st.lists(st.integers(0, 15), min_size=1, max_size=4)):
        lengths = rng.integers(0, draw(st.sampled_from([2, 5])), count)
        videos = [pool[rng.integers(0, len(pool), n)] for n in lengths]
        part = build_segment(
            "vision", sorted(ids[taken : taken + count].tolist()), [*videos, np.zeros((0, dim), np.float32)]
        )
        segments.append(Segment("t", "vision", part.ids, part.offsets[:-1], part.codes, part.scales, part.half))
        taken += count
    queries = rng.normal(size=(draw(st.integers(1, 3)), dim)).astype(np.float32)
    queries[0] = pool[-1]
    return segments, queries


@given(libraries(), st.integers(1, 30), st.sets(st.integers(0, 59)), st.randoms(use_true_random=False))
def test_the_best_videos_are_those_of_the_definition(library, k, gone, random):
    segments, queries = library
    allowed = np.array([random.random() < 0.8 for part in segments for _ in part.ids], bool)
    ids = np.concatenate([part.ids for part in segments])
    banned = gone | set(ids[~allowed].tolist())
    best = top_videos(segments, queries, k, allowed=allowed, gone=np.array(sorted(gone), np.int64))
    for q, query in enumerate(queries):
        expected = brute(segments, query, k, banned)
        found = list(zip(best.scores[q], best.ids[q], best.segment[q], best.at[q], strict=True))
        assert found == expected


def test_a_row_that_is_not_a_number_never_matches():
    part = build_segment("vision", [1, 2], [np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[:1]])
    half, scales = part.half.copy(), part.scales.copy()
    half[[0, 2]], scales[[0, 2]] = np.nan, np.nan
    broken = Segment("t", "vision", part.ids, part.offsets, part.codes, scales, half)
    best = top_videos([broken], np.array([1, 0.5], np.float32), 5)
    assert best.ids.tolist() == [[1]]
    assert best.scores.tolist() == [[0.5]]


def test_scores_of_near_ties_are_settled_by_the_float16_rows():
    """Rows that share their int8 codes differ in float16, and the better one comes first whatever its place."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=64).astype(np.float32)
    base /= np.linalg.norm(base)
    rows = [(base + rng.normal(size=64) * 2e-4).astype(np.float32)[None] for _ in range(300)]
    part = build_segment("vision", range(300), rows)
    best = top_videos([part], base, 10)
    truth = part.half.astype(np.float64) @ base.astype(np.float64)
    assert best.ids[0].tolist() == np.argsort(-truth)[:10].tolist()


def test_nothing_to_search_gives_nothing():
    query = np.ones(4, np.float32)
    part = build_segment("vision", [1], [np.ones((2, 4), np.float32)])
    assert top_videos([], query, 5).ids.shape == (1, 0)
    assert top_videos([part], query, 0).ids.shape == (1, 0)
    assert top_videos([part], query, 5, allowed=np.array([False])).ids.shape == (1, 0)
    assert top_videos([part], np.zeros((0, 4), np.float32), 5).ids.shape == (0, 0)


@pytest.mark.parametrize("query", [np.array([np.nan, 0], np.float32), np.ones(3, np.float32)])
def test_a_query_that_cannot_be_compared_is_refused(query):
    with pytest.raises(MomentseekError, match="query"):
        top_videos([build_segment("vision", [1], [np.eye(2, dtype=np.float32)])], query, 1)
