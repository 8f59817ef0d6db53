"""Project features to the model's width: projections, positions, joined modalities, dropout, initial weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Clips
from momentseek.models.features.data import Dims
from momentseek.models.model import ModelConfig
from momentseek.recognition.exported.preparation import parse_modalities

PROBABILITY_STEPS = 1 << 16


class Dropout(nn.Module):
    """Sets values to 0 with probability ``p`` and divides the others by ``1 - p``, in training only."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        return x * scales(x, self.p)


def scales(like: Tensor, p: float) -> Tensor:
    """The random factors of dropout: 0, or ``1 / (1 - p)``.

    >>> sorted(scales(torch.ones(100), 0.75).unique().tolist())
    [0.0, 4.0]
    """
    count = like.numel()
    drawn = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    kept = drawn[:count] >= round(p * PROBABILITY_STEPS) - PROBABILITY_STEPS // 2
    return kept.to(like.dtype).mul_(1 / (1 - p)).view(like.shape)


def clip_width(dims: Dims, config: ModelConfig, modality: str) -> int:
    """Number of columns of a modality in the model's input: the data's, plus two for temporal endpoints (TEF).

    >>> clip_width(Dims(8, 16, None), ModelConfig(endpoints=True), "video")
    18
    """
    width: int | None = getattr(dims, modality)
    if width is None:
        raise MomentseekError(f"the data have no {modality} features, and the model needs them; set modalities")
    return width + 2 * config.endpoints


class Projection(nn.Module):
    """Layer normalisation, dropout, a linear map and (unless ``relu`` is false) ReLU."""

    def __init__(self, width: int, hidden: int, dropout: float, *, relu: bool = True) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.linear = nn.Linear(width, hidden)
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        projected: Tensor = self.linear(self.dropout(self.norm(x)))
        return torch.relu(projected) if self.relu else projected


class Positions(nn.Module):
    """Adds learned vectors of the positions 0, 1, …, then applies layer normalisation and dropout."""

    def __init__(self, most: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.most = most
        self.place = nn.Embedding(most, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.most:
            raise MomentseekError(f"a sequence of {x.shape[1]} is longer than the model's {self.most}; cut it first")
        return self.dropout(self.norm(x + self.place.weight[: x.shape[1]]))


class JointClips(nn.Module):
    """A linear layer over the features of all modalities, side by side, to ``columns`` columns (default: ``hidden``).

    With 0 columns, the features stay unchanged.
    """

    def __init__(self, config: ModelConfig, dims: Dims, columns: int | None = None) -> None:
        super().__init__()
        self.modalities = parse_modalities(config.modalities)  # columns in the order of the setting
        width = sum(clip_width(dims, config, m) for m in self.modalities)
        self.columns = width if columns == 0 else columns or config.hidden
        self.linear = nn.Identity() if columns == 0 else nn.Linear(width, self.columns)

    def forward(self, clips: Clips) -> Tensor:
        """(videos, clips, columns), before any non-linearity."""
        return self.linear(torch.cat([clips.modality(name) for name in self.modalities], dim=2))


class MapClips(JointClips):
    """The clips of a moment map: rows through the linear layer and ReLU, then the mean of every ``stride`` of them.

    ReLU comes before the mean, so this is not the same as the mean of rows through the layer (2D-TAN's public code).
    """

    def __init__(self, config: ModelConfig, dims: Dims, stride: int) -> None:
        super().__init__(config, dims)
        self.stride = stride

    def forward(self, clips: Clips) -> Tensor:
        """(videos, rows, columns) → (videos, rows / stride, hidden)."""
        rows = torch.relu(super().forward(clips))
        return rows if self.stride == 1 else rows.reshape(rows.shape[0], -1, self.stride, rows.shape[2]).mean(2)

    def mask(self, clips: Clips) -> Tensor:
        """(videos, rows / stride): the mask of the map's clips."""
        return clips.mask[:, :: self.stride]


def initialise(model: nn.Module, sd: float = 0.02) -> None:
    """Draw the weights of linear maps and embeddings from N(0, sd) and set biases to 0; others keep torch's defaults.

    >>> layer = nn.Linear(64, 64)
    >>> initialise(layer)
    >>> layer.bias.abs().max().item(), round(layer.weight.std().item(), 2)
    (0.0, 0.02)
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=sd)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
