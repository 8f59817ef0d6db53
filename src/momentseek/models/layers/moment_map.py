"""The 2D moment map, which has a cell for every candidate moment of a video (2D-TAN, MMN).

Among N clips, spans of 1 to 16 clips start at any clip. Longer spans come in groups of eight lengths, and the starts of
each group lie on a grid twice as coarse as before: 18, 20, …, 32 clips at even starts, 36, 40, …, 64 at multiples of
four, and so on (2D-TAN, section 3.2). This gives 136, 1,104 and 2,548 cells for N = 16, 64 and 128.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DENSE_LENGTHS = 16
"""Longest span, in clips, that may start at every clip."""
LENGTHS_PER_GRID = 8
"""Number of lengths on each coarser grid."""
WAVE_BASE = 10_000.0


@dataclass(frozen=True, eq=False)
class Cells:
    """Candidate spans: cell c covers clips ``start[c]`` to ``start[c] + length[c] - 1`` of ``clips``."""

    clips: int
    start: Tensor
    length: Tensor

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Tensor:
        """Last clip of each cell, included."""
        return self.start + self.length - 1

    @property
    def row_major(self) -> Tensor:
        """The order of cells by first clip, then last clip, which is that of a map and of public code."""
        return (self.start * self.clips + self.end).argsort()

    def mask(self) -> Tensor:
        """(clips, clips), True at [first clip, last clip] of each cell."""
        valid = torch.zeros(self.clips, self.clips, dtype=torch.bool)
        valid[self.start, self.end] = True
        return valid

    def as_map(self, values: Tensor) -> Tensor:
        """(batch, cells, dim) -> maps (batch, dim, first clip, last clip), zero where there is no cell."""
        batch, _, dim = values.shape
        flat = values.new_zeros(batch, self.clips * self.clips, dim)
        place = (self.start * self.clips + self.end).to(values.device)
        flat = flat.index_copy(1, place, values)
        return flat.view(batch, self.clips, self.clips, dim).permute(0, 3, 1, 2)

    def of_map(self, maps: Tensor) -> Tensor:
        """(batch, dim, clips, clips) -> (batch, cells, dim): the inverse of ``as_map``."""
        return maps[:, :, self.start, self.end].transpose(1, 2)

    def as_spans(self, scores: Tensor, lengths: int) -> Tensor:
        """(batch, cells) scores -> (batch, clips, lengths) as ``CorpusModel.spans``; other spans are minus infinity.

        >>> cells(2).as_spans(torch.tensor([[1.0, 2.0, 3.0]]), 2).tolist()
        [[[1.0, 3.0], [2.0, -inf]]]
        """
        grid = scores.new_full((len(scores), self.clips, max(lengths, int(self.length.max()))), -torch.inf)
        grid[:, self.start, self.length - 1] = scores
        return grid[:, :, :lengths]


@cache
def cells(clips: int) -> Cells:
    """The candidates among ``clips`` clips, short ones first.

    >>> [len(cells(n)) for n in (16, 64, 128)]
    [136, 1104, 2548]
    """
    starts: list[int] = []
    lengths: list[int] = []
    length, stride, left = 1, 1, DENSE_LENGTHS
    while length <= clips:
        here = range(0, clips - length + 1, stride)
        starts += here
        lengths += [length] * len(here)
        left -= 1
        if not left:
            stride, left = 2 * stride, LENGTHS_PER_GRID
        length += stride
    return Cells(clips, torch.tensor(starts), torch.tensor(lengths))


def max_over(clips: Tensor, cells: Cells) -> Tensor:
    """(batch, clips, dim) → (batch, cells, dim): the maximum over each cell's clips (2D-TAN's stacked max-pooling).

    The maxima of each length are computed from neighbours of the previous length. (A table of maxima over powers of two
    needs fewer steps, but gathering from it costs more than it saves: docs/measurements/benchmarks.md.)

    >>> from momentseek.models.layers.moment_map import cells
    >>> max_over(torch.tensor([[[1.0], [3.0], [2.0]]]), cells(3)).flatten().tolist()
    [1.0, 3.0, 2.0, 3.0, 3.0, 3.0]
    """
    rows = [clips]
    for coarser in growth(cells.clips):
        x = rows[-1]
        pair = torch.maximum(x[:, :-2:2], x[:, 1:-1:2]) if coarser else torch.maximum(x[:, :-1], x[:, 1:])
        rows.append(torch.maximum(pair, x[:, 2::2]) if coarser else pair)
    return torch.cat(rows, dim=1)


def growth(clips: int) -> list[bool]:
    """Whether the grid of starts becomes coarser at each length of candidates after the first.

    >>> growth(18)[13:]
    [False, False, True]
    """
    steps = []
    length, stride, left = 2, 1, DENSE_LENGTHS - 1
    while length <= clips:
        steps.append(left == LENGTHS_PER_GRID and stride > 1)
        left -= 1
        if not left:
            stride, left = 2 * stride, LENGTHS_PER_GRID
        length += stride
    return steps


class ConvolutionStack(nn.Module):
    """The learned alternative to ``max_over``: each length's features are a convolution over the previous length's.

    It joins two neighbours within a grid, and three with stride two where the grid becomes coarser. There is no
    non-linearity, as in 2D-TAN's code.
    """

    def __init__(self, dim: int, clips: int) -> None:
        super().__init__()
        steps = growth(clips)
        self.layers = nn.ModuleList([nn.Conv1d(dim, dim, 1), *(nn.Conv1d(dim, dim, 2 + c, 1 + c) for c in steps)])

    def forward(self, clips: Tensor, cells: Cells) -> Tensor:
        """(batch, clips, dim) → (batch, cells, dim)."""
        x = clips.transpose(1, 2)
        rows = []
        for layer in self.layers:
            x = layer(x)
            rows.append(x)
        joined = torch.cat(rows, dim=2).transpose(1, 2)
        assert joined.shape[1] == len(cells), (joined.shape, len(cells))
        return joined


class MapConvolution(nn.Module):
    """Convolutions over a map, with ReLU and weights by the number of valid cells; the map keeps its size.

    ``norm`` adds batch normalisation. ``padding="each"`` pads every layer. ``"first"`` pads the first layer for all of
    them, as in the public code; cells outside the map then carry features to later layers, at up to nine times the cost
    for 16 clips.
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
            if name.endswith("weight"):  # compensates the division by up to kernel² cells
                nn.init.kaiming_normal_(weight, nonlinearity="relu")
                with torch.no_grad():
                    weight.mul_(kernel**2)
        self.norms = nn.ModuleList(nn.BatchNorm2d(hidden) if norm else nn.Identity() for _ in range(layers))
        inside = mask[None, None].float()
        for i, pad in enumerate(self.pads):
            seen = F.conv2d(inside, torch.ones(1, 1, kernel, kernel), padding=pad)
            self.register_buffer(f"weight{i}", torch.where(seen > 0, 1 / seen.clamp(min=1), 0.0), persistent=False)
            inside = inside if padding == "each" else (seen > 0).float()
        self.inside = nn.Buffer(mask[None, None].float(), persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        """(batch, dim, clips, clips) → (batch, hidden, clips, clips)."""
        for i, (layer, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            maps = F.relu(norm(layer(maps))) * getattr(self, f"weight{i}")
            if not self.spreads:
                maps = maps * self.inside
        return maps * self.inside

    def over(self, cells: Cells, values: Tensor) -> Tensor:
        """(batch, cells, dim) → (batch, cells, hidden): the convolutions over the map of these cells."""
        if self.spreads or not torch.onnx.is_in_onnx_export():
            return cells.of_map(self(cells.as_map(values)))
        return self._over_cells_only(cells, values)

    def _over_cells_only(self, cells: Cells, x: Tensor) -> Tensor:
        """Compute ``over`` for candidate cells only, without the half to three quarters of a map that are empty.

        This halves the time of exported graphs. It takes one row of the kernel at a time, to save memory.
        """
        for i, (layer, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            assert isinstance(layer, nn.Conv2d)
            assert layer.bias is not None
            kernel, reach = layer.kernel_size[0], layer.kernel_size[0] // 2
            number = torch.full((cells.clips + 2 * reach, cells.clips + 2 * reach), len(cells))
            number[cells.start + reach, cells.end + reach] = torch.arange(len(cells))
            more, weight, found = F.pad(x, (0, 0, 0, 1)), layer.weight.permute(2, 3, 1, 0).flatten(1, 2), layer.bias
            for a in range(kernel):
                seen = torch.stack([number[cells.start + a, cells.end + b] for b in range(kernel)], 1)
                found = found + more[:, seen.flatten()].reshape(-1, len(cells), weight.shape[1]) @ weight[a]
            found = norm(found.transpose(1, 2)[..., None])[..., 0].transpose(1, 2)
            x = F.relu(found) * getattr(self, f"weight{i}")[0, 0, cells.start, cells.end][:, None]
        return x


def overlap(cells: Cells, times: Tensor) -> Tensor:
    """(pairs, cells): the IoU of each cell with the true span, both as shares of the video.

    >>> import torch
    >>> from momentseek.models.layers.moment_map import cells
    >>> overlap(cells(2), torch.tensor([[0.0, 0.5]])).tolist()
    [[1.0, 0.0, 0.5]]
    """
    first = (cells.start / cells.clips).to(times)
    last = ((cells.start + cells.length) / cells.clips).to(times)
    return overlap_of_moments(times, torch.stack([first, last], dim=1))


def overlap_of_moments(ones: Tensor, others: Tensor) -> Tensor:
    """(n, m): the IoU of moments (n, 2) with others (m, 2).

    >>> overlap_of_moments(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [[0.5, 0.0]]
    """
    start, end, first, last = ones[:, :1], ones[:, 1:], others[:, 0], others[:, 1]
    shared = (last.minimum(end) - first.maximum(start)).clamp(min=0)
    return shared / ((last - first) + (end - start) - shared)


def scale_overlap(iou: Tensor, low: float, high: float) -> Tensor:
    """Scale IoUs linearly: 0 up to ``low``, and 1 from ``high`` on (2D-TAN, section 3.4).

    >>> import torch
    >>> scale_overlap(torch.tensor([0.4, 0.75, 1.0]), 0.5, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return ((iou - low) / (high - low)).clamp(0, 1)


def waves(places: Tensor, dim: int) -> Tensor:
    """(n, dim): sines and cosines of geometrically falling frequencies (Vaswani et al. 2017, section 3.5).

    >>> waves(torch.tensor([0]), 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    steps = torch.arange(0, dim, 2)
    angles = places[:, None] * torch.exp(steps * (-math.log(WAVE_BASE) / dim))
    pairs = torch.stack([angles.sin(), angles.cos()], dim=2)
    return pairs.flatten(1)[:, :dim]


def positions_2d(cells: Cells, dim: int) -> Tensor:
    """Sinusoidal vectors of the cells' starts and ends, of shape (cells, dim)."""
    half = dim // 2
    return torch.cat([waves(cells.start, half), waves(cells.end, dim - half)], dim=1)


def grid_2d(clips: int, dim: int) -> Tensor:
    """(clips · clips, dim): sinusoidal vectors of all pairs of first and last clips."""
    first, last = (g.flatten() for g in torch.meshgrid(torch.arange(clips), torch.arange(clips), indexing="ij"))
    half = dim // 2
    return torch.cat([waves(first, half), waves(last, dim - half)], dim=1)
