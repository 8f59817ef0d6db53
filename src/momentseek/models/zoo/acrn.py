"""ACRN: CTRL whose query weights a window's context, fused by an outer product (Liu et al., SIGIR 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.functional import normalize

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.model import at_least, one_of
from momentseek.models.registry import register
from momentseek.models.zoo.ctrl import OFFICIAL_WINDOWS, WindowConfig, WindowModel, Windows, parts_around


@dataclass(frozen=True, kw_only=True)
class AcrnConfig(WindowConfig):
    """ACRN's settings."""

    official: ClassVar[Mapping[str, Any]] = {**OFFICIAL_WINDOWS, "attend": "own"}
    pool: int = 16
    """Number of neighbouring columns that are averaged to one column of the outer product."""
    fusion: str = "whole"
    """``whole`` vectors joined with the outer product of pooled ones (the public code), or the outer product of
    ``pooled`` ones with a 1 appended, which includes the vectors (the paper)."""
    attend: str = "pair"
    """In training, a window attends to its context by the query of each ``pair``, or by its ``own`` query for all
    queries (the public code, which nevertheless searches by pair)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "fusion", "whole", "pooled")
        one_of(self, "attend", "pair", "own")
        at_least(self, 1, "pool")
        if self.hidden % self.pool:
            raise MomentseekError(f"model: hidden {self.hidden} cannot be pooled by {self.pool}; choose a multiple")


def context_weights(parts: Tensor, query: Tensor) -> Tensor:
    """(…, 3): weights of the clips before, in and after a window, by the query and a running sum.

    ``softmax_j(tanh(y)' tanh(x_1 + … + x_j))``; ``parts`` (…, 3, d) and ``query`` (…, d).

    >>> same = torch.ones(3, 2) / 2
    >>> [round(w, 2) for w in context_weights(same, torch.ones(2)).tolist()]  # the sum grows, so weights differ
    [0.22, 0.35, 0.43]
    """
    memory = parts.cumsum(-2)
    return torch.einsum("...jd,...d->...j", memory.tanh(), query.tanh()).softmax(-1)


class Acrn(WindowModel):
    """Context attended by the query, and an outer product of window and query."""

    config: AcrnConfig

    def __init__(self, config: AcrnConfig, dims: Dims) -> None:
        small = config.hidden // config.pool
        fused = (small + 1) ** 2 if config.fusion == "pooled" else 2 * config.hidden + small**2
        super().__init__(config, dims, config.hidden, fused)

    @property
    def pair_numbers(self) -> int:
        return super().pair_numbers + 4 * len(self.config.windows) * self.config.hidden

    def window_parts(self, clips: Tensor, mask: Tensor, windows: Windows) -> Tensor:
        """(n, windows, 3, hidden): before, own, after."""
        return torch.stack(parts_around(clips, mask, windows, self.config.context), dim=2)

    def fuse(self, parts: Tensor, query: Tensor) -> Tensor:
        """Both vectors and the outer product of their pooled forms."""
        return self.join(torch.einsum("...jd,...j->...d", parts, context_weights(parts, query)), query)

    def join(self, window: Tensor, query: Tensor) -> Tensor:
        """(…, fused) from a window's attended vector and the query's."""
        vectors = normalize(window, dim=-1), normalize(query, dim=-1)
        left, right = (v.reshape(*v.shape[:-1], -1, self.config.pool).mean(-1) for v in vectors)
        if self.config.fusion == "pooled":
            left, right = F.pad(left, (0, 1), value=1.0), F.pad(right, (0, 1), value=1.0)
        product = (left[..., :, None] * right[..., None, :]).flatten(-2)
        return product if self.config.fusion == "pooled" else torch.cat([*vectors, product], dim=-1)

    def scores(self, parts: Tensor, query: Tensor) -> Tensor:
        """Every window with every query, its context attended by that query or by its own."""
        if self.config.attend == "pair":
            return super().scores(parts, query)
        window = torch.einsum("bjd,bj->bd", parts, context_weights(parts, query))
        size = len(window)
        return self.head(self.join(window[:, None].expand(size, size, -1), query.expand(size, size, -1)))


register("acrn", AcrnConfig, Acrn, "ACRN: CTRL whose windows attend to their context by the query")
