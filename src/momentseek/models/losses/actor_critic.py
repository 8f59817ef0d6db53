"""Rewards of moving a window, and what a policy may expect from each step on (TSP-PRL)."""

from __future__ import annotations

import torch
from torch import Tensor


def root_reward(before: Tensor, after: Tensor, best: Tensor) -> Tensor:
    """For choosing a kind of move: 1 more if no kind would have been better, less by what the best had over it.

    >>> root_reward(torch.tensor([0.2, 0.2]), torch.tensor([0.5, 0.1]), torch.tensor([0.5, 0.5])).tolist()
    [1.2999999523162842, -0.5]
    """
    return torch.where(after >= best, 1.0, after - best) + (after - before)


def leaf_reward(before: Tensor, after: Tensor, *, spare: bool) -> Tensor:
    """For a move: 1 (and the IoU, from a half on) if it got better, -0.1 if not, -1 if it left the moment.

    A window apart from the moment (below 0) that comes closer is worth 1 with ``spare``, and -1 without.

    >>> was, now = torch.tensor([0.2, 0.4, 0.4, 0.1, -0.5]), torch.tensor([0.3, 0.6, 0.3, -0.1, -0.2])
    >>> [round(x, 1) for x in leaf_reward(was, now, spare=True).tolist()]
    [1.0, 1.6, -0.1, -1.0, 1.0]
    """
    better = (after > before) & ((before >= 0) | spare)
    reward = torch.where((after >= 0) & (after <= before), -0.1, -1.0).to(after)
    return torch.where(better, 1 + after * (after > 0.5), reward)


def discounted_returns(reward: Tensor, value: Tensor, counted: Tensor, discount: float) -> Tensor:
    """(n, steps): ``R_k = r_k + discount R_{k+1}``; the last step that counts goes on with its own value.

    >>> every = torch.ones(1, 3)
    >>> discounted_returns(every, 2 * every, every, 0.5).tolist()
    [[2.0, 2.0, 2.0]]
    """
    found = []
    later = value[:, -1]
    steps = reward.shape[1]
    for k in reversed(range(steps)):
        last = counted[:, k + 1] == 0 if k + 1 < steps else torch.ones_like(later, dtype=torch.bool)
        later = reward[:, k] + discount * torch.where(last, value[:, k], later)
        found.append(later)
    return torch.stack(found[::-1], 1)
