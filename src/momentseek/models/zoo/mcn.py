"""MCN: a moment is the mean of its clips next to the mean of its video (Hendricks et al., ICCV 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from momentseek.models.batch import Clips, Encodings
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import clip_width
from momentseek.models.layers.spans import window_squares
from momentseek.models.registry import register
from momentseek.models.zoo.distances import DistanceConfig, DistanceModel, endpoints_of

UNIT_EPSILON = 1e-5
"""Added to a length before dividing by it, as in TVR's public code."""


@dataclass(frozen=True, kw_only=True)
class MCNConfig(DistanceConfig):
    """Settings of MCN, and of CAL."""

    context: bool = True
    """Let a moment know the mean of its whole video."""
    moment_endpoints: bool = True
    """Let a moment know where it lies, its endpoints as shares of the video: the (TEF) models of TVR, Table 3."""


class MCN(DistanceModel):
    """``m = unit(W2 relu(W1 [unit(mean of its clips); unit(mean of all clips); s/L, e/L] + b1) + b2)``.

    Each modality has such a vector, and all are compared with one query (TVR, section 5.2). The first linear map is
    applied to clips once: what a moment's mean becomes is the mean of what its clips become.
    """

    config: MCNConfig

    def __init__(self, config: MCNConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.modalities = config.modality_names
        self.widths = {name: clip_width(dims, config, name) for name in self.modalities}
        more = 2 * config.moment_endpoints
        self.moment = nn.ModuleDict(
            {name: self.moment_mlp(width * (1 + config.context) + more) for name, width in self.widths.items()}
        )

    def encode_clips(self, clips: Clips) -> Encodings:
        mask = clips.mask
        encoded: Encodings = {"mask": mask}
        for name, width in self.widths.items():
            rows = clips.modality(name) * mask[..., None]
            first = self._layer(name, 0)
            own, whole = first.weight[:, :width], first.weight[:, width : 2 * width]
            constant = first.bias.expand(len(rows), -1)
            if self.config.context:
                constant = constant + unit(rows.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)) @ whole.T
            encoded |= {name: self._own_rows(rows) @ own.T, f"{name}.context": constant}
            encoded |= self._scales(name, rows)
        return encoded

    def moment_vectors(self, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        found = [self.moments_of(name, videos, first, last).mean(2) for name in self.modalities]
        return torch.stack(found).mean(0)

    def moments_of(self, name: str, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        """(n, spans, 1, space): the vectors of spans in one modality."""
        rows, there = gather_spans(videos[name], first, last)
        count = there.sum(2).to(rows.dtype)[..., None]
        scale = videos[f"{name}.scale"]
        column = (last - first + 1 - self.config.shortest).clamp(max=scale.shape[2] - 1)
        each = scale[torch.arange(len(scale), device=scale.device)[:, None], first, column][..., None]
        return self._unit_moments(name, videos, (rows.sum(2) / count * each)[:, :, None], first, last)

    def _own_rows(self, rows: Tensor) -> Tensor:
        return rows

    def _scales(self, name: str, rows: Tensor) -> Encodings:
        """(n, L, lengths): what brings the mean of each span's clips to length 1."""
        c = self.config
        lengths = torch.arange(c.shortest, c.longest + 1, device=rows.device)
        means = window_squares(rows, c.longest)[..., c.shortest - 1 :].clamp(min=0).sqrt() / lengths
        return {f"{name}.scale": 1 / (means + UNIT_EPSILON)}

    def _unit_moments(self, name: str, videos: Encodings, own: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """From ``own`` (n, spans, clips, hidden), the moment's own share of the first layer, to unit vectors."""
        before = own + videos[f"{name}.context"][:, None, None]
        if self.config.moment_endpoints:
            ends = endpoints_of(videos["mask"], first, last, own.dtype) @ self._layer(name, 0).weight[:, -2:].T
            before = before + ends[:, :, None]
        return normalize(self._layer(name, 2)(before.relu()), dim=-1)

    def _layer(self, name: str, place: int) -> nn.Linear:
        stream = self.moment[name]
        assert isinstance(stream, nn.Sequential)
        found = stream[place]
        assert isinstance(found, nn.Linear)
        return found


def unit(x: Tensor) -> Tensor:
    """Rows brought to length 1, all but for a constant in the divisor that keeps rows of zeros."""
    length: Tensor = x.norm(dim=-1, keepdim=True)
    return x / (length + UNIT_EPSILON)


def gather_spans(rows: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """(n, L, d) and spans (n, S) -> their rows (n, S, most, d), zero after a span's end, and which rows there are.

    >>> video = torch.tensor([[[1.0], [2.0], [4.0]]])
    >>> rows, there = gather_spans(video, torch.tensor([[0, 2]]), torch.tensor([[1, 2]]))
    >>> rows.squeeze(-1).tolist(), there.tolist()
    ([[[1.0, 2.0], [4.0, 0.0]]], [[[True, True], [True, False]]])
    """
    most = int((last - first).max()) + 1 if first.numel() else 1
    place = first[..., None] + torch.arange(most, device=rows.device)
    there = place <= last[..., None]
    each = torch.arange(len(rows), device=rows.device)[:, None, None]
    found = rows[each, place.clamp(max=rows.shape[1] - 1)]
    return found * there[..., None], there


register("mcn", MCNConfig, MCN, "moment context network: means of moment and video, squared distance", format=2)
