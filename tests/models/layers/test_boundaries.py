from __future__ import annotations

import math

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.spans import BoundaryFilters


@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
def test_filters_are_the_papers_formula(kernel: int) -> None:
    torch.manual_seed(kernel)
    head, curve = BoundaryFilters(kernel), torch.randn(2, 9)
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    results, weight = [r.detach() for r in head(curve, mask)], head.filters.weight.detach()
    for row, length in enumerate((9, 4)):
        for side in range(2):
            raw = []
            for i in range(length):
                taps = [(k, i + k - kernel // 2) for k in range(kernel)]
                raw.append(sum(float(weight[side, 0, k] * curve[row, j]) for k, j in taps if 0 <= j < length))
            total = sum(math.exp(r) for r in raw)
            expected = torch.tensor([r - math.log(total) for r in raw])
            torch.testing.assert_close(results[side][row, :length], expected)
            assert results[side][row, length:].eq(-torch.inf).all()
            torch.testing.assert_close(head.responses(curve, mask)[row, side, :length].detach(), torch.tensor(raw))


@torch.no_grad()
def test_padding_reaches_the_last_clips_only_if_asked() -> None:
    curve, mask = torch.ones(1, 5), torch.arange(5)[None] < 3
    masked, open_ = BoundaryFilters(3), BoundaryFilters(3, masked=False)
    open_.load_state_dict(masked.state_dict())
    one, other = masked.responses(curve, mask), open_.responses(curve, mask)
    torch.testing.assert_close(one[..., :2], other[..., :2])
    torch.testing.assert_close(other[..., 2] - one[..., 2], masked.filters.weight[:, 0, 2][None])


def test_kernel_must_be_odd() -> None:
    with pytest.raises(MomentseekError, match="must be odd, not 4"):
        BoundaryFilters(4)
