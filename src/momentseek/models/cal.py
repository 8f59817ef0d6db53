"""CAL: a moment is the set of its clips, and as far from the query as they are on average (Escorcia et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from momentseek.models.mcn import MCN, MCNConfig
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class CALConfig(MCNConfig):
    """Settings of CAL. Without endpoints a moment is never nearer than its nearest clip alone."""


class CAL(MCN):
    """``mean_i |c_i + T [s/L, e/L] - q|^2`` over the clips i of a span: not a mean's distance, a mean of distances.

    There is no context of the whole video. A moment's squared length is the mean of its clips'.
    """

    config: CALConfig
    context = False

    def content(self, x: Tensor) -> Tensor:
        return self._means(x.square().sum(-1))


register("cal", CALConfig, CAL, "clip alignment with language: mean of the clips' squared distances")
