"""Fixed position vectors of sines and cosines (Vaswani et al. 2017, section 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sine_positions(most: int, hidden: int) -> Tensor:
    """(most, hidden): sin and cos, in turns, of the place divided by 10,000^(2i / hidden).

    >>> sine_positions(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    place = torch.arange(most, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, hidden, 2, dtype=torch.float32) * (-math.log(10_000.0) / hidden))
    table = torch.zeros(most, hidden)
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)[:, : hidden // 2]
    return table
