"""Where a moment lies, as waves: half the columns encode its first clip, half its last (MDD, section 4.3.2)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from momentseek.models.moment_map import Cells

WAVE_BASE = 10_000.0


def waves(places: Tensor, dim: int) -> Tensor:
    """(n, dim): sines and cosines of geometrically slower frequencies (Vaswani et al. 2017, section 3.5).

    >>> waves(torch.tensor([0]), 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    steps = torch.arange(0, dim, 2)
    angles = places[:, None] * torch.exp(steps * (-math.log(WAVE_BASE) / dim))
    pairs = torch.stack([angles.sin(), angles.cos()], dim=2)
    return pairs.flatten(1)[:, :dim]


def positions_2d(cells: Cells, dim: int) -> Tensor:
    """Sinusoidal vectors of the cells' starts and ends, of shape (cells, dim)."""
    half = dim // 2
    return torch.cat([waves(cells.start, half), waves(cells.end, dim - half)], dim=1)


def grid_2d(clips: int, dim: int) -> Tensor:
    """(clips · clips, dim) for all first and last clips: the dictionary of locations, of N × N entries."""
    first, last = (g.flatten() for g in torch.meshgrid(torch.arange(clips), torch.arange(clips), indexing="ij"))
    half = dim // 2
    return torch.cat([waves(first, half), waves(last, dim - half)], dim=1)
