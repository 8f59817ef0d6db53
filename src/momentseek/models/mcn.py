"""MCN: a moment is the mean of its clips beside the mean of its video (Hendricks et al., ICCV 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from momentseek.models.batch import Clips, Encoded
from momentseek.models.distances import DistanceConfig, DistanceModel, dots, squares
from momentseek.models.layers import Projection, clip_width
from momentseek.models.layers.windows import window_squares, window_sums
from momentseek.models.model import Dims
from momentseek.models.registry import register
from momentseek.models.streams import features, streams


@dataclass(frozen=True, kw_only=True)
class MCNConfig(DistanceConfig):
    """Settings of MCN."""

    moment_endpoints: bool = True
    """Let a moment know where it lies: its endpoints as shares of the video, MCN (TEF) in TVR, Table 3."""


class MCNStream(nn.Module):
    """One modality's moments: ``m = U mean(f(clips of it)) + V mean(f(all clips)) + T [s/L, e/L] + b``.

    f is a projection with ReLU. The paper has its non-linear layer after the means; before them, a moment is a sum over
    its clips and every span's distance follows from window sums.
    """

    def __init__(self, width: int, hidden: int, dropout: float, *, endpoints: bool) -> None:
        super().__init__()
        self.clip = Projection(width, hidden, dropout)
        self.local = nn.Linear(hidden, hidden, bias=False)
        self.whole = nn.Linear(hidden, hidden)
        self.endpoints = nn.Parameter(torch.zeros(2, hidden)) if endpoints else None
        if self.endpoints is not None:
            nn.init.normal_(self.endpoints, std=hidden**-0.5)

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """U f(clip), (n, L, hidden), zero in the padding, and V mean + b, (n, hidden)."""
        seen = self.clip(features) * mask[..., None]
        return self.local(seen), self.whole(seen.sum(1) / mask.sum(1, keepdim=True).clamp(min=1))


class MCN(DistanceModel):
    """``|m - q|^2`` of every span m, from |m|^2 (kept with the video), m . q (window sums) and |q|^2."""

    config: MCNConfig

    def __init__(self, config: MCNConfig, dims: Dims) -> None:
        names = streams(config)
        super().__init__(config, dims, names)
        self.stream = nn.ModuleDict(
            {
                name: MCNStream(
                    clip_width(dims, config, name), config.hidden, config.dropout, endpoints=config.moment_endpoints
                )
                for name in names
            }
        )

    def encode_clips(self, clips: Clips) -> Encoded:
        encoded: Encoded = {"mask": clips.mask}
        for name in self.streams:
            local, whole = self._stream(name)(features(clips, name), clips.mask)
            encoded[f"{name}.local"], encoded[f"{name}.whole"] = local, whole
            encoded[f"{name}.square"] = self._squares(name, local, whole, clips.mask)
        return encoded

    def distances(self, queries: Encoded, videos: Encoded, *, crossed: bool) -> Tensor:
        total: Tensor | None = None
        for name in self.streams:
            q = queries[name]
            inner = self._means(dots(q, videos[f"{name}.local"], crossed=crossed))
            inner = inner + dots(q, videos[f"{name}.whole"], crossed=crossed)[..., None, None]
            ends = self._stream(name).endpoints
            if ends is not None:
                start, end = (q @ ends.T).reshape(len(q), *(1,) * (2 + crossed), 2).unbind(-1)
                s, e = self._places(videos["mask"])
                inner = inner + start * s + end * e
            far = videos[f"{name}.square"] - 2 * inner + squares(q, crossed=crossed, axes=2)
            total = far if total is None else total + far
        assert total is not None
        return total / len(self.streams)

    def _squares(self, name: str, local: Tensor, whole: Tensor, mask: Tensor) -> Tensor:
        """|m|^2 of every span: the local part's square, the rest's square, and twice their product."""
        shortest, longest = self.config.shortest, self.config.longest
        lengths = self._lengths(local)
        total = window_squares(local, longest)[..., shortest - 1 :] / lengths.square()
        total = total + 2 * self._means(dots(whole, local, crossed=False)) + whole.square().sum(-1)[:, None, None]
        ends = self._stream(name).endpoints
        if ends is None:
            return total
        s, e = self._places(mask)
        to_local = self._means((local @ ends.T).transpose(1, 2))
        to_whole = (whole @ ends.T)[..., None, None]
        (a, b), (_, d) = (ends @ ends.T).unbind()
        total = total + 2 * s * (to_local[:, 0] + to_whole[:, 0]) + 2 * e * (to_local[:, 1] + to_whole[:, 1])
        return torch.add(total, s * s * a + 2 * s * e * b + e * e * d)

    def _stream(self, name: str) -> MCNStream:
        found = self.stream[name]
        assert isinstance(found, MCNStream)
        return found

    def _means(self, x: Tensor) -> Tensor:
        return window_sums(x, self.config.longest)[..., self.config.shortest - 1 :] / self._lengths(x)

    def _lengths(self, like: Tensor) -> Tensor:
        return torch.arange(self.config.shortest, self.config.longest + 1, device=like.device, dtype=like.dtype)

    def _places(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        return places(mask, self.config.shortest, self.config.longest)


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
