"""The moves of a window over the clips of a video: five kinds, of four or three moves each (TSP-PRL).

Windows are whole clips, first and last included. Kind 0 scales about the centre by 1.2, 1.5, 1/1.2 and 1/1.5; kinds 1
and 2 move left and right by a tenth of the video, 3 and 4 by one clip: both ends, the start only or the end only.
"""

from __future__ import annotations

import torch
from torch import Tensor

BRANCHES = (4, 3, 3, 3, 3)
"""Moves of each kind."""
HALF_LENGTHS = (0.6, 0.75, 0.5 / 1.2, 0.5 / 1.5)
"""Half the new length, as a share of the old, of each scaling."""


def first_window(count: Tensor) -> Tensor:
    """(n, 2): the middle half of videos of so many clips.

    >>> first_window(torch.tensor([20, 3])).tolist()
    [[4, 14], [0, 2]]
    """
    quarter = count // 4
    return torch.stack([(quarter - 1).clamp(min=0), count - quarter - 1], 1)


def move_window(window: Tensor, kind: Tensor, move: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 2): windows after a move, cut to the video, and (n,) whether nothing of them is left, which ends an episode.

    >>> at, right, by = torch.tensor([[4, 14]]), torch.tensor([4]), torch.tensor([20])
    >>> [move_window(at, right, torch.tensor([m]), by)[0].tolist() for m in range(3)]
    [[[5, 15]], [[5, 14]], [[4, 15]]]
    """
    start, end = window.unbind(1)
    length, centre = end - start, (start + end) // 2
    half = (length * torch.tensor(HALF_LENGTHS, device=window.device)[move.clamp(max=3)]).long()
    far = torch.where(kind <= 2, count // 10, torch.ones_like(count))
    step = torch.where((kind == 1) | (kind == 3), -far, far)
    scales = kind == 0
    first = torch.where(scales, centre - half, start + step * (move != 2))
    last = torch.where(scales, centre + half, end + step * (move != 1))
    outside = (last < 0) | (first >= count)
    first, last = first.clamp(min=0), torch.minimum(last, count - 1)
    bad = (last <= first) | outside
    return torch.stack([first, last], 1), bad


def window_overlap(window: Tensor, truth: Tensor) -> Tensor:
    """(n,): IoU of windows of whole clips with moments (n, 2) in clips; below 0 for windows apart from them.

    >>> window_overlap(torch.tensor([[0, 3], [6, 7]]), torch.tensor([[2.0, 6.0], [2.0, 4.0]])).tolist()
    [0.3333333432674408, -0.3333333432674408]
    """
    first, last = window[:, 0].to(truth), window[:, 1].to(truth) + 1
    start, end = truth.unbind(1)
    return (torch.minimum(last, end) - torch.maximum(first, start)) / (
        torch.maximum(last, end) - torch.minimum(first, start)
    ).clamp(min=1e-6)
