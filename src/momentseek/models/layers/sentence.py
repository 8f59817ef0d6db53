"""A query as one vector: the mean of its words, or an LSTM's last state, through a linear map."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.batch import Words
from momentseek.models.layers.recurrent import Recurrent

SENTENCE_ENCODERS = ("mean", "lstm")


def mean_of_words(words: Words) -> Tensor:
    """(queries, dim): the mean of the words' features."""
    weight = words.mask.to(words.features)
    total = torch.einsum("qnd,qn->qd", words.features, weight)
    return total / weight.sum(1, keepdim=True).clamp(min=1)


class Sentence(nn.Module):
    """``W x + b`` of a query's mean word or of the last state of an LSTM over its words."""

    def __init__(self, kind: str, dim: int, hidden: int) -> None:
        super().__init__()
        self.lstm = Recurrent(dim, hidden, both_ways=False) if kind == "lstm" else None
        self.linear = nn.Linear(hidden if kind == "lstm" else dim, hidden)

    def forward(self, words: Words) -> Tensor:
        """(queries, hidden)."""
        pooled = mean_of_words(words) if self.lstm is None else self.lstm(words.features, words.mask)[1]
        mapped: Tensor = self.linear(pooled)
        return mapped
