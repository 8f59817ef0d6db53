"""Spans of clips: their scores from starts and ends, boundary filters, and overlaps."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import pad

from momentseek.core.errors import MomentseekError


def span_grid(start: Tensor, end: Tensor, shortest: int, longest: int) -> Tensor:
    """(n, clips, lengths): ``start[i, s] + end[i, s + shortest - 1 + w]``; minus infinity past the last clip.

    Only spans of ``shortest`` to ``longest`` clips are computed, so memory grows with clips × lengths and not with
    clips × clips. Minus infinity in ``start`` or ``end`` (padding) stays.

    >>> start, end = torch.tensor([[0.0, -1.0]]), torch.tensor([[-10.0, -20.0]])
    >>> span_grid(start, end, 1, 2).tolist()
    [[[-10.0, -20.0], [-21.0, -inf]]]
    """
    lengths = longest - shortest + 1
    ends = pad(end[:, shortest - 1 :], (0, longest - 1 - max(0, shortest - 1 - end.shape[1])), value=-torch.inf)
    place = torch.arange(start.shape[1], device=start.device)[:, None]
    return start[..., None] + ends[:, place + torch.arange(lengths, device=start.device)]


def inside(start: Tensor, end: Tensor, clips: int) -> Tensor:
    """(n, clips), True from each start to each end, both included.

    >>> inside(torch.tensor([1]), torch.tensor([2]), 4).tolist()
    [[False, True, True, False]]
    """
    place = torch.arange(clips, device=start.device)
    return (place >= start[:, None]) & (place <= end[:, None])


class BoundaryFilters(nn.Module):
    """One filter without bias for the start and one for the end, each normalised over the video's clips.

    Outside the video the curve counts as 0. Without ``masked``, the filters read the curve's values in the padding, as
    in the public code of XML and ReLoCLNet.
    """

    def __init__(self, kernel: int, *, masked: bool = True) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise MomentseekError(f"the boundary filters' kernel must be odd, not {kernel}")
        self.masked = masked
        self.filters = nn.Conv1d(1, 2, kernel, padding=kernel // 2, bias=False)

    def responses(self, curve: Tensor, mask: Tensor) -> Tensor:
        """(n, 2, clips): the responses of the start and the end filter; 0 outside the video."""
        seen = curve.masked_fill(~mask, 0.0) if self.masked else curve
        out: Tensor = self.filters(seen[:, None])
        return out.masked_fill(~mask[:, None], 0.0)

    def forward(self, curve: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities that each clip is the first, and the last; minus infinity outside the video."""
        scores = self.responses(curve, mask).masked_fill(~mask[:, None], -torch.inf)
        start, end = scores.log_softmax(-1).unbind(1)
        return start, end


def window_squares(x: Tensor, longest: int) -> Tensor:
    """(n, L, d) -> (n, L, longest): entry [s, w] is the squared norm of the sum of rows s to s + w.

    Let G be the rows' inner products. A clip e at the end of a span adds ``G_ee + 2 sum_{s <= i < e} G_ie``. So only G,
    (n, L, L), is stored, and not the sums themselves, (n, L, longest, d).

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
    """(n, L, lengths): equal log-probabilities for all spans that fit, for models without spans.

    >>> [round(x, 2) for x in even_spans(torch.tensor([[True, True]]), 1, 2).exp().flatten().tolist()]
    [0.33, 0.33, 0.33, 0.0]
    """
    inside = fits(mask, shortest, longest)
    even = -inside.sum((1, 2), keepdim=True).clamp(min=1).float().log()
    return even.expand(inside.shape).masked_fill(~inside, -torch.inf)


def cell(start: Tensor, end: Tensor, counts: Tensor, shortest: int, longest: int) -> tuple[Tensor, Tensor]:
    """Row and column of each span start..end in a table of spans: its first clip, and its length less ``shortest``.

    A span that is too short, too long or beyond the video is replaced by the nearest one in the table.

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
