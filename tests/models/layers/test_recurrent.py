from __future__ import annotations

import pytest
import torch

from momentseek.models.layers.recurrent import Recurrent


@pytest.mark.parametrize("both_ways", [False, True], ids=["forwards", "both-ways"])
@torch.no_grad()
def test_each_row_is_read_to_its_own_end(both_ways: bool) -> None:
    torch.manual_seed(0)
    layer, x = Recurrent(3, 7, both_ways=both_ways), torch.randn(3, 6, 3)
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])
    states, last = layer(x, mask)
    assert (states.shape, last.shape) == ((3, 6, 7), (3, 7))
    for i, count in enumerate([6, 4, 1]):
        read, (end, _) = layer.forwards(x[i : i + 1, :count])
        parts, ends = [read[0]], [end[0, 0]]
        if layer.backwards is not None:
            read, (end, _) = layer.backwards(x[i : i + 1, :count].flip(1))
            parts.append(read[0].flip(0))
            ends.append(end[0, 0])
        torch.testing.assert_close(states[i, :count], torch.cat(parts, 1))
        torch.testing.assert_close(last[i], torch.cat(ends))
        assert (states[i, count:] == 0).all()
