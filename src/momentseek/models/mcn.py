"""MCN: a moment is the mean of its clips beside the mean of its video (Hendricks et al., ICCV 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from momentseek.models.batch import Clips, Encodings
from momentseek.models.distances import DistanceConfig, DistanceModel, dots, squares
from momentseek.models.layers import Projection, clip_width
from momentseek.models.layers.windows import window_squares, window_sums
from momentseek.models.model import Dims
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class MCNConfig(DistanceConfig):
    """Settings of MCN, and of CAL."""

    moment_endpoints: bool = True
    """Let a moment know where it lies, its endpoints as shares of the video: the (TEF) models of TVR, Table 3."""


class MomentStream(nn.Module):
    """The moments of one modality: ``m = U mean(f(its clips)) + V mean(f(all clips)) + T [s/L, e/L] + b``.

    f is a projection with ReLU. The papers have their non-linear layer after the means; before them, a moment is a sum
    over its clips and every span's distance follows from window sums.
    """

    def __init__(self, width: int, hidden: int, dropout: float, *, context: bool, endpoints: bool) -> None:
        super().__init__()
        self.clip = Projection(width, hidden, dropout)
        self.local = nn.Linear(hidden, hidden)
        self.whole = nn.Linear(hidden, hidden, bias=False) if context else None
        self.endpoints = nn.Parameter(torch.empty(2, hidden)) if endpoints else None
        if self.endpoints is not None:
            nn.init.normal_(self.endpoints, std=hidden**-0.5)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """(n, L, width), (n, L) -> (n, L, hidden): vectors whose mean over a moment is it, but for endpoints."""
        seen = self.clip(features) * mask[..., None]
        clips: Tensor = self.local(seen)
        if self.whole is not None:
            clips = clips + self.whole(seen.sum(1) / mask.sum(1, keepdim=True).clamp(min=1))[:, None]
        return clips * mask[..., None]


class MCN(DistanceModel):
    """``|m - q|^2`` of every span m, from |m|^2 (kept with the video), m . q (window sums) and |q|^2."""

    config: MCNConfig
    context = True
    """Whether a moment knows the mean of its video."""

    def __init__(self, config: MCNConfig, dims: Dims) -> None:
        names = config.modality_names
        super().__init__(config, dims, names)
        tef = config.moment_endpoints
        self.stream = nn.ModuleDict()
        for name in names:
            width = clip_width(dims, config, name)
            self.stream[name] = MomentStream(width, config.hidden, config.dropout, context=self.context, endpoints=tef)

    def encode_clips(self, clips: Clips) -> Encodings:
        encoded: Encodings = {"mask": clips.mask}
        for name in self.spaces:
            x = self._stream(name)(clips.modality(name), clips.mask)
            encoded[name], encoded[f"{name}.square"] = x, self._squares(name, x, clips.mask)
        return encoded

    def distances(self, queries: Encodings, videos: Encodings, *, crossed: bool) -> Tensor:
        total: Tensor | None = None
        for name in self.spaces:
            q, ends = queries[name], self._stream(name).endpoints
            inner = self._means(dots(q, videos[name], crossed=crossed))
            if ends is not None:
                start, end = (q @ ends.T).reshape(len(q), *(1,) * (2 + crossed), 2).unbind(-1)
                s, e = places(videos["mask"], self.config.shortest, self.config.longest)
                inner = inner + start * s + end * e
            far = videos[f"{name}.square"] - 2 * inner + squares(q, crossed=crossed, axes=2)
            total = far if total is None else total + far
        assert total is not None
        return total / len(self.spaces)

    def content(self, x: Tensor) -> Tensor:
        """Squared length of every moment without its endpoints, (n, L, lengths): of the mean of its clips."""
        return window_squares(x, self.config.longest)[..., self.config.shortest - 1 :] / self._lengths(x).square()

    def _squares(self, name: str, x: Tensor, mask: Tensor) -> Tensor:
        """``|x + s t0 + e t1|^2`` of every span, multiplied out."""
        total, ends = self.content(x), self._stream(name).endpoints
        if ends is None:
            return total
        s, e = places(mask, self.config.shortest, self.config.longest)
        first, second = self._means((x @ ends.T).transpose(1, 2)).unbind(1)
        own = ends @ ends.T
        linear = total + 2 * s * first + 2 * e * second
        return torch.add(linear, s * s * own[0, 0] + 2 * s * e * own[0, 1] + e * e * own[1, 1])

    def _stream(self, name: str) -> MomentStream:
        found = self.stream[name]
        assert isinstance(found, MomentStream)
        return found

    def _means(self, x: Tensor) -> Tensor:
        return window_sums(x, self.config.longest)[..., self.config.shortest - 1 :] / self._lengths(x)

    def _lengths(self, like: Tensor) -> Tensor:
        return torch.arange(self.config.shortest, self.config.longest + 1, device=like.device, dtype=like.dtype)


def places(mask: Tensor, shortest: int, longest: int) -> tuple[Tensor, Tensor]:
    """Start, (n, L, 1), and end, (n, L, lengths), of every span as shares of its video.

    >>> start, end = places(torch.tensor([[True, True]]), 1, 2)
    >>> start.flatten().tolist(), end.tolist()
    ([0.0, 0.5], [[[0.5, 1.0], [1.0, 1.5]]])
    """
    count = mask.sum(1).clamp(min=1)[:, None, None]
    start = torch.arange(mask.shape[1], device=mask.device)[:, None]
    return start / count, (start + torch.arange(shortest, longest + 1, device=mask.device)) / count


register("mcn", MCNConfig, MCN, "moment context network: means of moment and video, squared distance")
