"""Clips of several modalities as one: their features side by side, through one linear layer; pooled for a map."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.features.modalities import parse_modalities
from momentseek.models.batch import Clips
from momentseek.models.layers.projection import clip_width
from momentseek.models.model import Dims, ModelConfig


class JointClips(nn.Module):
    """A linear layer over the features of all modalities in use, side by side, to ``columns`` (``hidden``) columns."""

    def __init__(self, config: ModelConfig, dims: Dims, columns: int | None = None) -> None:
        super().__init__()
        self.modalities = parse_modalities(config.modalities)  # columns in the order of the setting
        width = sum(clip_width(dims, config, m) for m in self.modalities)
        self.linear = nn.Linear(width, columns or config.hidden)

    def forward(self, clips: Clips) -> Tensor:
        """(videos, clips, columns), before any non-linearity."""
        joined: Tensor = self.linear(torch.cat([clips.modality(name) for name in self.modalities], dim=2))
        return joined


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
        return rows if self.stride == 1 else rows.reshape(len(rows), -1, self.stride, rows.shape[2]).mean(2)

    def mask(self, clips: Clips) -> Tensor:
        """(videos, rows / stride), True where there is a clip of the map."""
        return clips.mask[:, :: self.stride]
