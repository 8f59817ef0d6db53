from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.core.native.kernels import every_processor, is_wide
from momentseek.models.features.data import Dims
from momentseek.models.inference import best_clips
from momentseek.models.inference.best_clips import (
    LateVectors,
    bounds_of,
    choose_width,
    encode_clips,
    first_directions,
    principal_directions,
    rank_by_best_clips,
    sample_clips,
)
from momentseek.models.inference.encode import encode_corpus, encode_queries
from momentseek.models.inference.first_stage import retrieve
from momentseek.models.registry import build

pytestmark = pytest.mark.skipif(not is_wide(), reason="needs the compiled kernels and AVX2")


def corpus_of(videos: int, queries: int, columns: int, modalities: int, seed: int, spread: float = 1.0):
    """Queries and clips with more variance in some directions, and where the videos' clips begin."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 12, videos))])
    scale = np.arange(1, columns + 1, dtype=np.float32) ** -spread
    turn = np.linalg.qr(rng.standard_normal((columns, columns)))[0].astype(np.float32)
    vectors = []
    for _ in range(modalities):
        x = (rng.standard_normal((offsets[-1], columns), dtype=np.float32) * scale + 0.3) @ turn
        q = (rng.standard_normal((queries, columns), dtype=np.float32) * scale) @ turn
        vectors.append(LateVectors(q, x))
    return vectors, offsets


def scores_by_loops(vectors, offsets):
    """(queries, videos), in double precision."""
    queries, videos = len(vectors[0].queries), len(offsets) - 1
    found = np.zeros((queries, videos))
    for q in range(queries):
        for v in range(videos):
            each = []
            for m in vectors:
                rows = m.clips[offsets[v] : offsets[v + 1]].astype(np.float64)
                each.append(max(float(row @ m.queries[q].astype(np.float64)) for row in rows))
            found[q, v] = sum(each) / len(each)
    return found


@given(
    st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 40), st.integers(2, 40), st.integers(1, 2),
    st.sampled_from([0.0, 0.7, 1.5]), st.integers(1, 20).map(lambda n: 2 * n),
)  # fmt: skip
@settings(max_examples=40)
def test_the_best_videos_are_those_of_loops(seed, videos, queries, columns, modalities, spread, width):
    vectors, offsets = corpus_of(videos, queries, columns, modalities, seed, spread)
    n = max(1, videos // 3)
    found = rank_by_best_clips(vectors, offsets, n, width=width)
    truth = scores_by_loops(vectors, offsets)
    if n >= videos:
        assert found is None
        return
    place, score = found
    np.testing.assert_allclose(score, np.take_along_axis(truth, place, axis=1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(score, -np.sort(-truth, axis=1)[:, :n], rtol=1e-5, atol=1e-5)
    assert all(len(set(row)) == n for row in place.tolist())


def directions_of(vectors, offsets):
    return [principal_directions(sample_clips(v.clips, offsets), v.queries) for v in vectors]


def bounds_by(vectors, offsets, turns, width):
    """Bounds of that many columns."""
    codes = [encode_clips(v.clips, offsets, first_directions(t, width)) for v, t in zip(vectors, turns, strict=True)]
    return bounds_of([v.queries for v in vectors], codes, offsets)


@pytest.mark.parametrize("width", [2, 8, 24, 40, 64])
@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_no_score_is_above_its_bound(width, precision):
    vectors, offsets = corpus_of(25, 37, 40, 2, 3)
    vectors = [LateVectors(v.queries, v.clips.astype(precision)) for v in vectors]
    bounds = bounds_by(vectors, offsets, directions_of(vectors, offsets), width)
    truth = scores_by_loops(vectors, offsets)
    assert (bounds >= truth).all()
    assert np.median(bounds - truth) < (3.0 if width < 24 else 0.5) * truth.std()  # and they say something


@given(
    st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 40), st.integers(2, 40),
    st.sampled_from([0.0, 1.5]), st.integers(1, 20).map(lambda n: 2 * n), st.sampled_from([1e-3, 1.0, 1e4]),
)  # fmt: skip
@settings(max_examples=30)
def test_bounds_hold_for_any_shape_and_size(seed, videos, queries, columns, spread, width, size):
    (v,), offsets = corpus_of(videos, queries, columns, 1, seed, spread)
    vectors = [LateVectors(v.queries, v.clips * np.float32(size))]
    turns = directions_of(vectors, offsets)
    bounds, truth = bounds_by(vectors, offsets, turns, width), scores_by_loops(vectors, offsets)
    assert (bounds >= truth).all()
    with every_processor():
        plain = bounds_by(vectors, offsets, turns, width)
    assert (plain >= truth).all()
    np.testing.assert_allclose(plain, bounds, rtol=0.02, atol=0.05 * size)  # a code may be one more or less


def test_the_clip_with_the_longest_rest_does_not_loosen_the_bounds_of_others():
    """What is left out counts clip by clip: here the best clip lies in the columns kept, another one outside."""
    queries = np.array([[1, 0, 0, 0], [0.8, 0, 0, 0.6]], np.float32)
    clips = np.array([[1, 0, 0, 0], [-1, 0, 0, 1], [0.9, 0, 0, 0], [-0.9, 0, 0, 0]], np.float32)
    offsets = np.array([0, 2, 4])
    codes = encode_clips(clips, offsets, np.eye(4, 2, dtype=np.float32))
    bounds = bounds_of([queries], [codes], offsets)
    np.testing.assert_allclose(bounds[0], [1, 0.9], atol=0.03)


def test_ties_go_to_the_video_first_in_the_corpus():
    vectors, offsets = corpus_of(30, 5, 16, 2, 0)
    same = np.tile(np.arange(16, dtype=np.float32) / 8, (int(offsets[-1]), 1))
    vectors = [LateVectors(v.queries, same) for v in vectors]
    place, score = rank_by_best_clips(vectors, offsets, 7, width=16)
    assert place.tolist() == [list(range(7))] * 5
    assert (score == score[:, :1]).all()


def test_parts_of_queries_change_nothing(monkeypatch):
    vectors, offsets = corpus_of(40, 50, 24, 2, 1)
    whole = rank_by_best_clips(vectors, offsets, 9, width=16)
    told = []
    monkeypatch.setattr(best_clips, "MAX_BOUNDS", 40 * 7)
    monkeypatch.setattr(best_clips, "QUERIES_TOGETHER", 3)
    monkeypatch.setattr(best_clips, "BOUNDS_PER_TASK", 100)
    parts = rank_by_best_clips(vectors, offsets, 9, lambda *said: told.append(said), width=16)
    assert (whole[0] == parts[0]).all()
    np.testing.assert_allclose(whole[1], parts[1], rtol=1e-6)
    assert told[-1] == (2000, 2000)
    assert len(told) == 8


def test_few_columns_are_chosen_where_clips_lie_in_few_directions():
    chosen = {}
    for name, spread in (("few", 2.0), ("all", 0.0)):
        vectors, offsets = corpus_of(400, 300, 96, 1, 5, spread)
        sample = sample_clips(vectors[0].clips, offsets)
        chosen[name] = choose_width([sample], directions_of(vectors, offsets))
    assert chosen == {"few": chosen["few"], "all": 96}
    assert chosen["few"] <= 32


@pytest.mark.parametrize("broken", ["queries", "clips"])
def test_numbers_that_are_none_are_left_to_plain_products(broken):
    vectors, offsets = corpus_of(10, 4, 16, 1, 0)
    getattr(vectors[0], broken)[2, 3] = np.nan
    assert rank_by_best_clips(vectors, offsets, 3, width=16) is None


def test_small_corpora_are_left_to_plain_products():
    vectors, offsets = corpus_of(10, 4, 16, 1, 0)
    assert rank_by_best_clips(vectors, offsets, 3) is None


def test_processors_without_the_kernel_multiply_everything(monkeypatch):
    monkeypatch.setattr(best_clips, "is_wide", lambda: False)
    vectors, offsets = corpus_of(10, 4, 16, 1, 0)
    assert rank_by_best_clips(vectors, offsets, 3, width=16) is None


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
def test_a_models_videos_are_those_of_its_own_match(small, monkeypatch, name):
    data = small.world(videos=60, queries=20, whole=False)
    model = build(name, {"hidden": 32, "heads": 4, "modalities": "video"}, Dims(query=3, video=3, subtitle=None))
    corpus, queries = encode_corpus(model, data, data.corpus), encode_queries(model, data, data.truth.query_ids)
    plain = retrieve(model, queries, corpus, 12)
    monkeypatch.setattr(best_clips, "MIN_PRODUCTS", 0)
    told = []
    bounded = retrieve(model, queries, corpus, 12, progress=lambda *said: told.append(said))
    assert told == [("first stage", 1200, 1200)]
    np.testing.assert_allclose(bounded.score, plain.score, atol=1e-6)
    different = (bounded.video != plain.video).any(axis=1)
    assert different.mean() <= 0.1  # near ties may change places, by rounding
