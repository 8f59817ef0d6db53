"""CAL: a moment is the set of its clips, and as far from the query as they are on average (Escorcia et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from momentseek.models.batch import Clips, Encoded
from momentseek.models.distances import DistanceConfig, DistanceModel, dots, squares
from momentseek.models.layers import Projection, clip_width
from momentseek.models.layers.windows import window_sums
from momentseek.models.model import Dims
from momentseek.models.registry import register
from momentseek.models.streams import features, streams


@dataclass(frozen=True, kw_only=True)
class CALConfig(DistanceConfig):
    """Settings of CAL; ``endpoints`` tells each clip where it lies, CAL (TEF) in TVR, Table 3."""

    endpoints: bool = True


class CAL(DistanceModel):
    """``mean_i |c_i - q|^2`` over the clips i of a span: window sums of the clips' distances."""

    config: CALConfig

    def __init__(self, config: CALConfig, dims: Dims) -> None:
        names = streams(config)
        super().__init__(config, dims, names)
        self.clip = nn.ModuleDict(
            {
                name: nn.Sequential(
                    Projection(clip_width(dims, config, name), config.hidden, config.dropout),
                    nn.Linear(config.hidden, config.hidden),
                )
                for name in names
            }
        )

    def encode_clips(self, clips: Clips) -> Encoded:
        encoded: Encoded = {"mask": clips.mask}
        for name in self.streams:
            encoded[name] = self.clip[name](features(clips, name)) * clips.mask[..., None]
        return encoded

    def distances(self, queries: Encoded, videos: Encoded, *, crossed: bool) -> Tensor:
        total: Tensor | None = None
        for name in self.streams:
            q, c = queries[name], videos[name]
            far = c.square().sum(-1) - 2 * dots(q, c, crossed=crossed) + squares(q, crossed=crossed, axes=1)
            total = far if total is None else total + far
        assert total is not None
        shortest, longest = self.config.shortest, self.config.longest
        lengths = torch.arange(shortest, longest + 1, device=total.device, dtype=total.dtype)
        return window_sums(total / len(self.streams), longest)[..., shortest - 1 :] / lengths


register("cal", CALConfig, CAL, "clip alignment with language: mean of the clips' squared distances")
