from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.mee import MEE, GatedEmbedding


def mee(dims: Dims, **settings: object) -> MEE:
    torch.manual_seed(0)
    model = build("mee", {"hidden": 8, **settings}, dims).eval()
    assert isinstance(model, MEE)
    return model


@torch.no_grad()
def test_an_embedding_is_gated_by_itself_and_of_length_one() -> None:
    unit, x = GatedEmbedding(4, 3), torch.randn(4)
    y = unit.linear.weight @ x + unit.linear.bias
    z = torch.stack([y[i] / (1 + math.exp(-(unit.gate.weight[i] @ y + unit.gate.bias[i]))) for i in range(3)])
    torch.testing.assert_close(unit(x[None])[0], z / z.norm())


@torch.no_grad()
def test_the_score_is_the_experts_weighed_by_the_query(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = mee(dims), make_batch()
    batch.clips.subtitle[2] = 0.0  # nobody speaks: the pictures have all the weight
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    found = model.match(queries, videos)
    for q in range(found.shape[0]):
        for v in range(found.shape[1]):
            there = ["video"] if v == 2 else ["video", "subtitle"]
            logits = dict(zip(["video", "subtitle"], queries["weights"][q].tolist(), strict=True))
            total = sum(math.exp(logits[m]) for m in there)
            score = sum(math.exp(logits[m]) / total * float(queries[m][q] @ videos[m][v]) for m in there)
            assert found[q, v].item() == pytest.approx(score, abs=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_clips_are_pooled_without_padding(make_batch: Callable[..., Batch], dims: Dims, pooling: str) -> None:
    model, clips = mee(dims, pooling=pooling), make_batch().clips
    encoded = model.encode_clips(clips)["video"]
    for i, mask in enumerate(clips.mask):
        rows = clips.video[i, mask]
        pooled = rows.max(0).values if pooling == "max" else rows.mean(0)
        torch.testing.assert_close(encoded[i], model.experts["video"](pooled))


@torch.no_grad()
def test_endpoints_do_not_pass_for_speech(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, clips = mee(dims, endpoints=True), make_batch().clips
    silent = torch.zeros(4, clips.mask.shape[1], 5)
    ends = torch.ones(4, clips.mask.shape[1], 2)
    seen = Clips(torch.cat([clips.video, ends], 2), torch.cat([silent, ends], 2), clips.mask)
    assert model.encode_clips(seen)["there"].tolist() == [[True, False]] * 4


@torch.no_grad()
def test_it_prefers_no_span(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = mee(dims), make_batch()
    grid = model.spans({}, model.encode_clips(batch.clips))
    torch.testing.assert_close(grid.exp().sum((1, 2)), torch.ones(4))
    assert all(len(row[row > -torch.inf].unique()) == 1 for row in grid)


def test_an_unknown_pooling_is_named(dims: Dims) -> None:
    with pytest.raises(MomentseekError, match="max or mean or netvlad, not 'sum'"):
        mee(dims, pooling="sum")


@torch.no_grad()
def test_raw_weights_are_the_public_codes(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = mee(dims, weights="raw", pooling="mean", unit=True), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    expected = sum(queries["weights"][:, m, None] * (queries[n] @ videos[n].T) for m, n in enumerate(model.modalities))
    torch.testing.assert_close(model.match(queries, videos), expected)
    rows = batch.clips.video[0, batch.clips.mask[0]].mean(0)
    torch.testing.assert_close(videos["video"][0], model.experts["video"](rows / (rows.norm() + 1e-5)))
