"""Where a moment starts and ends: two edge filters over the query-clip curve (TVR, section 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.errors import MomentseekError


class BoundaryFilters(nn.Module):
    """One filter without bias for the start and one for the end, each normalised over the video's clips.

    Outside the video the curve is 0, whether that is the filter's border or padding; without ``masked`` the filters see
    what the curve has in the padding, as in the public code of XML and ReLoCLNet.
    """

    def __init__(self, kernel: int, *, masked: bool = True) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise MomentseekError(f"the boundary filters' kernel must be odd, not {kernel}")
        self.masked = masked
        self.filters = nn.Conv1d(1, 2, kernel, padding=kernel // 2, bias=False)

    def responses(self, curve: Tensor, mask: Tensor) -> Tensor:
        """(n, 2, clips): what the start and the end filter answer; 0 outside the video."""
        seen = curve.masked_fill(~mask, 0.0) if self.masked else curve
        out: Tensor = self.filters(seen[:, None])
        return out.masked_fill(~mask[:, None], 0.0)

    def forward(self, curve: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithms of the probabilities that each clip is the first, and the last; minus infinity outside."""
        scores = self.responses(curve, mask).masked_fill(~mask[:, None], -torch.inf)
        start, end = scores.log_softmax(-1).unbind(1)
        return start, end
