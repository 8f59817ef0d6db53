from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from momentseek.core.ranking import merge


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 25), st.integers(0, 2**32 - 1))
def test_merging_equals_sorting_all_moments(queries, videos, each, k, seed):
    rng = np.random.default_rng(seed)
    spans = rng.integers(-3, 1, (queries, videos, each)).astype(np.float32)
    spans[rng.random(spans.shape) < 0.2] = -np.inf
    scores = rng.integers(0, 3, (queries, videos)) / 4
    video, span, score = merge(spans, scores, 2.0, k)
    for q in range(queries):
        all_moments = [
            (-(float(spans[q, v, s]) + 2.0 * float(scores[q, v])), v, s)
            for v in range(videos)
            for s in range(each)
            if spans[q, v, s] > -np.inf
        ]
        real = score[q] > -np.inf
        found = list(zip((-score[q][real]).tolist(), video[q][real].tolist(), span[q][real].tolist(), strict=True))
        assert found == sorted(all_moments)[:k]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 20.0, 30.0]))
def test_order_equals_the_papers_product(seed, alpha):
    rng = np.random.default_rng(seed)
    start, end = rng.uniform(0.001, 1, (2, 4, 3))
    match = rng.uniform(-1, 1, 4)
    product = start * end * np.exp(alpha * match)[:, None]
    gaps = np.diff(np.sort(np.log(product).ravel()))
    assume(gaps.min() > 1e-9)
    video, span, score = merge((np.log(start) + np.log(end))[None], match[None], alpha, 12)
    assert (video[0] * 3 + span[0]).tolist() == np.argsort(-product.ravel()).tolist()
    assert math.isclose(math.exp(score[0, 0]), product.max(), rel_tol=1e-9)


def test_scores_too_small_for_a_product_keep_their_order():
    spans = np.array([[[-1000.0], [-999.0]]])
    assert merge(spans, np.zeros((1, 2)), 20.0, 2)[0].tolist() == [[1, 0]]


def test_missing_video_score_with_zero_weight():
    video, _, score = merge(np.array([[[1.0], [2.0]]]), np.array([[0.0, -np.inf]]), 0.0, 2)
    assert video.tolist() == [[1, 0]]
    assert score.tolist() == [[2.0, 1.0]]
