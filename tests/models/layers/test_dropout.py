from __future__ import annotations

import pytest
import torch

from momentseek.models.layers.attention import SelfEncoder
from momentseek.models.layers.projection import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_as_many_are_dropped_as_asked_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(0)
    out = Dropout(p)(torch.ones(401, 1001))
    assert out.eq(0).float().mean().item() == pytest.approx(p, abs=0.005)
    assert out[out > 0].unique().tolist() == pytest.approx([1 / (1 - p)])
    by_place = out.eq(0).float().view(-1)[:401_000].view(-1, 4).mean(0)
    assert by_place.tolist() == pytest.approx([p] * 4, abs=0.01)


def test_gradient_passes_where_values_passed() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 9, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.where(out == 0, 0.0, 2.0))


def test_nothing_happens_outside_training() -> None:
    x = torch.randn(3, 3)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_same_seed_same_choice() -> None:
    x = torch.ones(100)
    first, second = (torch.manual_seed(5) and Dropout(0.5)(x) for _ in range(2))
    assert torch.equal(first, second)


def test_attention_with_dropout_is_the_same_attention() -> None:
    torch.manual_seed(0)
    layer, x = SelfEncoder(8, 2, 1e-9), torch.randn(2, 5, 8)
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    torch.testing.assert_close(layer.train()(x, mask), layer.eval()(x, mask))
