from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.core.native.kernels import kernels
from momentseek.models.features.data import Dims
from momentseek.models.inference import best_clips
from momentseek.models.inference import second_stage as curve_spans
from momentseek.models.inference.encode import encode_corpus, encode_queries
from momentseek.models.inference.first_stage import retrieve
from momentseek.models.inference.prediction import predict
from momentseek.models.inference.second_stage import spans_of
from momentseek.models.registry import build

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


@pytest.fixture(scope="module")
def world(small):
    found = small.world(videos=30, queries=8, longest=12, whole=False)
    rng = np.random.default_rng(1)
    subtitle = small.table({n: rng.standard_normal((found.rows(n), 4), dtype=np.float32) for n in found.corpus})
    return dataclasses.replace(found, subtitle=subtitle)


def model_of(name, **settings):
    torch.manual_seed(0)
    return build(name, {"hidden": 16, "heads": 2, "max_clips": 10, "videos": 12} | settings, Dims(3, 3, 4))


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
@pytest.mark.parametrize("modalities", ["video", "video+subtitle"])
@pytest.mark.parametrize(
    ("k", "least", "shortest", "longest"), [(5, 1, 1, 4), (5, 2, 1, 4), (200, 1, 2, 16), (None, 1, 2, 5), (1, 3, 3, 3)]
)
def test_spans_are_those_of_the_models_tensors(world, monkeypatch, name, modalities, k, least, shortest, longest):
    model = model_of(name, modalities=modalities, shortest=shortest, longest=longest)
    corpus, queries = encode_corpus(model, world, world.corpus), encode_queries(model, world, world.truth.query_ids)
    rng = np.random.default_rng(0)
    videos = np.stack([rng.permutation(len(corpus))[:9] for _ in range(len(queries))])
    videos[3, 4] = -1
    usable = np.maximum(1, corpus.counts - rng.integers(0, 3, len(corpus)))
    places = np.arange(len(queries))[::-1]
    plain = spans_of(model, queries, corpus, places, videos, k, least=least, usable=usable)
    monkeypatch.setattr(curve_spans, "MIN_PAIRS", 0)
    monkeypatch.setattr(curve_spans, "PAIRS_PER_TASK", 7)
    monkeypatch.setattr(curve_spans, "PAIRS_PER_TURN", 30)
    told = []
    quick = spans_of(
        model, queries, corpus, places, videos, k, least=least, usable=usable, progress=lambda *said: told.append(said)
    )
    assert [done for _, done, _ in told] == [30, 60, 71]
    np.testing.assert_allclose(quick.score, plain.score, atol=1e-5)
    real = plain.score > -np.inf
    assert real.any()
    same = (quick.first == plain.first) & (quick.last == plain.last)
    assert same[real].mean() > 0.99  # near ties may change places, by rounding


def test_equal_spans_stand_in_the_same_order(world, monkeypatch):
    model = model_of("xml", longest=3)
    with torch.no_grad():
        model.boundaries_head.filters.weight.zero_()  # every clip is as likely as any other
    corpus, queries = encode_corpus(model, world, world.corpus), encode_queries(model, world, world.truth.query_ids)
    videos = np.tile(np.arange(6), (len(queries), 1))
    plain = spans_of(model, queries, corpus, np.arange(len(queries)), videos, 7)
    monkeypatch.setattr(curve_spans, "MIN_PAIRS", 0)
    quick = spans_of(model, queries, corpus, np.arange(len(queries)), videos, 7)
    real = plain.score > -np.inf
    assert (quick.first[real] == plain.first[real]).all()
    assert (quick.last[real] == plain.last[real]).all()


@pytest.mark.parametrize("nms", [None, 0.5])
def test_moments_are_the_same(world, monkeypatch, nms):
    model = model_of("reloclnet", shortest=2, longest=4)
    plain = predict(model, world, world, k=15, nms=nms)
    monkeypatch.setattr(curve_spans, "MIN_PAIRS", 0)
    quick = predict(model, world, world, k=15, nms=nms)
    np.testing.assert_allclose(quick.score, plain.score, atol=1e-4)
    assert [quick.videos[v] for v in quick.video] == [plain.videos[v] for v in plain.video]
    np.testing.assert_array_equal(quick.start, plain.start)


def test_a_diverged_model_is_named(world, monkeypatch):
    monkeypatch.setattr(curve_spans, "MIN_PAIRS", 0)
    model = model_of("xml")
    with torch.no_grad():
        model.boundaries_head.filters.weight.fill_(float("nan"))
    with pytest.raises(MomentseekError, match="diverged"):
        predict(model, world, world, k=5)


def test_videos_of_one_length_are_searched_as_well(world, monkeypatch):
    model = model_of("xml", longest=3, max_clips=4)
    long = [name for name in world.corpus if world.rows(name) >= 4]
    corpus, queries = encode_corpus(model, world, long), encode_queries(model, world, world.truth.query_ids)
    assert set(corpus.counts.tolist()) == {4}
    videos = np.tile(np.arange(5), (len(queries), 1))
    plain = spans_of(model, queries, corpus, np.arange(len(queries)), videos, 7), retrieve(model, queries, corpus, 5)
    monkeypatch.setattr(curve_spans, "MIN_PAIRS", 0)
    monkeypatch.setattr(best_clips, "MIN_PRODUCTS", 0)
    quick = spans_of(model, queries, corpus, np.arange(len(queries)), videos, 7), retrieve(model, queries, corpus, 5)
    np.testing.assert_array_equal(quick[0].score, plain[0].score)
    np.testing.assert_array_equal(quick[1].video, plain[1].video)
