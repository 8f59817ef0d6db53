"""TCN-DCM: its attention, its scores and its losses, written out as loops."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import cells
from momentseek.models.zoo.tcn_dcm import LocationAttention, TcnDcm, TcnDcmConfig, location_waves


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def build(**settings: Any) -> TcnDcm:
    torch.manual_seed(3)
    small = {"hidden": 4, "heads": 2, "max_clips": 3, "longest": 3, "stride": 1, "kernel": 3, "text_layers": 1}
    return TcnDcm(TcnDcmConfig(**(small | settings)), Dims(3, 5, None)).double().eval()


@torch.no_grad()
def test_locations_are_attended_to_by_heads() -> None:
    layer = LocationAttention(4, 2, 0.0, own=0.5).double().eval()
    asking, where = random(1, 3, 4), random(1, 3, 4, seed=1)
    found = layer(asking, where)[0]
    value = [(layer.value.weight @ where[0, j] + layer.value.bias).clamp(min=0) for j in range(3)]
    for i in range(3):
        parts = []
        for head in (slice(0, 2), slice(2, 4)):
            q = (layer.asked.weight @ asking[0, i])[head]
            e = [math.exp(float(q @ (layer.key.weight @ where[0, j])[head]) / math.sqrt(2)) for j in range(3)]
            parts.append(sum(e[j] / sum(e) * value[j][head] for j in range(3)))
        torch.testing.assert_close(found[i], (torch.cat(parts) + 0.5 * value[i]).clamp(min=0))


@torch.no_grad()
def test_a_cells_score_is_its_formula() -> None:
    model = build(map_layers=1)
    content, location, query = random(1, 6, 4), random(1, 6, 4, seed=1).tanh(), random(1, 4, seed=2)
    found = model.logits(query, content, location)[0]
    assert model.query_in is not None
    assert model.content_in is not None
    assert model.attention is not None
    z = torch.stack([model.query_in(query[0].relu()) + model.content_in(c.relu()) for c in content[0]])
    moments = content[0] + model.attention(z[None], location)[0]
    fused = [model.fuse(query[0]) * m for m in moments]
    fused = [f / f.norm() for f in fused]
    where = list(zip(model.cells.start.tolist(), model.cells.end.tolist(), strict=True))
    layer = model.layers[0]
    for i, (a, b) in enumerate(where):
        total = layer.bias.clone()
        for (c, d), f in zip(where, fused, strict=True):
            if abs(c - a) <= 1 and abs(d - b) <= 1:
                total += layer.weight[:, :, c - a + 1, d - b + 1] @ f
        out = total.relu() + (model.skip.weight @ fused[i] + model.skip.bias).relu()
        torch.testing.assert_close(found[i], model.score.weight[0] @ out)


def test_waves_make_one_turn_over_the_video() -> None:
    found = location_waves(cells(4), 8)
    for i, (s, e) in enumerate(zip(cells(4).start.tolist(), cells(4).end.tolist(), strict=True)):
        expected = []
        for at in (s, e):
            angle = (at + 1) / 4 * 2 * math.pi
            expected += [math.sin(angle), math.cos(angle), math.sin(angle / 100), math.cos(angle / 100)]
        torch.testing.assert_close(found[i], torch.tensor(expected), atol=1e-5, rtol=1e-5)


def test_terms_are_those_of_the_paper() -> None:
    model = build()
    content, location = random(2, 6, 4), random(2, 6, 4, seed=1)
    terms = model.apart(content, location, torch.Generator())
    where = location_waves(model.cells, 4).double()
    distances = [float((location[v, c] - where[c]).square().sum().sqrt()) for v in range(2) for c in range(6)]
    assert terms["location"].item() == pytest.approx(sum(distances) / 12, rel=1e-5)
    lengths = content.square().sum().sqrt() + location.square().sum().sqrt()
    assert terms["size"].item() == pytest.approx(1e-5 * lengths.item())
    few = build(correlated=5).apart(content, location, torch.Generator().manual_seed(0))
    assert few["independence"].item() != terms["independence"].item()


def one_batch(seed: int = 0) -> Batch:
    there = torch.ones(2, 3, dtype=torch.bool)
    pair = torch.arange(2)
    times = torch.tensor([[0.0, 0.4], [0.5, 1.0]], dtype=torch.float64)
    pairs = BatchPairs(pair, pair, pair, pair, torch.ones(2).double(), torch.eye(2, dtype=torch.bool), times)
    return Batch(Words(random(2, 3, 3, seed=seed), there), Clips(random(2, 3, 5, seed=seed), None, there), pairs)


def test_other_videos_are_nowhere_right() -> None:
    model, batch = build(dropout=0.0), one_batch()
    terms = model.loss(batch, 0, torch.Generator().manual_seed(0))
    assert set(terms) == {"overlap", "other", "location", "independence", "size"}
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    swapped = {name: x.flip(0) for name, x in videos.items()}
    grid = model.spans(queries, swapped)[:, model.cells.start, model.cells.length - 1]
    torch.testing.assert_close(terms["other"], -(1 - grid.exp()).log().mean())
    batch.pairs.positive.fill_(True)
    assert "other" not in model.loss(batch, 0, torch.Generator().manual_seed(0))


def test_a_blind_model_sees_no_clips() -> None:
    blind = build(deconfound="blind")
    one, two = (blind.encode_clips(one_batch(seed).clips)["clips"] for seed in (0, 1))
    assert torch.equal(one, two)
