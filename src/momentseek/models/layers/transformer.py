"""A whole transformer layer: self-attention and feed-forward, each added back and normalised (Vaswani et al., 2017)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from momentseek.models.layers.attention import SelfEncoder
from momentseek.models.layers.dropout import Dropout
from momentseek.models.layers.projection import Projection


class TransformerLayer(nn.Module):
    """``x = LN(x + W A(x, x, x))``, then ``LN(x + W2 gelu(W1 x))``, as in BERT; padding is never attended to."""

    def __init__(self, hidden: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.attend = SelfEncoder(hidden, heads, dropout)
        self.wide = nn.Linear(hidden, feedforward)
        self.narrow = nn.Linear(feedforward, hidden)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(n, T, hidden), (n, T) -> (n, T, hidden)."""
        x = self.attend(x, mask)
        out: Tensor = self.norm(x + self.dropout(self.narrow(F.gelu(self.wide(x)))))
        return out


class ProjectedTransformer(nn.Module):
    """Features of any width brought to the model's (layer norm, linear map, ReLU), then a transformer layer."""

    def __init__(self, width: int, hidden: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.project = Projection(width, hidden, dropout)
        self.layer = TransformerLayer(hidden, heads, feedforward, dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(n, T, width), (n, T) -> (n, T, hidden)."""
        out: Tensor = self.layer(self.project(x), mask)
        return out
