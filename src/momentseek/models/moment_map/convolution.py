"""Convolutions over the map, so that a moment knows its neighbours; cells that are no candidates do not count.

After each layer a cell is divided by the number of valid cells its kernel saw, so that the sparse part of the map is
as loud as the dense one (2D-TAN, section 3.3).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MapConvolution(nn.Module):
    """``layers`` convolutions, normalised if ``norm``, with ReLU and valid-cell weighting; the map keeps its size.

    ``padding="each"`` pads every layer; ``"first"`` pads the first for all of them, as the public code does: cells
    outside the map then carry features to later layers, at up to nine times the cost for 16 clips.
    """

    def __init__(
        self, mask: Tensor, dim: int, hidden: int, layers: int, kernel: int, *, norm: bool = False,
        padding: str = "each",
    ) -> None:  # fmt: skip
        super().__init__()
        reach = kernel // 2
        self.spreads = padding == "first"
        self.pads = [reach] * layers if padding == "each" else [reach * layers] + [0] * (layers - 1)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(dim if i == 0 else hidden, hidden, kernel, padding=pad) for i, pad in enumerate(self.pads)
        )
        for name, weight in self.convolutions.named_parameters():
            if name.endswith("weight"):  # what follows divides by up to kernel² cells: begin as loud as a plain stack
                nn.init.kaiming_normal_(weight, nonlinearity="relu")
                with torch.no_grad():
                    weight.mul_(kernel**2)
        self.norms = nn.ModuleList(nn.BatchNorm2d(hidden) if norm else nn.Identity() for _ in range(layers))
        inside = mask[None, None].float()
        for i, pad in enumerate(self.pads):
            seen = F.conv2d(inside, torch.ones(1, 1, kernel, kernel), padding=pad)
            self.register_buffer(f"weight{i}", torch.where(seen > 0, 1 / seen.clamp(min=1), 0.0), persistent=False)
            inside = inside if padding == "each" else (seen > 0).float()
        self.inside: Tensor
        self.register_buffer("inside", mask[None, None].float(), persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        """(batch, dim, clips, clips) → (batch, hidden, clips, clips)."""
        for i, (layer, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            maps = F.relu(norm(layer(maps))) * getattr(self, f"weight{i}")
            if not self.spreads:
                maps = maps * self.inside
        return maps * self.inside
