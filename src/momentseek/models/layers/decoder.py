"""A layer of a decoder: a row looks at the rows before it, then at what was encoded (Vaswani et al. 2017)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from momentseek.models.layers.attention import CrossEncoder
from momentseek.models.layers.dropout import Dropout


class DecoderLayer(nn.Module):
    """Attention to earlier rows, attention to the memory, feed-forward; each added back and normalised.

    Without ``whole`` it is MMT's public code: attention has no output projection, and one linear map stands in the
    place of the feed-forward part.
    """

    def __init__(self, hidden: int, heads: int, feedforward: int, dropout: float, *, whole: bool = True) -> None:
        super().__init__()
        self.before = CrossEncoder(hidden, heads, dropout, linear=whole)
        self.across = CrossEncoder(hidden, heads, dropout, linear=whole)
        self.wide = nn.Linear(hidden, feedforward) if whole else None
        self.narrow = nn.Linear(feedforward if whole else hidden, hidden)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, earlier: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """(n, words, hidden) from as much; ``earlier`` is (n, words, words), ``mask`` the memory's."""
        x = self.across(self.before(x, x, earlier), memory, mask)
        mixed = x if self.wide is None else F.gelu(self.wide(x))
        out: Tensor = self.norm(x + self.dropout(self.narrow(mixed)))
        return out


def earlier_rows(length: int, device: torch.device | None = None) -> Tensor:
    """(1, length, length): True where a row may look, at itself and those before it.

    >>> earlier_rows(3)[0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None]
