"""CAL: a moment's distance from the query is the mean distance of its clips (Escorcia et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from momentseek.models.batch import Encodings
from momentseek.models.registry import register
from momentseek.models.zoo.mcn import MCN, MCNConfig, gather_spans, unit


@dataclass(frozen=True, kw_only=True)
class CALConfig(MCNConfig):
    """Settings of CAL. Without endpoints a moment is never nearer than its nearest clip alone."""


class CAL(MCN):
    """Scores a span by ``mean_i |c_i - q|^2`` over its clips i: a mean of distances, not the distance of a mean.

    Each clip passes through the network separately, together with the video's context and the moment's endpoints.
    """

    config: CALConfig

    def moment_vectors(self, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        count = (last - first + 1)[..., None]
        found = [self.moments_of(name, videos, first, last).sum(2) / count for name in self.modalities]
        return sum(found[1:], found[0]) / len(found)

    def moments_of(self, name: str, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        """(n, spans, most, space): the vectors of each span's clips in one modality, zero after its last."""
        rows, there = gather_spans(videos[name], first, last)
        return self._unit_moments(name, videos, rows, first, last) * there[..., None]

    def _own_rows(self, rows: Tensor) -> Tensor:
        return unit(rows)

    def _scales(self, name: str, rows: Tensor) -> Encodings:
        return {}


register("cal", CALConfig, CAL, "clip alignment with language: mean of the clips' squared distances", format=2)
