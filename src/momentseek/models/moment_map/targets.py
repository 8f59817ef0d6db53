"""How right each candidate is: its overlap with the true moment, stretched between two thresholds."""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.moment_map.cells import Cells


def overlap(cells: Cells, times: Tensor) -> Tensor:
    """(pairs, cells): intersection over union of each cell and the true span, both as shares of the video.

    >>> import torch
    >>> from momentseek.models.moment_map.cells import cells
    >>> overlap(cells(2), torch.tensor([[0.0, 0.5]])).tolist()
    [[1.0, 0.0, 0.5]]
    """
    first = (cells.start / cells.clips).to(times)
    last = ((cells.start + cells.length) / cells.clips).to(times)
    return overlap_of_moments(times, torch.stack([first, last], dim=1))


def overlap_of_moments(ones: Tensor, others: Tensor) -> Tensor:
    """(n, m): intersection over union of moments (n, 2) with others (m, 2).

    >>> overlap_of_moments(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [[0.5, 0.0]]
    """
    start, end, first, last = ones[:, :1], ones[:, 1:], others[:, 0], others[:, 1]
    shared = (last.minimum(end) - first.maximum(start)).clamp(min=0)
    return shared / ((last - first) + (end - start) - shared)


def scale_overlap(iou: Tensor, low: float, high: float) -> Tensor:
    """0 up to ``low``, 1 from ``high``, a straight line between (2D-TAN, section 3.4).

    >>> import torch
    >>> scale_overlap(torch.tensor([0.4, 0.75, 1.0]), 0.5, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return ((iou - low) / (high - low)).clamp(0, 1)
