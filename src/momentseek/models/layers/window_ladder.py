"""Sliding windows of several lengths over a video, and the means of the clips in them and beside them (CTRL, ACRN).

Windows of each length begin at every ``(1 - overlap) length`` clips and lie inside the video. A video shorter than the
shortest window has one, itself, so that it can be searched too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of videos, each (n, windows): clips ``start`` to before ``end``, and whether there is such a window."""

    start: Tensor
    end: Tensor
    valid: Tensor

    def take(self, index: Tensor) -> Windows:
        """One window of each video, at places (n,), as windows (n, 1)."""
        return Windows(*(x.gather(1, index[:, None]) for x in (self.start, self.end, self.valid)))


@cache
def window_grid(clips: int, lengths: tuple[int, ...], overlap: float) -> tuple[tuple[int, int], ...]:
    """First clips and ends of all windows among ``clips`` clips, by length and then by place.

    >>> window_grid(5, (2, 4), 0.5)
    ((0, 2), (1, 3), (2, 4), (3, 5), (0, 4))
    """
    return tuple(
        (start, start + length)
        for length in lengths
        for start in range(0, clips - length + 1, max(1, round(length * (1 - overlap))))
    )


def windows_of(mask: Tensor, lengths: Sequence[int], overlap: float) -> Windows:
    """The windows of videos with clips where ``mask`` (n, L) is true; the first is for videos that have no other.

    >>> found = windows_of(torch.tensor([[True, True, True], [True, False, False]]), (2,), 0.5)
    >>> found.valid.tolist(), found.end[1].tolist()
    ([[False, True, True], [True, False, False]], [1, 2, 3])
    """
    counts = mask.sum(1, keepdim=True)
    listed = window_grid(mask.shape[1], tuple(lengths), overlap)
    grid = torch.tensor(listed, dtype=torch.long, device=mask.device).reshape(-1, 2)
    start = torch.cat([torch.zeros_like(counts), grid[:, 0].expand(len(mask), -1)], 1)
    end = torch.cat([counts, grid[:, 1].expand(len(mask), -1)], 1)
    valid = end <= counts
    valid[:, 0] = counts[:, 0] < min(lengths)
    return Windows(start, end, valid)


def window_means(x: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """(n, L, d), (n, W), (n, W) -> (n, W, d): means of rows ``start`` to before ``end``; zero where there are none.

    >>> rows = torch.tensor([[[1.0], [3.0], [8.0]]])
    >>> window_means(rows, torch.tensor([[0, 1, 2]]), torch.tensor([[2, 3, 2]])).flatten().tolist()
    [2.0, 5.5, 0.0]
    """
    sums = torch.cat([torch.zeros_like(x[:, :1]), x.cumsum(1)], 1)
    first, last = (sums.gather(1, at[..., None].expand(-1, -1, x.shape[2])) for at in (start, end))
    return (last - first) / (end - start).clamp(min=1)[..., None]


def beside(windows: Windows, counts: Tensor, context: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Starts and ends of up to ``context`` clips before and after each window; equal where there are none."""
    counts = counts[:, None]
    end = torch.minimum(windows.end, counts)  # padding has no context
    return ((windows.start - context).clamp(min=0), windows.start), (end, torch.minimum(end + context, counts))


def window_overlaps(windows: Windows, times: Tensor) -> tuple[Tensor, Tensor]:
    """IoU of windows (n, W) with a moment of each video, (n, 2) in clips, and the share of each window outside it.

    >>> one = Windows(torch.tensor([[0]]), torch.tensor([[4]]), torch.tensor([[True]]))
    >>> [x.tolist() for x in window_overlaps(one, torch.tensor([[1.0, 5.0]]))]
    [[[0.6000000238418579]], [[0.25]]]
    """
    first, last = times[:, :1], times[:, 1:]
    length = (windows.end - windows.start).to(times)
    shared = (torch.minimum(windows.end, last) - torch.maximum(windows.start, first)).clamp(min=0)
    return shared / (length + (last - first) - shared), (length - shared) / length.clamp(min=1)
