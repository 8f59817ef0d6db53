"""Which spans of a video are candidates: all short ones, and ever sparser long ones.

With N clips, spans of 1 to 16 clips start anywhere; then come groups of eight lengths, of which each group lies on a
grid twice as coarse as the one before: 18, 20, …, 32 clips at even starts, 36, 40, …, 64 at multiples of four, and so
on (2D-TAN, section 3.2). That leaves 136, 1,104 and 2,548 cells for N = 16, 64 and 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

DENSE_LENGTHS = 16
"""Number of lengths, in clips, that may start at every clip."""
LENGTHS_PER_GRID = 8
"""Number of lengths on each coarser grid."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Candidate spans: cell c covers clips ``start[c]`` to ``start[c] + length[c] - 1`` of ``clips``."""

    clips: int
    start: Tensor
    length: Tensor

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Tensor:
        """Last clip of each cell, included."""
        return self.start + self.length - 1

    def mask(self) -> Tensor:
        """(clips, clips), True at [first, last] of each candidate."""
        valid = torch.zeros(self.clips, self.clips, dtype=torch.bool)
        valid[self.start, self.end] = True
        return valid

    def as_map(self, values: Tensor) -> Tensor:
        """(batch, cells, dim) as maps (batch, dim, clips, clips), zero where there is no candidate."""
        batch, _, dim = values.shape
        flat = values.new_zeros(batch, self.clips * self.clips, dim)
        place = (self.start * self.clips + self.end).to(values.device)
        flat = flat.index_copy(1, place, values)
        return flat.view(batch, self.clips, self.clips, dim).permute(0, 3, 1, 2)

    def of_map(self, maps: Tensor) -> Tensor:
        """(batch, dim, clips, clips) as (batch, cells, dim): ``as_map`` backwards."""
        return maps[:, :, self.start, self.end].transpose(1, 2)

    def as_spans(self, scores: Tensor, lengths: int) -> Tensor:
        """(batch, cells) scores as the spans (batch, clips, lengths) of the model contract; others minus infinity.

        >>> cells(2).as_spans(torch.tensor([[1.0, 2.0, 3.0]]), 2).tolist()
        [[[1.0, 3.0], [2.0, -inf]]]
        """
        grid = scores.new_full((len(scores), self.clips, max(lengths, int(self.length.max()))), -torch.inf)
        grid[:, self.start, self.length - 1] = scores
        return grid[:, :, :lengths]


@cache
def cells(clips: int) -> Cells:
    """The candidates among ``clips`` clips, short ones first.

    >>> [len(cells(n)) for n in (16, 64, 128)]
    [136, 1104, 2548]
    """
    starts: list[int] = []
    lengths: list[int] = []
    length, stride, left = 1, 1, DENSE_LENGTHS
    while length <= clips:
        here = range(0, clips - length + 1, stride)
        starts += here
        lengths += [length] * len(here)
        left -= 1
        if not left:
            stride, left = 2 * stride, LENGTHS_PER_GRID
        length += stride
    return Cells(clips, torch.tensor(starts), torch.tensor(lengths))
