"""Dropout that does not spend a fifth of a training step on drawing random numbers.

On a CPU, PyTorch draws one number of 64 bits per value. Sixteen bits decide as well, so one draw serves four values;
the probability is then exact to 1 / 65,536.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

PROBABILITY_STEPS = 1 << 16


class Dropout(nn.Module):
    """Sets values to 0 with probability ``p`` and divides the others by ``1 - p``, in training only."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        return x * scales(x, self.p)


def scales(like: Tensor, p: float) -> Tensor:
    """What dropout multiplies by: 0, or ``1 / (1 - p)``.

    >>> sorted(scales(torch.ones(100), 0.75).unique().tolist())
    [0.0, 4.0]
    """
    count = like.numel()
    drawn = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    kept = drawn[:count] >= round(p * PROBABILITY_STEPS) - PROBABILITY_STEPS // 2
    return kept.to(like.dtype).mul_(1 / (1 - p)).view(like.shape)
