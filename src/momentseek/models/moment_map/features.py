"""A feature for every candidate moment, from the features of its clips: their maximum, or a stack of convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.moment_map.cells import DENSE_LENGTHS, LENGTHS_PER_GRID, Cells


def max_over(clips: Tensor, cells: Cells) -> Tensor:
    """(batch, clips, dim) → (batch, cells, dim): the maximum over each cell's clips (2D-TAN's stacked max-pooling).

    Each length's maxima are those of two neighbours of the length before. (A table of running maxima over powers of two
    needs fewer steps but gathers its answers, which costs more than the steps saved: docs/benchmarks.md.)

    >>> from momentseek.models.moment_map.cells import cells
    >>> max_over(torch.tensor([[[1.0], [3.0], [2.0]]]), cells(3)).flatten().tolist()
    [1.0, 3.0, 2.0, 3.0, 3.0, 3.0]
    """
    rows = [clips]
    for coarser in growth(cells.clips):
        x = rows[-1]
        pair = torch.maximum(x[:, :-2:2], x[:, 1:-1:2]) if coarser else torch.maximum(x[:, :-1], x[:, 1:])
        rows.append(torch.maximum(pair, x[:, 2::2]) if coarser else pair)
    return torch.cat(rows, dim=1)


def growth(clips: int) -> list[bool]:
    """Whether the grid of starts turns coarser at each length of candidates after the first.

    >>> growth(18)[13:]
    [False, False, True]
    """
    steps = []
    length, stride, left = 2, 1, DENSE_LENGTHS - 1
    while length <= clips:
        steps.append(left == LENGTHS_PER_GRID and stride > 1)
        left -= 1
        if not left:
            stride, left = 2 * stride, LENGTHS_PER_GRID
        length += stride
    return steps


class ConvolutionStack(nn.Module):
    """The learned counterpart: each length's features are a convolution over those of the length before.

    Two neighbours are joined within a grid, three (every other one) where the grid turns coarser; no non-linearity,
    as in 2D-TAN's code.
    """

    def __init__(self, dim: int, clips: int) -> None:
        super().__init__()
        steps = growth(clips)
        self.layers = nn.ModuleList([nn.Conv1d(dim, dim, 1), *(nn.Conv1d(dim, dim, 2 + c, 1 + c) for c in steps)])

    def forward(self, clips: Tensor, cells: Cells) -> Tensor:
        """(batch, clips, dim) → (batch, cells, dim)."""
        x = clips.transpose(1, 2)
        rows = []
        for layer in self.layers:
            x = layer(x)
            rows.append(x)
        joined = torch.cat(rows, dim=2).transpose(1, 2)
        assert joined.shape[1] == len(cells), (joined.shape, len(cells))
        return joined
