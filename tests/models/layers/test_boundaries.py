from __future__ import annotations

import math

import pytest
import torch

from momentseek.errors import MomentseekError
from momentseek.models.layers import BoundaryFilters


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


def test_kernel_must_be_odd() -> None:
    with pytest.raises(MomentseekError, match="must be odd, not 4"):
        BoundaryFilters(4)
