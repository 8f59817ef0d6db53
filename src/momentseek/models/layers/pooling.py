"""Many vectors as one: modular query vectors, the best clip of a video, NetVLAD."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MAX_CLIP_SCORES = 1 << 24
"""Scores of clips held at a time while searching: 64 MB."""
ASSIGNMENT_NORMS = ("linear", "layer", "batch")
"""What stands between a vector's products with the clusters and their softmax: a bias, or a normalisation."""


class ModularQuery(nn.Module):
    """``q_m = softmax(w_m' H) H``: each modality weighs the words by itself."""

    def __init__(self, hidden: int, modalities: int) -> None:
        super().__init__()
        self.weight = nn.Linear(hidden, modalities, bias=False)

    def attention(self, words: Tensor, mask: Tensor) -> Tensor:
        """(queries, modalities, words): the weight of each word, adding up to 1."""
        scores: Tensor = self.weight(words).transpose(1, 2)
        return scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """A vector of each query for each modality, of shape (queries, modalities, hidden)."""
        return self.attention(words, mask) @ words


class MaxQuery(nn.Module):
    """The largest value of each column, the same for every modality: XML without modular queries (Table 5)."""

    def __init__(self, modalities: int) -> None:
        super().__init__()
        self.modalities = modalities

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        best = words.masked_fill(~mask[..., None], -torch.inf).amax(1)
        return best[:, None].expand(-1, self.modalities, -1)


def best_clip(queries: Tensor, clips: Tensor, mask: Tensor) -> Tensor:
    """(queries, videos): the largest dot product of query ``i`` with a clip of video ``j``.

    ``queries`` are (queries, hidden), ``clips`` (videos, clips, hidden), ``mask`` (videos, clips). Videos are taken
    in blocks, so that at most ``MAX_CLIP_SCORES`` clip scores exist at once where no gradient is asked for.

    >>> q, v = torch.tensor([[1.0, 0.0]]), torch.tensor([[[0.5, 0.0], [2.0, 9.0]]])
    >>> best_clip(q, v, torch.tensor([[True, True]])).item(), best_clip(q, v, torch.tensor([[True, False]])).item()
    (2.0, 0.5)
    """
    videos, length, hidden = clips.shape
    step = max(1, MAX_CLIP_SCORES // max(1, len(queries) * length))
    parts = []
    for first in range(0, videos, step):
        block = clips[first : first + step]
        scores = (queries @ block.reshape(-1, hidden).T).view(len(queries), -1, length)
        # max keeps only the winners' places for the gradient; amax would keep all scores.
        parts.append(scores.masked_fill(~mask[first : first + step], -torch.inf).max(-1).values)
    return torch.cat(parts, 1) if parts else queries.new_zeros(len(queries), 0)


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
