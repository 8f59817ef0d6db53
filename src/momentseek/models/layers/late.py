"""Late interaction: a video is as good as its best clip."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_CLIP_SCORES = 1 << 24
"""Scores of clips held at a time while searching: 64 MB."""


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
