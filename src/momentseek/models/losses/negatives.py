"""Negatives: drawn from the whole batch at first, later from the hardest of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Negatives:
    """The schedule of hard negatives: from epoch ``hard_from`` on, one of the ``pool`` best-scored ones is drawn."""

    hard_from: int | None = 20
    """First epoch, counted from 0, with hard negatives; None for never."""
    pool: int = 20

    def at(self, epoch: int) -> int | None:
        """How many of the hardest are drawn from in an epoch; None for all.

        >>> Negatives(hard_from=2, pool=5).at(1), Negatives(hard_from=2, pool=5).at(2), Negatives(None).at(99)
        (None, 5, None)
        """
        return self.pool if self.hard_from is not None and epoch >= self.hard_from else None


def draw_negatives(scores: Tensor, allowed: Tensor, pool: int | None, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """One column of each row, uniformly among the allowed or among the ``pool`` best-scored of them.

    Returns the columns (rows,) and whether there was any to draw (rows,); where there was none, the column is 0.

    >>> scores = torch.tensor([[9.0, 1.0, 5.0], [1.0, 2.0, 3.0]])
    >>> allowed = torch.tensor([[False, True, True], [False, False, False]])
    >>> [t.tolist() for t in draw_negatives(scores, allowed, 1, torch.Generator())]
    [[2, 0], [True, False]]
    """
    if not scores.shape[1]:
        nothing = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
        return nothing, nothing.bool()
    if pool is not None and pool < scores.shape[1]:
        best = scores.detach().masked_fill(~allowed, -torch.inf).topk(pool, dim=1).indices
        allowed = allowed & torch.zeros_like(allowed).scatter_(1, best, True)
    lots = torch.rand(scores.shape, generator=rng, device=rng.device).to(scores.device)
    found = allowed.any(1)
    return torch.where(found, lots.masked_fill(~allowed, -1.0).argmax(1), 0), found
