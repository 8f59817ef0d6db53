"""ABLR: its attention, its loss and its one prediction, written out as loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.zoo.ablr import Ablr, AblrConfig, ConditionedAttention

SMALL = {"hidden": 4, "max_clips": 6, "between": 3, "dropout": 0.0}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@torch.no_grad()
def test_attention_is_its_formula() -> None:
    layer = ConditionedAttention(4).double()
    rows, given, mask = random(1, 3, 4), random(1, 4, seed=1), torch.tensor([[True, True, False]])
    gathered, weights = layer(rows, mask, given)
    e = []
    for j in range(2):
        inner = layer.given.weight @ given[0] + layer.given.bias + layer.rows.weight @ rows[0, j]
        e.append(math.exp(float(layer.score.weight[0] @ inner.tanh())))
    assert weights[0].tolist() == pytest.approx([e[0] / sum(e), e[1] / sum(e), 0.0])
    torch.testing.assert_close(gathered[0], (e[0] * rows[0, 0] + e[1] * rows[0, 1]) / sum(e))


def batch(times: list[list[float]], first: list[int], last: list[int]) -> Batch:
    n = len(times)
    there = torch.ones(n, 6, dtype=torch.bool)
    place = torch.arange(n)
    pairs = BatchPairs(
        place, place, torch.tensor(first), torch.tensor(last), torch.ones(n).double(), torch.eye(n, dtype=torch.bool),
        torch.tensor(times, dtype=torch.float64),
    )  # fmt: skip
    return Batch(Words(random(n, 3, 3), there[:, :3]), Clips(random(n, 6, 5), None, there), pairs)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_is_smooth_l1_and_the_attention_inside(reduction: str) -> None:
    torch.manual_seed(0)
    model = Ablr(AblrConfig(**SMALL, reduction=reduction), Dims(3, 5, None)).double()  # type: ignore[arg-type]
    given = batch([[0.2, 0.6], [0.0, 0.3]], [1, 0], [3, 1])
    ends, weights = model.regress(model.encode_words(given.words), model.encode_clips(given.clips))
    terms = model.loss(given, 0, torch.Generator())
    assert given.pairs.times is not None
    error = sum(0.5 * d * d if abs(d) < 1 else abs(d) - 0.5 for d in (ends - given.pairs.times).flatten().tolist()) / (
        2 if reduction == "mean" else 1
    )
    assert terms["boundaries"].item() == pytest.approx(error)
    inside = [[1, 2, 3], [0, 1]]
    logs = [sum(math.log(weights[i, j].item()) for j in row) / len(row) for i, row in enumerate(inside)]
    assert terms["attention"].item() == pytest.approx(-5 * sum(logs) / 2)


@torch.no_grad()
@pytest.mark.parametrize(
    ("out", "found"), [([0.2, 0.7], [0.2, 0.7]), ([0.7, 0.2], [0.2, 0.7]), ([0.4, 1.3], [0.4, 1.0]), ([1.2, 1.3], None)]
)
def test_boundaries_are_cut_and_put_in_order(out: list[float], found: list[float] | None) -> None:
    model = Ablr(AblrConfig(**SMALL), Dims(3, 5, None)).double()
    model.regress = lambda queries, videos: (torch.tensor([out]), torch.zeros(1, 6))  # type: ignore[method-assign, assignment]
    start, end, score = model.moments({}, {})
    assert score.tolist() == [[0.0]]
    if found is not None:
        assert [start.item(), end.item()] == pytest.approx(found)
    assert 0 <= start.item() < end.item() <= 1


def test_videos_must_be_brought_to_one_length() -> None:
    with pytest.raises(MomentseekError, match=r"^model: .*fit must be stretch or rounded, not 'truncate'"):
        AblrConfig(fit="truncate")
