"""From words to one query vector per modality (TVR, section 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
