"""Attention, sequence encoders and pooling (TVR, section 4.2).

Attention is ``A(Q, K, V) = softmax(Q K' / sqrt(d)) V`` with several heads, and never attends to padding. A block is
attention, a linear map, dropout, the residual and layer normalisation; there is no feed-forward part. The LSTM and the
CNN are those that TVR compares the block with (Table 5). Modular query vectors, a video's best clip and NetVLAD pool
many vectors into one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.projection import Dropout, Projection

Encoder = nn.Module
"""Called as ``encoder(x, mask)`` with (rows, length, hidden) and the mask of real rows; keeps the shape."""
MAX_CLIP_SCORES = 1 << 24
"""Maximum number of clip scores in memory while searching (64 MB)."""


class Attention(nn.Module):
    """Multi-head attention of each row of ``x`` to the rows of ``other``.

    ``mask`` is that of ``other``, or (n, rows of x, rows of other) if the rows of ``x`` see different rows.
    """

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        if hidden % heads:
            raise MomentseekError(f"hidden {hidden} cannot be divided among {heads} heads; choose a multiple")
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
        return out.transpose(1, 2).flatten(2)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class SelfEncoder(nn.Module):
    """Self-attention: ``LN(x + dropout(W A(x, x, x)))``."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(hidden, heads, dropout)
        self.linear = nn.Linear(hidden, hidden)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.norm(x + self.dropout(self.linear(self.attention(x, x, mask))))


class CrossEncoder(nn.Module):
    """Attention to another modality: ``LN(x + W A(x, other, other))``.

    The paper has the linear map ``W``; the public code does not (``linear=False``). Both modalities have the same
    number of rows. Without ``masked``, rows of padding attend to all rows, including padding, as in the public code.
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
        return self.norm(x + self.dropout(self.linear(self.attention(x, other, mask))))


class LstmEncoder(nn.Module):
    """A bidirectional LSTM with half of the width in each direction; it does not read padding."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__()
        if hidden % 2:
            raise MomentseekError(f"an LSTM in two directions needs an even hidden, not {hidden}")
        self.lstm = nn.LSTM(hidden, hidden // 2, batch_first=True, bidirectional=True)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])
        return self.dropout(out)


class CnnEncoder(nn.Module):
    """A depthwise separable convolution over ``kernel`` rows, with ReLU, residual and layer normalisation.

    Padding counts as 0. Without ``masked``, it is read as it is, as in the public code of XML.
    """

    def __init__(self, hidden: int, dropout: float, kernel: int = 5, *, masked: bool = True) -> None:
        super().__init__()
        self.masked = masked
        self.depth = nn.Conv1d(hidden, hidden, kernel, padding=kernel // 2, groups=hidden)
        self.point = nn.Linear(hidden, hidden)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        there = x.masked_fill(~mask[..., None], 0.0) if self.masked else x
        mixed = self.point(self.depth(there.transpose(1, 2)).transpose(1, 2)).relu()
        return self.norm(there + self.dropout(mixed))


SEQUENCE_ENCODERS: dict[str, Callable[[int, int, float, bool], Encoder]] = {
    "transformer": lambda hidden, heads, dropout, masked: SelfEncoder(hidden, heads, dropout),
    "lstm": lambda hidden, heads, dropout, masked: LstmEncoder(hidden, dropout),
    "cnn": lambda hidden, heads, dropout, masked: CnnEncoder(hidden, dropout, masked=masked),
}


def encoder(kind: str, hidden: int, heads: int, dropout: float, *, masked: bool = True) -> Encoder:
    """Build an encoder of a kind; without ``masked``, convolutions read padding.

    >>> encoder("gru", 8, 2, 0.1)
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no encoder 'gru'; choose transformer, lstm, cnn
    """
    if kind not in SEQUENCE_ENCODERS:
        raise MomentseekError(f"there is no encoder {kind!r}; choose {', '.join(SEQUENCE_ENCODERS)}")
    return SEQUENCE_ENCODERS[kind](hidden, heads, dropout, masked)


class Stack(nn.Module):
    """Encoders of one kind, one after another."""

    def __init__(self, count: int, kind: str, hidden: int, heads: int, dropout: float, *, masked: bool = True) -> None:
        super().__init__()
        self.layers = nn.ModuleList(encoder(kind, hidden, heads, dropout, masked=masked) for _ in range(count))

    def forward(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        """The output of each encoder, in order."""
        outputs = []
        for layer in self.layers:
            x = layer(x, mask)
            outputs.append(x)
        return outputs


class TransformerLayer(nn.Module):
    """A transformer layer as in BERT: ``x = LN(x + W A(x, x, x))``, then ``LN(x + W2 gelu(W1 x))``."""

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
        return self.norm(x + self.dropout(self.narrow(F.gelu(self.wide(x)))))


class ProjectedTransformer(nn.Module):
    """A projection of features to the model's width (layer norm, linear map, ReLU), then a transformer layer."""

    def __init__(self, width: int, hidden: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.project = Projection(width, hidden, dropout)
        self.layer = TransformerLayer(hidden, heads, feedforward, dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(n, T, width), (n, T) -> (n, T, hidden)."""
        return self.layer(self.project(x), mask)


class DecoderLayer(nn.Module):
    """Attention to earlier rows, attention to the memory, and feed-forward, each with residual and normalisation.

    Without ``whole``, it follows MMT's public code: attention has no output projection, and one linear map replaces the
    feed-forward part.
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
        """(n, words, hidden) -> (n, words, hidden); ``earlier`` is (n, words, words), ``mask`` that of the memory."""
        x = self.across(self.before(x, x, earlier), memory, mask)
        mixed = x if self.wide is None else F.gelu(self.wide(x))
        return self.norm(x + self.dropout(self.narrow(mixed)))


def earlier_rows(length: int, device: torch.device | None = None) -> Tensor:
    """(1, length, length): a causal mask, True for the row itself and all rows before it.

    >>> earlier_rows(3)[0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None]


class ModularQuery(nn.Module):
    """One query vector per modality, with its own weights of the words: ``q_m = softmax(w_m' H) H``."""

    def __init__(self, hidden: int, modalities: int) -> None:
        super().__init__()
        self.weight = nn.Linear(hidden, modalities, bias=False)

    def attention(self, words: Tensor, mask: Tensor) -> Tensor:
        """(queries, modalities, words): the weights of the words, which add up to 1."""
        scores: Tensor = self.weight(words).transpose(1, 2)
        return scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """(queries, modalities, hidden): a vector of each query for each modality."""
        return self.attention(words, mask) @ words


class MaxQuery(nn.Module):
    """Max-pooling of the words, the same for every modality: XML without modular queries (TVR, Table 5)."""

    def __init__(self, modalities: int) -> None:
        super().__init__()
        self.modalities = modalities

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        best = words.masked_fill(~mask[..., None], -torch.inf).amax(1)
        return best[:, None].expand(-1, self.modalities, -1)


def best_clip(queries: Tensor, clips: Tensor, mask: Tensor) -> Tensor:
    """(queries, videos): the largest dot product of query ``i`` with a clip of video ``j``.

    ``queries`` are (queries, hidden), ``clips`` (videos, clips, hidden), ``mask`` (videos, clips). Videos are processed
    in blocks, so that without gradients at most ``MAX_CLIP_SCORES`` clip scores are in memory.

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
        # For the gradient, max stores only the indices of the maxima; amax would store all scores.
        parts.append(scores.masked_fill(~mask[first : first + step], -torch.inf).max(-1).values)
    return torch.cat(parts, 1) if parts else queries.new_zeros(len(queries), 0)


class NetVLAD(nn.Module):
    """Pools (n, T, dim) with a mask into (n, clusters * dim), independent of the order of the T vectors.

    Each vector is assigned to the clusters by ``a = softmax(norm(W x))``. Cluster k sums ``a_tk (x_t - c_k)`` over t,
    which is normalised to length 1, and so is the concatenation. Without ``masked``, padding is assigned too, as in the
    public code of MEE and CONQUER.
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
