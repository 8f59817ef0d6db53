"""CTRL: a window, what is before and after it, and the query, compared by sum and product (Gao et al., ICCV 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from momentseek.models.features.data import Dims
from momentseek.models.registry import register
from momentseek.models.zoo.window_models import OFFICIAL_WINDOWS, WindowConfig, WindowModel, Windows, parts_around


@dataclass(frozen=True, kw_only=True)
class CtrlConfig(WindowConfig):
    """CTRL's settings."""

    official: ClassVar[Mapping[str, Any]] = OFFICIAL_WINDOWS


class Ctrl(WindowModel):
    """``[v ∘ s; v + s; v; s]`` of a window's vector v, with its context, and the query's s, both of length 1."""

    config: CtrlConfig

    def __init__(self, config: CtrlConfig, dims: Dims) -> None:
        super().__init__(config, dims, 3 * config.hidden, 4 * config.hidden)

    def window_parts(self, clips: Tensor, mask: Tensor, windows: Windows) -> Tensor:
        """(n, windows, hidden): ``unit(W_1 left + W_2 own + W_3 right + b)``."""
        parts = parts_around(clips, mask, windows, self.config.context)
        blocks = (part.chunk(3, dim=2)[place] for place, part in enumerate(parts))
        return normalize(torch.stack(list(blocks)).sum(0), dim=2)

    def fuse(self, parts: Tensor, query: Tensor) -> Tensor:
        """Product, sum and both vectors side by side."""
        asked = normalize(query, dim=-1)
        return torch.cat([parts * asked, parts + asked, parts, asked], dim=-1)


register("ctrl", CtrlConfig, Ctrl, "CTRL: sliding windows scored with the query, their ends moved by offsets")
