"""Soft labels for starts and ends: 1 at the true edge, falling off towards the moment's other end (CroCs, eq. 10).

With true clips s to e, the start's label at clip i is ``((e - i + 1) / (e - s + 1))^k`` for s <= i <= e, else 0; the
end's is its mirror image. The paper prints the numerators without the ``+ 1``, which would give the true edge less
than 1 and a moment of a single clip no label at all; ``printed=True`` is that form.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def edge_labels(start: Tensor, end: Tensor, clips: int, power: float, printed: bool = False) -> tuple[Tensor, Tensor]:
    """(n, clips) labels of starts and of ends, for true first and last clips (n,).

    >>> s, e = edge_labels(torch.tensor([1]), torch.tensor([2]), 4, 1.0)
    >>> s.tolist(), e.tolist()
    ([[0.0, 1.0, 0.5, 0.0]], [[0.0, 0.5, 1.0, 0.0]])
    """
    at = torch.arange(clips, device=start.device)
    first, last = start[:, None], end[:, None]
    more = 0 if printed else 1
    inside = (at >= first) & (at <= last)
    length = (last - first + 1).float()
    starts = ((last - at + more) / length).clamp(min=0) ** power
    ends = ((at - first + more) / length).clamp(min=0) ** power
    return starts * inside, ends * inside


def edge_loss(logits: tuple[Tensor, Tensor], labels: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
    """(n,): mean of both edges' binary cross-entropies over the clips there are (eq. 11, 12)."""
    each = sum(F.binary_cross_entropy_with_logits(x, y, reduction="none") for x, y in zip(logits, labels, strict=True))
    weight = mask.float()
    return (each * weight).sum(1) / (2 * weight.sum(1))
