from __future__ import annotations

import math

import pytest
import torch

from momentseek.models.losses import span_cross_entropy


def test_cross_entropy_of_both_ends() -> None:
    torch.manual_seed(0)
    start, end = torch.randn(2, 3, 5).log_softmax(-1)
    first, last = torch.tensor([0, 2, 4]), torch.tensor([1, 2, 4])
    values = span_cross_entropy(start, end, first, last)
    for i in range(3):
        expected = -math.log(start[i].exp()[first[i]].item()) - math.log(end[i].exp()[last[i]].item())
        assert values[i].item() == pytest.approx(expected, rel=1e-5)
