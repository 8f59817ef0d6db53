"""Cross-entropy of the first and the last clip (TVR, section 4.4)."""

from __future__ import annotations

from torch import Tensor


def span_cross_entropy(start: Tensor, end: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """``-log P_start(first) - log P_end(last)`` per row, from log-probabilities (n, clips).

    >>> import torch
    >>> even = torch.full((1, 4), 0.25).log()
    >>> round(span_cross_entropy(even, even, torch.tensor([0]), torch.tensor([3])).item(), 4) # 2 log 4
    2.7726
    """
    return -(start.gather(1, first[:, None]) + end.gather(1, last[:, None])).squeeze(1)
