"""Scaled dot-product attention, and the encoder blocks around it (TVR, section 4.2).

``A(Q, K, V) = softmax(Q K' / sqrt(d)) V`` with several heads. A block is attention, a linear map, dropout, the
residual and layer normalisation; there is no feed-forward part. Padding is never attended to.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from momentseek.errors import MomentseekError
from momentseek.models.layers.dropout import Dropout


class Attention(nn.Module):
    """What each row of ``x`` takes from the rows of ``other`` that are there.

    ``mask`` is ``other``'s, or (n, rows of x, rows of other) where each row of ``x`` sees others.
    """

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        if hidden % heads:
            raise MomentseekError(f"hidden {hidden} cannot be shared out among {heads} heads; choose a multiple")
        self.heads = heads
        self.dropout = Dropout(dropout)
        self.query = nn.Linear(hidden, hidden)
        self.key_value = nn.Linear(hidden, 2 * hidden)

    def forward(self, x: Tensor, other: Tensor, mask: Tensor) -> Tensor:
        query = self._split(self.query(x))
        key, value = (self._split(part) for part in self.key_value(other).chunk(2, dim=-1))
        seen = mask[:, None, None, :] if mask.ndim == 2 else mask[:, None]
        if self.training and self.dropout.p:
            scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)
            out = self.dropout(scores.masked_fill(~seen, -torch.inf).softmax(-1)) @ value
        else:
            out = scaled_dot_product_attention(query, key, value, attn_mask=seen)
        joined: Tensor = out.transpose(1, 2).flatten(2)
        return joined

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class SelfEncoder(nn.Module):
    """Rows look at each other: ``LN(x + dropout(W A(x, x, x)))``."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(hidden, heads, dropout)
        self.linear = nn.Linear(hidden, hidden)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        out: Tensor = self.norm(x + self.dropout(self.linear(self.attention(x, x, mask))))
        return out


class CrossEncoder(nn.Module):
    """Rows look at another modality's: ``LN(x + W A(x, other, other))``.

    The paper has the linear map ``W``, the public code leaves it out (``linear=False``). Both modalities have as many
    rows; without ``masked`` rows of padding look at all, padding too, as in the public code.
    """

    def __init__(self, hidden: int, heads: int, dropout: float, *, linear: bool = True, masked: bool = True) -> None:
        super().__init__()
        self.masked = masked
        self.attention = Attention(hidden, heads, dropout)
        self.linear = nn.Linear(hidden, hidden) if linear else nn.Identity()
        self.dropout = Dropout(dropout if linear else 0.0)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, other: Tensor, mask: Tensor) -> Tensor:
        if not self.masked:
            mask = mask[:, None, :] | ~mask[:, :, None]
        out: Tensor = self.norm(x + self.dropout(self.linear(self.attention(x, other, mask))))
        return out
