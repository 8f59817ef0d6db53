from __future__ import annotations

import math

import torch

from momentseek.models.layers.attention import MaxQuery, ModularQuery


def test_modular_query_is_the_papers_formula() -> None:
    torch.manual_seed(0)
    layer, words = ModularQuery(4, 2), torch.randn(3, 5, 4)
    mask = torch.arange(5) < torch.tensor([[5], [1], [3]])
    out, shares = layer(words, mask), layer.attention(words, mask)
    for row, length in enumerate((5, 1, 3)):
        for m in range(2):
            weight = [math.exp(float(layer.weight.weight[m].detach() @ words[row, i])) for i in range(length)]
            share = [w / sum(weight) for w in weight]
            expected = torch.stack([share[i] * words[row, i] for i in range(length)]).sum(0)
            torch.testing.assert_close(out[row, m], expected)
            torch.testing.assert_close(shares[row, m], torch.tensor(share + [0.0] * (5 - length)))


def test_max_query_ignores_padding() -> None:
    words = torch.tensor([[[1.0, -5.0], [0.0, -2.0], [9.0, 9.0]]])
    out = MaxQuery(2)(words, torch.tensor([[True, True, False]]))
    assert out.tolist() == [[[1.0, -2.0], [1.0, -2.0]]]
