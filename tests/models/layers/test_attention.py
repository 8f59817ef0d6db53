from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.attention import Attention, CrossEncoder, SelfEncoder


def by_loops(layer: Attention, x: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """softmax(Q K' / sqrt(d)) V, one row, one head at a time (TVR, section 4.2)."""
    hidden = x.shape[-1]
    size = hidden // layer.heads
    query = layer.query(x)
    key, value = layer.key_value(other)[..., :hidden], layer.key_value(other)[..., hidden:]
    out = torch.zeros_like(x)
    for row in range(len(x)):
        there = [j for j in range(other.shape[1]) if mask[row, j]]
        for i in range(x.shape[1]):
            for head in range(layer.heads):
                at = slice(head * size, (head + 1) * size)
                scores = torch.stack([query[row, i, at] @ key[row, j, at] / math.sqrt(size) for j in there])
                share = scores.softmax(0)
                out[row, i, at] = sum(share[k] * value[row, j, at] for k, j in enumerate(there))  # type: ignore[call-overload]
    return out


def test_attention_is_the_papers_formula() -> None:
    torch.manual_seed(0)
    layer = Attention(6, 2, 0.0).eval()
    x, other = torch.randn(2, 3, 6), torch.randn(2, 4, 6)
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    torch.testing.assert_close(layer(x, other, mask), by_loops(layer, x, other, mask))


def test_blocks_add_the_residual_and_normalise() -> None:
    torch.manual_seed(1)
    block, cross = SelfEncoder(6, 3, 0.1).eval(), CrossEncoder(6, 3, 0.1).eval()
    x, other, mask = torch.randn(2, 3, 6), torch.randn(2, 3, 6), torch.ones(2, 3, dtype=torch.bool)
    for layer, out, source in ((block, block(x, mask), x), (cross, cross(x, other, mask), other)):
        raw = x + layer.linear(by_loops(layer.attention, x, source, mask))
        mean, var = raw.mean(-1, keepdim=True), raw.var(-1, correction=0, keepdim=True)
        torch.testing.assert_close(out, (raw - mean) / (var + 1e-5).sqrt(), rtol=1e-4, atol=1e-5)


def test_cross_encoder_without_linear_has_fewer_weights() -> None:
    with_linear, without = CrossEncoder(6, 3, 0.1), CrossEncoder(6, 3, 0.1, linear=False)
    assert sum(p.numel() for p in with_linear.parameters()) - sum(p.numel() for p in without.parameters()) == 42


def test_dropout_acts_only_in_training() -> None:
    torch.manual_seed(2)
    layer, x, mask = SelfEncoder(8, 2, 0.5), torch.randn(1, 4, 8), torch.ones(1, 4, dtype=torch.bool)
    assert not torch.equal(layer(x, mask), layer(x, mask))
    layer.eval()
    assert torch.equal(layer(x, mask), layer(x, mask))


def test_heads_must_share_the_width() -> None:
    with pytest.raises(MomentseekError, match="hidden 10 cannot be divided among 4 heads"):
        Attention(10, 4, 0.1)
