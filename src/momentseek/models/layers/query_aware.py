"""Clips that have read the query: attention both ways between clips and words (BiDAF; CONQUER's QAL)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.layers.dropout import Dropout


class QueryAware(nn.Module):
    """Each clip beside what the query says about it.

    Clip c_i and word q_j are compared by ``S_ij = a . c_i + b . q_j + (w * c_i) . q_j``. With R the softmax of S over
    words and K its softmax over clips, ``A = R q`` is the query as clip i reads it and ``B = R K^T c`` the clips as
    clip i finds them through the query. ``[c; A; c * A; c * B]``, four times as wide, is brought back by a linear map.
    (Seo et al., ICLR 2017, with the second direction of QANet, Yu et al., ICLR 2018; CONQUER, section 3.3.)
    """

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.clip = nn.Linear(dim, 1, bias=False)
        self.word = nn.Linear(dim, 1, bias=False)
        self.both = nn.Parameter(torch.empty(dim))
        nn.init.normal_(self.both, std=dim**-0.5)
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(4 * dim, dim)

    def forward(self, clips: Tensor, clip_mask: Tensor, words: Tensor, word_mask: Tensor) -> Tensor:
        """(n, L, dim), (n, L), (n, T, dim), (n, T) -> (n, L, dim)."""
        c, q = self.dropout(clips), self.dropout(words)
        similar = self.clip(c) + self.word(q).transpose(1, 2) + (c * self.both) @ q.transpose(1, 2)
        by_word = _softmax(similar, word_mask[:, None, :], 2)
        by_clip = _softmax(similar, clip_mask[:, :, None], 1)
        read = by_word @ words
        found = by_word @ (by_clip.transpose(1, 2) @ clips)
        out: Tensor = self.out(torch.cat([clips, read, clips * read, clips * found], dim=-1))
        return out


def _softmax(x: Tensor, mask: Tensor, dim: int) -> Tensor:
    return x.masked_fill(~mask, torch.finfo(x.dtype).min).softmax(dim)
