"""The blind baseline of TVR, Table 3: a moment is nothing but where it lies in its video."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from momentseek.models.batch import Clips, Encodings
from momentseek.models.distances import DistanceConfig, DistanceModel, dots, squares
from momentseek.models.mcn import places
from momentseek.models.model import Dims
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class TEFOnlyConfig(DistanceConfig):
    """Settings of the endpoint-only model; it sees how many clips a video has, never what they show."""

    hidden: int = 64


class TEFOnly(DistanceModel):
    """MCN without content: ``|W2 relu(W1 [s/L, e/L]) - q|^2``. Whatever it finds, the data's habits gave away."""

    config: TEFOnlyConfig

    def __init__(self, config: TEFOnlyConfig, dims: Dims) -> None:
        super().__init__(config, dims, ("endpoints",))
        self.moment = nn.Sequential(nn.Linear(2, config.hidden), nn.ReLU(), nn.Linear(config.hidden, config.hidden))

    def encode_clips(self, clips: Clips) -> Encodings:
        return {"mask": clips.mask}

    def distances(self, queries: Encodings, videos: Encodings, *, crossed: bool) -> Tensor:
        """Videos of as many clips have the same moments, so each length is looked at once."""
        mask, q = videos["mask"], queries["endpoints"]
        counts, which = torch.unique(mask.sum(1), return_inverse=True)
        lengths = torch.arange(mask.shape[1], device=mask.device) < counts[:, None]
        start, end = places(lengths, self.config.shortest, self.config.longest)
        m = self.moment(torch.stack([start.expand_as(end), end], dim=-1))
        inner = dots(q, m, crossed=True)
        inner = inner[:, which] if crossed else inner[torch.arange(len(q), device=q.device), which]
        far: Tensor = m.square().sum(-1)[which] - 2 * inner + squares(q, crossed=crossed, axes=2)
        return far


register("tef-only", TEFOnlyConfig, TEFOnly, "blind baseline: only where a moment lies in its video")
