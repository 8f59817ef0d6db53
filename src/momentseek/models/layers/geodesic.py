"""How near moments of a video are along the video's own manifold: shortest paths over nearest neighbours (G2L)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


@torch.no_grad()
def geodesic_similarity(features: Tensor, sources: Tensor, neighbours: int = 5, reach: float = 0.5) -> Tensor:
    """(sources, cells): 1 minus the length of the shortest path from each source cell, 0 for paths beyond ``reach``.

    Each cell has an edge to its nearest ``neighbours`` by Euclidean distance of ``features`` (cells, d), and an edge
    i → j is as long as cell j is less similar to i than i's most similar cell, itself: ``1 - cos(i, j)``. Paths carry
    no gradient.

    >>> line = torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 1.0]])
    >>> [round(x, 3) for x in geodesic_similarity(line, torch.tensor([0]), neighbours=1)[0].tolist()]
    [1.0, 0.995, 0.0]
    """
    count = min(neighbours, len(features) - 1)
    if not count:
        return torch.ones(len(sources), len(features), device=features.device)
    far = torch.cdist(features, features)
    near = far.fill_diagonal_(torch.inf).topk(count, dim=1, largest=False).indices
    unit = normalize(features, dim=1)
    length = (1 - torch.einsum("id,ikd->ik", unit, unit[near])).clamp(min=0)
    best = torch.full((len(sources), len(features)), torch.inf, device=features.device, dtype=features.dtype)
    best[torch.arange(len(sources)), sources] = 0
    target = near.flatten().expand(len(sources), -1)
    for _ in range(len(features)):  # paths grow by an edge in every round, until none gets shorter
        step = (best[:, :, None] + length).flatten(1)
        shorter = best.scatter_reduce(1, target, step, "amin")
        if torch.equal(shorter, best):
            break
        best = shorter
    return torch.where(best <= reach, 1 - best, torch.zeros_like(best))
