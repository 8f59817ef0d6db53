"""Layers of Moment-DETR's family: attention with positions, sine positions, encoder layers.

Queries and keys of attention are rows plus their positions; values are the rows alone (Carion et al. 2020, appendix
A.4).
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.projection import Dropout, Projection

WAVELENGTH = 10000.0
"""The longest wavelength of sine positions, as a multiple of the shortest."""
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "prelu": nn.PReLU, "gelu": nn.GELU}


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(n, rows, hidden) -> (n, heads, rows, hidden / heads)."""
    return x.view(*x.shape[:-1], heads, -1).transpose(1, 2)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: Dropout) -> Tensor:
    """Attention ``softmax(q k' / sqrt(width)) v`` of split heads, joined again: (n, rows, hidden).

    ``mask`` is True for keys that a row may attend to: (n, keys), or (n, heads, rows, keys) if it differs by head.
    """
    seen = mask[:, None, None, :] if mask is not None and mask.ndim == 2 else mask
    if dropout.training and dropout.p:
        scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)
        if seen is not None:
            scores = scores.masked_fill(~seen, -torch.inf)
        out = dropout(scores.softmax(-1)) @ value
    else:
        out = scaled_dot_product_attention(query, key, value, attn_mask=seen)
    return out.transpose(1, 2).flatten(2)


class MultiHead(nn.Module):
    """Multi-head attention with separate queries, keys and values; one matrix projects all three."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        if hidden % heads:
            raise MomentseekError(f"hidden {hidden} cannot be divided among {heads} heads; choose a multiple")
        self.heads = heads
        self.into = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.dropout = Dropout(dropout)
        nn.init.zeros_(self.into.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        weights, biases = self.into.weight.chunk(3), self.into.bias.chunk(3)
        q, k, v = (
            split_heads(linear(x, w, b), self.heads)
            for x, w, b in zip((query, key, value), weights, biases, strict=True)
        )
        return self.out(attend(q, k, v, mask, self.dropout))


class DropPath(nn.Module):
    """Sets all rows of a sample to 0 with probability ``p``, in training only."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.dropout = Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.dropout(x.new_ones(len(x), 1, 1))


class FeedForward(nn.Module):
    """``W2 act(W1 x)``, with dropout between."""

    def __init__(self, hidden: int, feedforward: int, dropout: float, activation: str) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(hidden, feedforward), nn.Linear(feedforward, hidden)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.narrow(self.dropout(self.activation(self.wide(x))))


class PlacedEncoderLayer(nn.Module):
    """An encoder layer with positions: ``x = LN(x + A(x + place))``, then ``x = LN(x + FFN(x))``.

    With ``before``, the norms come first in each branch. With ``path``, whole branches are dropped for this share of
    the samples, and dropout is in the attention only (UniVTG).
    """

    def __init__(
        self, hidden: int, heads: int, feedforward: int, dropout: float, activation: str = "relu", *,
        before: bool = False, path: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.attention = MultiHead(hidden, heads, dropout)
        self.feed = FeedForward(hidden, feedforward, dropout if path is None else 0.0, activation)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.dropout: nn.Module = Dropout(dropout) if path is None else DropPath(path)
        self.before = before

    def forward(self, x: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """(n, rows, hidden), (n, rows), (n, rows, hidden) -> (n, rows, hidden)."""
        if self.before:
            y = self.norms[0](x)
            x = x + self.dropout(self.attention(y + place, y + place, y, mask))
            return x + self.dropout(self.feed(self.norms[1](x)))
        placed = x + place
        x = self.norms[0](x + self.dropout(self.attention(placed, placed, x, mask)))
        return self.norms[1](x + self.dropout(self.feed(x)))


class Perceptron(nn.Module):
    """Linear maps (or convolutions over ``kernel`` rows) with ReLU between them.

    Convolutions read zeros outside the mask. Without ``masked``, they read padding too, as in UniVTG's public code.
    """

    def __init__(self, widths: tuple[int, ...], kernel: int = 0, *, masked: bool = True) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv1d(a, b, kernel, padding=kernel // 2) if kernel else nn.Linear(a, b) for a, b in pairwise(widths)
        )
        self.kernel, self.masked = kernel, masked

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = x.relu() if number else x
            if mask is not None and self.masked:
                x = x.masked_fill(~mask[..., None], 0.0)
            x = layer(x.transpose(1, 2)).transpose(1, 2) if self.kernel else layer(x)
        return x


class InputProjection(nn.Sequential):
    """``count`` projections of features to the model's width, the last one without ReLU."""

    def __init__(self, width: int, hidden: int, count: int, dropout: float) -> None:
        super().__init__(
            *(Projection(hidden if n else width, hidden, dropout, relu=n + 1 < count) for n in range(count))
        )


def sine_waves(x: Tensor, width: int) -> Tensor:
    """(…) -> (…, width): ``sin(x / 10000^(2⌊j/2⌋/width))`` in even columns, the cosine in odd ones.

    >>> [round(v, 3) for v in sine_waves(torch.tensor([1.0]), 4)[0].tolist()]
    [0.841, 0.54, 0.01, 1.0]
    """
    column = torch.arange(width, device=x.device)
    angle = x[..., None] / WAVELENGTH ** (2 * (column // 2) / width).to(x.dtype)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def sine_positions(mask: Tensor, like: Tensor) -> Tensor:
    """(n, rows) -> (n, rows, width of ``like``): sine waves of each row's position in its video, from 0 to 2π."""
    place = mask.to(like.dtype).cumsum(1)
    return sine_waves(place / (place[:, -1:] + 1e-6) * (2 * math.pi), like.shape[-1])


def logit(share: Tensor, floor: float = 1e-3) -> Tensor:
    """The inverse of the sigmoid, ``log(x / (1 - x))``, with both parts at least ``floor``.

    >>> [round(v, 3) for v in logit(torch.tensor([0.5, 0.0])).tolist()]
    [0.0, -6.908]
    """
    share = share.clamp(0, 1)
    return (share.clamp(min=floor) / (1 - share).clamp(min=floor)).log()


def draw_by_xavier(part: nn.Module) -> None:
    """Initialise every matrix of a module by Glorot and Bengio's uniform rule; vectors keep their values."""
    for parameter in part.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)
