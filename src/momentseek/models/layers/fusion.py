"""How much each modality counts for a query (CONQUER's query-dependent fusion, QDF)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from momentseek.models.layers.dropout import Dropout
from momentseek.models.layers.netvlad import NetVLAD


class ModalityWeights(nn.Module):
    """Weights that sum to 1, from the words pooled by NetVLAD: ``softmax(W vlad(q))``."""

    def __init__(self, dim: int, clusters: int, modalities: int, dropout: float = 0.0, *, masked: bool = True) -> None:
        super().__init__()
        self.pool = NetVLAD(dim, clusters, norm="layer", masked=masked)
        self.dropout = Dropout(dropout)
        self.weigh = nn.Linear(self.pool.width, modalities, bias=False)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """(n, T, dim), (n, T) -> (n, modalities)."""
        weights: Tensor = self.weigh(self.dropout(self.pool(words, mask))).softmax(-1)
        return weights


def fuse(weights: Tensor, modalities: Sequence[Tensor]) -> Tensor:
    """``sum_m weights[:, m] * modalities[m]``, clip by clip.

    >>> fuse(torch.tensor([[0.25, 0.75]]), [torch.ones(1, 1, 2), 2 * torch.ones(1, 1, 2)]).tolist()
    [[[1.75, 1.75]]]
    """
    return torch.einsum("nm,mnld->nld", weights, torch.stack(list(modalities)))
