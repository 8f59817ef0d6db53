"""NetVLAD: a set of vectors as how far they lie, in sum, from learned centres (Arandjelović et al., CVPR 2016)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ASSIGNMENT_NORMS = ("linear", "layer", "batch")
"""What stands between a vector's products with the clusters and their softmax: a bias, or a normalisation."""


class NetVLAD(nn.Module):
    """Pools (n, T, dim) with a mask into (n, clusters * dim), whatever the order of the T vectors.

    Each vector is shared out among the clusters, ``a = softmax(norm(W x))``; cluster k gathers
    ``sum_t a_tk (x_t - c_k)``, which is brought to length 1, and so is the whole. Without ``masked`` padding is shared
    out too, as the public code of MEE and CONQUER does.
    """

    def __init__(self, dim: int, clusters: int, *, norm: str = "linear", masked: bool = True) -> None:
        super().__init__()
        self.assign = nn.Linear(dim, clusters, bias=norm == "linear")
        kinds = {"linear": nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
        self.norm = kinds[norm](clusters)
        self.centres = nn.Parameter(torch.empty(clusters, dim))
        nn.init.normal_(self.centres, std=dim**-0.5)
        self.width = clusters * dim
        self.masked = masked

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(n, T, dim), (n, T) -> (n, clusters * dim), cluster by cluster."""
        there = mask if self.masked else torch.ones_like(mask)
        seen = self.norm(self.assign(x[there])).softmax(-1)
        shares = seen.new_zeros(*mask.shape, seen.shape[-1]).masked_scatter(there[..., None], seen)
        residual = shares.transpose(1, 2) @ x - shares.sum(1)[..., None] * self.centres
        return F.normalize(F.normalize(residual, dim=-1).flatten(1), dim=-1)
