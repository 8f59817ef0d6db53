"""Which moments and sentences of a video belong together, as players of a game (G2L's semantic Shapley interaction)."""

from __future__ import annotations

import torch
from torch import Tensor


def coalition_value(similarity: Tensor, cells: Tensor, sentences: Tensor) -> Tensor:
    """(coalitions,): how well cells and sentences that play together fit, from similarities (sentences, cells).

    The mean of the sentences' best softmax over cells and the cells' best softmax over sentences, divided by two;
    ``cells`` (coalitions, cells) and ``sentences`` (coalitions, sentences) say who plays. Nothing is worth nothing.
    """
    plays = sentences[:, :, None] & cells[:, None]
    table = similarity.expand(plays.shape).masked_fill(~plays, -torch.inf)
    total = similarity.new_zeros(len(plays))
    for axis, players in ((2, sentences), (1, cells)):
        best = table.amax(axis) - table.logsumexp(axis)
        best = torch.where(players & plays.any(axis), best.exp(), torch.zeros_like(best))
        total = total + best.sum(1) / players.sum(1).clamp(min=1)
    return torch.where(plays.flatten(1).any(1), total / 2, torch.zeros_like(total))


@torch.no_grad()
def interactions(similarity: Tensor) -> Tensor:
    """(sentences, cells): f(all) − f(without the cell) − f(without the sentence) + f(without both)."""
    count, cells = similarity.shape
    row, column = torch.meshgrid(torch.arange(count), torch.arange(cells), indexing="ij")
    row, column = (x.flatten().to(similarity.device) for x in (row, column))
    every = torch.ones(len(row), cells, dtype=torch.bool, device=similarity.device)
    some = every.clone()
    some[torch.arange(len(row)), column] = False
    all_said = torch.ones(len(row), count, dtype=torch.bool, device=similarity.device)
    less_said = all_said.clone()
    less_said[torch.arange(len(row)), row] = False
    value = [coalition_value(similarity, c, s) for c, s in ((every, all_said), (some, all_said), (every, less_said),
                                                            (some, less_said))]  # fmt: skip
    return (value[0] - value[1] - value[2] + value[3]).view(count, cells)


def interaction_loss(similarity: Tensor) -> Tensor:
    """``-sum φ_ij log a_ij``: φ the interactions above nothing, scaled to sum to 1, and a the softmax over cells."""
    label = interactions(similarity).clamp(min=0)
    loss: Tensor = -(label / label.sum().clamp(min=1e-9) * similarity.log_softmax(1)).sum()
    return loss
