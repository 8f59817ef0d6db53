"""Sequence encoders by name: the transformer block, and the LSTM and CNN it was compared with (TVR, Table 5)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from momentseek.errors import MomentseekError
from momentseek.models.layers.attention import SelfEncoder
from momentseek.models.layers.dropout import Dropout

Encoder = nn.Module
"""Called as ``encoder(x, mask)``: (rows, length, hidden) and the mask of what is there, to the same shape."""


class LstmEncoder(nn.Module):
    """A bidirectional LSTM, half of the width in each direction; padding is not read."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__()
        if hidden % 2:
            raise MomentseekError(f"an LSTM in two directions needs an even hidden, not {hidden}")
        self.lstm = nn.LSTM(hidden, hidden // 2, batch_first=True, bidirectional=True)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])
        dropped: Tensor = self.dropout(out)
        return dropped


class CnnEncoder(nn.Module):
    """A depthwise separable convolution: each column over ``kernel`` rows, then columns mixed; ReLU, residual, norm.

    Padding counts as 0; without ``masked`` it is read as it is, as in the public code of XML.
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
        out: Tensor = self.norm(there + self.dropout(mixed))
        return out


SEQUENCE_ENCODERS: dict[str, Callable[[int, int, float, bool], Encoder]] = {
    "transformer": lambda hidden, heads, dropout, masked: SelfEncoder(hidden, heads, dropout),
    "lstm": lambda hidden, heads, dropout, masked: LstmEncoder(hidden, dropout),
    "cnn": lambda hidden, heads, dropout, masked: CnnEncoder(hidden, dropout, masked=masked),
}


def encoder(kind: str, hidden: int, heads: int, dropout: float, *, masked: bool = True) -> Encoder:
    """A fresh encoder of a kind; without ``masked`` padding reaches what convolves.

    >>> encoder("gru", 8, 2, 0.1)
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no encoder 'gru'; choose transformer, lstm, cnn
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
        """What each of them gives, the last one's last."""
        outputs = []
        for layer in self.layers:
            x = layer(x, mask)
            outputs.append(x)
        return outputs
