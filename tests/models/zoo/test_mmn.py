"""MMN's score and its overlap loss against the equations, moment by moment."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import overlap, scale_overlap
from momentseek.models.registry import build
from momentseek.models.zoo.mmn import Mmn

CLIPS = 4


def model(**settings: object) -> Mmn:
    torch.manual_seed(0)
    small = {"hidden": 8, "space": 5, "max_clips": CLIPS, "longest": CLIPS, "map_layers": 1, "kernel": 3, "stride": 1}
    made = build("mmn", {**small, **settings}, Dims(query=5, video=7, subtitle=None))
    assert isinstance(made, Mmn)
    return made.eval()


def batch() -> Batch:
    g = torch.Generator().manual_seed(2)
    words = Words(torch.randn(3, 4, 5, generator=g), torch.ones(3, 4, dtype=torch.bool))
    clips = Clips(torch.randn(2, CLIPS, 7, generator=g), None, torch.ones(2, CLIPS, dtype=torch.bool))
    query, video = torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1])
    times = torch.tensor([[0.0, 0.3], [0.45, 1.0], [0.2, 0.7]])
    first, last = (times[:, 0] * CLIPS).floor().long(), (times[:, 1] * CLIPS).ceil().long() - 1
    positive = torch.zeros(3, 2, dtype=torch.bool)
    positive[query, video] = True
    return Batch(words, clips, BatchPairs(query, video, first, last, torch.tensor([1.0, 0.5, 0.8]), positive, times))


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def score(power: float, queries: Encodings, q: int, videos: Encodings, v: int, cell: int) -> float:
    """Equation 6, with the public code's power."""
    match = cosine(queries["match"][q], videos["match"][v, cell])
    iou = cosine(queries["overlap"][q], videos["overlap"][v, cell])
    return ((match + 1) / 2) ** power / (1 + math.exp(-10 * iou))


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5, 1.0])
@torch.no_grad()
def test_equation_6(power: float) -> None:
    m, b = model(power=power), batch()
    queries, videos = m.encode_words(b.words), m.encode_clips(b.clips)
    ours = m.match(queries, videos).exp()
    pairs = torch.cartesian_prod(torch.arange(3), torch.arange(2))
    grids = m.spans(take_rows(queries, pairs[:, 0]), take_rows(videos, pairs[:, 1])).exp()
    for grid, (q, v) in zip(grids, pairs.tolist(), strict=True):
        each = [score(power, queries, q, videos, v, cell) for cell in range(len(m.cells))]
        assert float(ours[q, v]) == pytest.approx(max(each), rel=1e-5)
        for value, first, length in zip(each, m.cells.start.tolist(), m.cells.length.tolist(), strict=True):
            assert float(grid[first, length - 1]) == pytest.approx(value, rel=1e-5)
        assert int((grid > 0).sum()) == len(each)


@torch.no_grad()
def test_equation_4() -> None:
    m, b = model(low=0.3, high=0.9), batch()
    assert b.pairs.times is not None
    queries, videos = m.encode_words(b.words), m.encode_clips(b.clips)
    target = scale_overlap(overlap(m.cells, b.pairs.times), 0.3, 0.9)
    assert target.any()
    total = 0.0
    for p, (q, v) in enumerate(zip(b.pairs.query.tolist(), b.pairs.video.tolist(), strict=True)):
        each = 0.0
        for cell, y in enumerate(target[p].tolist()):
            s = 1 / (1 + math.exp(-10 * cosine(queries["overlap"][q], videos["overlap"][v, cell])))
            each -= y * math.log(s) + (1 - y) * math.log(1 - s)
        total += float(b.pairs.weight[p]) * each / len(m.cells)
    ours = float(m.loss(b, 0, torch.Generator())["overlap"])
    assert ours == pytest.approx(total / float(b.pairs.weight.sum()), rel=1e-4)
