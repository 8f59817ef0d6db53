"""Clips of several modalities as one: their features side by side, through one linear layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.batch import Clips
from momentseek.models.layers.projection import clip_width
from momentseek.models.model import Dims, ModelConfig


class JointClips(nn.Module):
    """(videos, clips, hidden) from the modalities in use."""

    def __init__(self, config: ModelConfig, dims: Dims) -> None:
        super().__init__()
        self.modalities = config.modalities.split("+")
        self.linear = nn.Linear(sum(clip_width(dims, config, m) for m in self.modalities), config.hidden)

    def forward(self, clips: Clips) -> Tensor:
        """Before any non-linearity."""
        parts = [part for m in self.modalities if (part := getattr(clips, m)) is not None]
        joined: Tensor = self.linear(torch.cat(parts, dim=2))
        return joined
