"""CTRL's alignment: every window of a batch against every query, the right ones above, all others below nothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def alignment(scores: Tensor, counted: Tensor) -> Tensor:
    """``mean_ij a_ij log(1 + exp(m_ij c_ij))`` of scores c (B, B), right ones on the diagonal.

    m is -1 on the diagonal and +1 off it; a is ``1 + 1/B`` on the diagonal and ``1/B`` off it (Gao et al. 2017, public
    code). Pairs where ``counted`` is false are left out.

    >>> round(alignment(torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.bool)).item(), 4)  # (1.5 + 0.5) log(2) / 2
    0.6931
    """
    size = len(scores)
    right = torch.eye(size, dtype=torch.bool, device=scores.device)
    weight = (right.to(scores) + 1 / max(size, 1)) * counted
    signed = torch.where(right, -scores, scores)
    return (weight * F.softplus(signed)).sum() / counted.sum().clamp(min=1)
