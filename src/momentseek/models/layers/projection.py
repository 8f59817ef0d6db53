"""From features to the model's width, and where in the sequence they are (TVR, section 4.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.errors import MomentseekError
from momentseek.models.layers.dropout import Dropout
from momentseek.models.model import Dims, ModelConfig


def clip_width(dims: Dims, config: ModelConfig, modality: str) -> int:
    """Columns of a modality as the model sees them: the data's, and two more with temporal endpoints (TEF).

    >>> clip_width(Dims(8, 16, None), ModelConfig(endpoints=True), "video")
    18
    """
    width: int | None = getattr(dims, modality)
    if width is None:
        raise MomentseekError(f"the data have no {modality} features, and the model needs them; set modalities")
    return width + 2 * config.endpoints


class Projection(nn.Module):
    """Layer normalisation, dropout, a linear map and ReLU."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.linear = nn.Linear(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(self.dropout(self.norm(x))))


class Positions(nn.Module):
    """Learned vectors for the places 0, 1, …, added; then layer normalisation and dropout."""

    def __init__(self, most: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.most = most
        self.place = nn.Embedding(most, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.most:
            raise MomentseekError(f"a sequence of {x.shape[1]} is longer than the model's {self.most}; cut it first")
        added: Tensor = self.dropout(self.norm(x + self.place.weight[: x.shape[1]]))
        return added
