"""Spans of clips: their scores from starts and ends, and which clips lie in one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def span_grid(start: Tensor, end: Tensor, shortest: int, longest: int) -> Tensor:
    """(n, clips, lengths): ``start[i, s] + end[i, s + shortest - 1 + w]``; minus infinity past the last clip.

    Only spans of ``shortest`` to ``longest`` clips are formed, so memory grows with clips × lengths and not with
    clips × clips. Minus infinity in ``start`` or ``end`` (clips that are not there) stays.

    >>> start, end = torch.tensor([[0.0, -1.0]]), torch.tensor([[-10.0, -20.0]])
    >>> span_grid(start, end, 1, 2).tolist()
    [[[-10.0, -20.0], [-21.0, -inf]]]
    """
    lengths = longest - shortest + 1
    ends = pad(end[:, shortest - 1 :], (0, longest - 1 - max(0, shortest - 1 - end.shape[1])), value=-torch.inf)
    return start[..., None] + ends.unfold(1, lengths, 1)


def inside(start: Tensor, end: Tensor, clips: int) -> Tensor:
    """(n, clips), True from each start to each end, both included.

    >>> inside(torch.tensor([1]), torch.tensor([2]), 4).tolist()
    [[False, True, True, False]]
    """
    place = torch.arange(clips, device=start.device)
    return (place >= start[:, None]) & (place <= end[:, None])
