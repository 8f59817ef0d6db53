from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from momentseek.models.layers.attention import TransformerLayer


@torch.no_grad()
def test_it_is_attention_and_feed_forward_added_back_and_normalised() -> None:
    torch.manual_seed(0)
    layer, x = TransformerLayer(6, 2, 10, 0.0), torch.randn(5, 6)
    attention = layer.attend.attention
    q, k, v = attention.query(x), *attention.key_value(x).split(6, 1)
    seen = torch.zeros(5, 6)
    for head in (slice(0, 3), slice(3, 6)):
        for i in range(5):
            weights = torch.stack([q[i, head] @ k[j, head] / math.sqrt(3) for j in range(5)]).softmax(0)
            seen[i, head] = sum(weights[j] * v[j, head] for j in range(5))
    middle = F.layer_norm(x + layer.attend.linear(seen), (6,))
    expected = F.layer_norm(middle + layer.narrow(F.gelu(layer.wide(middle))), (6,))
    torch.testing.assert_close(layer(x[None], torch.ones(1, 5, dtype=torch.bool))[0], expected, atol=1e-5, rtol=1e-5)
