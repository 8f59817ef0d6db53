"""Cross-entropy with smoothed labels (Szegedy et al. 2016): the right word gets 1 − ε, all others share ε."""

from __future__ import annotations

import math

from torch import Tensor


def smoothed_divergence(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """(n,): the Kullback-Leibler divergence of each row's softmax from its smoothed target.

    .. math:: \\sum_v t_v (\\log t_v - \\log p_v), \\qquad t_y = 1 - \\varepsilon, \\quad
              t_v = \\varepsilon / (V - 1) \\text{ for } v \\ne y

    Without smoothing it is the cross-entropy, and it is 0 where the softmax is the target.

    >>> import torch
    >>> smoothed_divergence(torch.tensor([[0.8, 0.1, 0.1]]).log(), torch.tensor([0]), 0.2).abs() < 1e-6
    tensor([True])
    """
    others = logits.shape[-1] - 1
    chance = logits.log_softmax(-1)
    right = chance.gather(-1, target[:, None])[:, 0]
    if not smoothing or not others:
        return -right
    share = smoothing / others
    entropy = (1 - smoothing) * math.log(1 - smoothing) + smoothing * math.log(share)
    return entropy - (1 - smoothing - share) * right - share * chance.sum(-1)
