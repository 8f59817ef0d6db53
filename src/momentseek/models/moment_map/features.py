"""A feature for every candidate moment, from the features of its clips: their maximum, or a stack of convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.moment_map.cells import GROUP, WHOLE, Cells


def max_over(clips: Tensor, cells: Cells) -> Tensor:
    """(batch, clips, dim) → (batch, cells, dim): the maximum over each cell's clips (2D-TAN's stacked max-pooling).

    Two overlapping windows of a power of two cover any span, so a table of log2(N) running maxima answers all cells
    with two look-ups each, where a stack of poolings needs a step per length.

    >>> from momentseek.models.moment_map.cells import cells
    >>> max_over(torch.tensor([[[1.0], [3.0], [2.0]]]), cells(3)).flatten().tolist()
    [1.0, 3.0, 2.0, 3.0, 3.0, 3.0]
    """
    tables = [clips]
    while 2 ** len(tables) <= cells.clips:
        step = 2 ** (len(tables) - 1)
        tables.append(torch.maximum(tables[-1][:, :-step], tables[-1][:, step:]))
    level = torch.floor(torch.log2(cells.length.double() + 0.5)).long()
    pieces = []
    for power, table in enumerate(tables):
        here = level == power
        first = cells.start[here]
        last = first + cells.length[here] - 2**power
        pieces.append(torch.maximum(table[:, first], table[:, last]))
    # cells ascend in length, so levels ascend too and the pieces are in order
    return torch.cat(pieces, dim=1)


class ConvolutionStack(nn.Module):
    """The learned counterpart: each length's features are a convolution over those of the length before.

    Two neighbours are joined within a grid, three (every other one) where the grid turns coarser; no non-linearity,
    as in 2D-TAN's code.
    """

    def __init__(self, dim: int, clips: int) -> None:
        super().__init__()
        joins, strides = [1], [1]
        length, stride, left = 2, 1, WHOLE - 1
        while length <= clips:
            coarser = left == GROUP and stride > 1
            joins.append(3 if coarser else 2)
            strides.append(2 if coarser else 1)
            left -= 1
            if not left:
                stride, left = 2 * stride, GROUP
            length += stride
        self.layers = nn.ModuleList(nn.Conv1d(dim, dim, k, s) for k, s in zip(joins, strides, strict=True))

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
