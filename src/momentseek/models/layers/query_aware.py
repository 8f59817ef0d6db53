"""Clips that have read the query: attention both ways between clips and words (BiDAF; CONQUER's QAL)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MASKED_SIMILARITY = -1e4
"""Similarity of what is not there: no real clip or word sees it, and padding sees everything alike."""


class QueryAware(nn.Module):
    """Each clip beside what the query says about it, four times as wide: ``[c; A; c * A; c * B]``.

    Clip c_i and word q_j are compared by ``S_ij = a . c_i + b . q_j + (w * c_i) . q_j``. ``A_i``, the softmax of row i
    over the words, is the query as clip i reads it; ``B``, one vector for the whole video, is the clips weighed by the
    softmax of their best words, ``max_j S_ij`` (Seo et al., ICLR 2017, section 2; CONQUER, section 3.3).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.clip = nn.Linear(dim, 1, bias=False)
        self.word = nn.Linear(dim, 1, bias=False)
        self.both = nn.Parameter(torch.empty(dim))
        nn.init.normal_(self.both, std=dim**-0.5)

    def forward(self, clips: Tensor, clip_mask: Tensor, words: Tensor, word_mask: Tensor) -> Tensor:
        """(n, L, dim), (n, L), (n, T, dim), (n, T) -> (n, L, 4 dim)."""
        similar = self.clip(clips) + self.word(words).transpose(1, 2) + (clips * self.both) @ words.transpose(1, 2)
        seen = clip_mask[:, :, None] & word_mask[:, None, :]
        similar = similar.masked_fill(~seen, MASKED_SIMILARITY)
        read = similar.softmax(2) @ words
        found = similar.amax(2).softmax(1)[:, None] @ clips
        return torch.cat([clips, read, clips * read, clips * found], dim=-1)
