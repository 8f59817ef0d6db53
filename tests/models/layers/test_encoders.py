from __future__ import annotations

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.attention import SEQUENCE_ENCODERS, CnnEncoder, LstmEncoder, Stack, encoder


@pytest.mark.parametrize("kind", SEQUENCE_ENCODERS)
def test_padding_changes_nothing(kind: str) -> None:
    torch.manual_seed(0)
    layer = encoder(kind, 8, 2, 0.1).eval()
    x = torch.randn(3, 5, 8)
    mask = torch.arange(5) < torch.tensor([[5], [2], [3]])
    noise = torch.randn(3, 9, 8)
    noise[:, :5][mask] = x[mask]
    wide = torch.nn.functional.pad(mask, (0, 4))
    torch.testing.assert_close(layer(noise, wide)[:, :5][mask], layer(x, mask)[mask])
    for row, length in enumerate((5, 2, 3)):
        alone = layer(x[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))
        torch.testing.assert_close(alone[0], layer(x, mask)[row, :length])


def test_cnn_is_a_separable_convolution() -> None:
    torch.manual_seed(1)
    layer = CnnEncoder(4, 0.1, kernel=3).eval()
    x, mask = torch.randn(1, 5, 4), torch.ones(1, 5, dtype=torch.bool)
    filters, bias = layer.depth.weight, layer.depth.bias
    raw = torch.zeros(5, 4)
    for i in range(5):
        seen = bias.clone()
        for column in range(4):
            for k in range(3):
                if 0 <= i + k - 1 < 5:
                    seen[column] += filters[column, 0, k] * x[0, i + k - 1, column]
        raw[i] = x[0, i] + layer.point(seen).relu()
    torch.testing.assert_close(layer(x, mask)[0], torch.nn.functional.layer_norm(raw, (4,)))


def test_lstm_reads_both_ways() -> None:
    torch.manual_seed(2)
    layer, mask = LstmEncoder(4, 0.0).eval(), torch.ones(1, 4, dtype=torch.bool)
    x = torch.randn(1, 4, 4)
    changed = x.clone()
    changed[0, 1] += 1
    before, after = layer(x, mask)[0], layer(changed, mask)[0]
    assert torch.equal(before[0, :2], after[0, :2])
    assert not torch.equal(before[0, 2:], after[0, 2:])
    assert not torch.equal(before[3, :2], after[3, :2])
    assert torch.equal(before[3, 2:], after[3, 2:])


def test_stack_gives_every_layer() -> None:
    stack = Stack(3, "transformer", 8, 2, 0.0).eval()
    x, mask = torch.randn(1, 2, 8), torch.ones(1, 2, dtype=torch.bool)
    first, second, third = stack(x, mask)
    torch.testing.assert_close(stack.layers[1](first, mask), second)
    torch.testing.assert_close(stack.layers[2](second, mask), third)


def test_odd_width_has_no_two_way_lstm() -> None:
    with pytest.raises(MomentseekError, match="even hidden, not 5"):
        encoder("lstm", 5, 1, 0.1)
