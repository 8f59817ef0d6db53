"""Every span of a video at once, by first clip and length, without laying the spans out one by one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def window_squares(x: Tensor, longest: int) -> Tensor:
    """(n, L, d) -> (n, L, longest): entry [s, w] is the squared length of the sum of rows s to s + w.

    With G the rows' inner products, a span that grows by its last clip e adds ``G_ee + 2 sum_{s <= i < e} G_ie``; only
    G, (n, L, L), is held, never the sums themselves, (n, L, longest, d).

    >>> window_squares(torch.tensor([[[1.0, 0.0], [3.0, 4.0]]]), 2).tolist()
    [[[1.0, 32.0], [25.0, 25.0]]]
    """
    gram = x @ x.transpose(1, 2)
    place = torch.arange(x.shape[1], device=x.device)[:, None]
    back = torch.arange(longest, device=x.device)
    twice = (place >= back) * torch.where(back == 0, 1.0, 2.0)
    grown = (gram[:, place, (place - back).clamp(min=0)] * twice).cumsum(-1)  # [e, w]: what e adds to s = e - w
    return F.pad(grown, (0, 0, 0, longest - 1))[:, place + back, back].cumsum(-1)


def fits(mask: Tensor, shortest: int, longest: int) -> Tensor:
    """(n, L) -> (n, L, longest - shortest + 1): whether the span of each first clip and length lies in the video.

    >>> fits(torch.tensor([[True, True, False]]), 1, 2).tolist()
    [[[True, True], [True, False], [False, False]]]
    """
    place = torch.arange(mask.shape[1], device=mask.device)[:, None]
    return place + torch.arange(shortest, longest + 1, device=mask.device) <= mask.sum(1)[:, None, None]


def even_spans(mask: Tensor, shortest: int, longest: int) -> Tensor:
    """(n, L, lengths): the same logarithm of a probability for every span that fits, for models without spans.

    >>> [round(x, 2) for x in even_spans(torch.tensor([[True, True]]), 1, 2).exp().flatten().tolist()]
    [0.33, 0.33, 0.33, 0.0]
    """
    inside = fits(mask, shortest, longest)
    even = -inside.sum((1, 2), keepdim=True).clamp(min=1).float().log()
    return even.expand(inside.shape).masked_fill(~inside, -torch.inf)


def cell(start: Tensor, end: Tensor, counts: Tensor, shortest: int, longest: int) -> tuple[Tensor, Tensor]:
    """First clip and column of each span start..end; for one too short, too long or past the end, of the nearest.

    >>> cell(torch.tensor([1, 3]), torch.tensor([9, 4]), torch.tensor([10, 4]), 1, 4)
    (tensor([1, 2]), tensor([3, 1]))
    """
    length = torch.minimum((end - start + 1).clamp(shortest, longest), counts.clamp(min=shortest))
    return torch.minimum(start, (counts - length).clamp(min=0)), length - shortest


def overlaps(start: Tensor, end: Tensor, clips: int, shortest: int, longest: int) -> Tensor:
    """(n,), (n,) -> (n, clips, lengths): IoU of each span with clips start..end, both included.

    >>> overlaps(torch.tensor([0]), torch.tensor([1]), 2, 1, 2)[0, 0].tolist()
    [0.5, 1.0]
    """
    first = torch.arange(clips, device=start.device)[:, None]
    last = first + torch.arange(shortest - 1, longest, device=start.device)
    start, end = start[:, None, None], end[:, None, None]
    common = (torch.minimum(last, end) - torch.maximum(first, start) + 1).clamp(min=0)
    return common / ((last - first + 1) + (end - start + 1) - common)
