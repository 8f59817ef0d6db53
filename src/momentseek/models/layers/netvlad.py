"""NetVLAD: a set of vectors as how far they lie, in sum, from learned centres (Arandjelović et al., CVPR 2016)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NetVLAD(nn.Module):
    """Pools (n, T, dim) with a mask into (n, clusters * dim), whatever the order of the T vectors.

    Each vector is shared out among the clusters, ``a = softmax(W x + b)``; cluster k gathers
    ``sum_t a_tk (x_t - c_k)``, which is brought to length 1, and so is the whole.
    """

    def __init__(self, dim: int, clusters: int) -> None:
        super().__init__()
        self.assign = nn.Linear(dim, clusters)
        self.centres = nn.Parameter(torch.empty(clusters, dim))
        nn.init.normal_(self.centres, std=dim**-0.5)
        self.width = clusters * dim

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(n, T, dim), (n, T) -> (n, clusters * dim)."""
        shares = self.assign(x).softmax(-1) * mask[..., None]
        residual = shares.transpose(1, 2) @ x - shares.sum(1)[..., None] * self.centres
        return F.normalize(F.normalize(residual, dim=-1).flatten(1), dim=-1)
