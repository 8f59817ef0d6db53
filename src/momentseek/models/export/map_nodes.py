"""The moment map as ONNX nodes: a row per candidate moment, and convolutions that visit candidates only.

Half of a map of 16 clips, and three quarters of one of 64, hold no candidate. A convolution over the map would compute
these cells only to set them to zero again; here each candidate's neighbours are looked up and multiplied by the
kernel, which gives the same numbers for 53 and 27 % of the work.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from momentseek.models.export.nodes import LOWEST_SCORE, Nodes
from momentseek.models.moment_map import Cells, ConvolutionStack, MapConvolution


def max_over(nodes: Nodes, clips: str, cells: Cells) -> str:
    """Add nodes for the maximum over each cell's clips: (videos, clips, dim) to (videos, cells, dim)."""
    tables = [clips]
    while 2 ** len(tables) <= cells.clips:
        step, size = 2 ** (len(tables) - 1), cells.clips - 2 ** len(tables) + 1
        last = tables[-1]
        parts = [nodes.add("Slice", last, *(nodes.integers(v) for v in (at, at + size, 1))) for at in (0, step)]
        tables.append(nodes.add("Max", *parts))
    level = torch.floor(torch.log2(cells.length.double() + 0.5)).long()
    pieces = []
    for power, table in enumerate(tables):
        here = level == power
        first = cells.start[here]
        ends = (first, first + cells.length[here] - 2**power)
        pieces.append(nodes.add("Max", *(nodes.add("Gather", table, nodes.constant(e, "int64"), axis=1) for e in ends)))
    return pieces[0] if len(pieces) == 1 else nodes.add("Concat", *pieces, axis=1)


def convolve_lengths(nodes: Nodes, layers: ConvolutionStack, clips: str) -> str:
    """Add nodes for cells' features by convolutions, each length's over those of the length before."""
    x = nodes.add("Transpose", clips, perm=[0, 2, 1])
    rows = []
    for layer in layers.layers:
        assert isinstance(layer, nn.Conv1d)
        x = nodes.add(
            "Conv", x, nodes.constant(layer.weight), *([] if layer.bias is None else [nodes.constant(layer.bias)]),
            kernel_shape=list(layer.kernel_size), strides=list(layer.stride),
        )  # fmt: skip
        rows.append(x)
    joined = rows[0] if len(rows) == 1 else nodes.add("Concat", *rows, axis=2)
    return nodes.add("Transpose", joined, perm=[0, 2, 1])


def neighbours(nodes: Nodes, layers: MapConvolution, x: str, cells: Cells) -> str:
    """(videos, cells, dim) to (videos, cells, hidden): the convolutions over the map."""
    return _dense(nodes, layers, x, cells) if layers.spreads else _sparse(nodes, layers, x, cells)


def as_spans(nodes: Nodes, scores: str, cells: Cells, lengths: int) -> str:
    """(videos, cells) as (videos, clips, lengths), by first clip and length; ``LOWEST_SCORE`` for no candidate."""
    place = np.full((cells.clips, max(lengths, int(cells.length.max()))), len(cells))
    place[cells.start.numpy(), cells.length.numpy() - 1] = np.arange(len(cells))
    return nodes.add(
        "Gather", _one_more(nodes, scores, 2, LOWEST_SCORE), nodes.constant(place[:, :lengths], "int64"), axis=1
    )


def _sparse(nodes: Nodes, layers: MapConvolution, x: str, cells: Cells) -> str:
    start, end = cells.start.numpy(), cells.end.numpy()
    for i, layer in enumerate(layers.convolutions):
        assert isinstance(layer, nn.Conv2d)
        assert layer.bias is not None
        kernel, reach = layer.kernel_size[0], layer.kernel_size[0] // 2
        number = np.full((cells.clips + 2 * reach, cells.clips + 2 * reach), len(cells))
        number[start + reach, end + reach] = np.arange(len(cells))
        weight = layer.weight.detach().permute(2, 3, 1, 0).reshape(kernel, -1, layer.out_channels)
        more, shape = _one_more(nodes, x, 3, 0.0), nodes.integers(-1, len(cells), kernel * layer.in_channels)
        x = nodes.constant(layer.bias)
        for a in range(kernel):  # a row of the kernel at a time: all at once would fill the memory for large maps
            seen = np.stack([number[start + a, end + b] for b in range(kernel)], 1)
            near = nodes.add("Gather", more, nodes.constant(seen.ravel(), "int64"), axis=1)
            x = nodes.add("Add", x, nodes.add("MatMul", nodes.add("Reshape", near, shape), nodes.constant(weight[a])))
        x = nodes.add("Relu", _normalise(nodes, layers.norms[i], x, columns=(-1,)))
        share = getattr(layers, f"weight{i}")[0, 0, cells.start, cells.end]
        x = nodes.add("Mul", x, nodes.constant(share[:, None]))
    return x


def _dense(nodes: Nodes, layers: MapConvolution, x: str, cells: Cells) -> str:
    clips, place = cells.clips, (cells.start * cells.clips + cells.end).numpy()
    number = np.full(clips * clips, len(cells))
    number[place] = np.arange(len(cells))
    x = nodes.add("Gather", _one_more(nodes, x, 3, 0.0), nodes.constant(number, "int64"), axis=1)
    x = nodes.add("Transpose", x, perm=[0, 2, 1])
    x = nodes.add("Reshape", x, nodes.integers(0, 0, clips, clips))
    for i, (layer, pad) in enumerate(zip(layers.convolutions, layers.pads, strict=True)):
        assert isinstance(layer, nn.Conv2d)
        assert layer.bias is not None
        x = nodes.add(
            "Conv", x, nodes.constant(layer.weight), nodes.constant(layer.bias),
            kernel_shape=list(layer.kernel_size), pads=[pad] * 4,
        )  # fmt: skip
        x = nodes.add("Relu", _normalise(nodes, layers.norms[i], x, columns=(-1, 1, 1)))
        x = nodes.add("Mul", x, nodes.constant(getattr(layers, f"weight{i}")))
    flat = nodes.add("Reshape", x, nodes.integers(0, 0, clips * clips))
    return nodes.add("Transpose", nodes.add("Gather", flat, nodes.constant(place, "int64"), axis=2), perm=[0, 2, 1])


def _normalise(nodes: Nodes, norm: nn.Module, x: str, columns: tuple[int, ...]) -> str:
    """Batch normalisation as it is after training: a factor and a shift per column."""
    if isinstance(norm, nn.Identity):
        return x
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    shift = norm.bias - norm.running_mean * factor
    scaled = nodes.add("Mul", x, nodes.constant(factor.reshape(columns)))
    return nodes.add("Add", scaled, nodes.constant(shift.reshape(columns)))


def _one_more(nodes: Nodes, x: str, axes: int, value: float) -> str:
    """With one more row in the second axis, for what is not there."""
    pads = [0] * axes + [0, 1] + [0] * (axes - 2)
    return nodes.add("Pad", x, nodes.integers(*pads), nodes.constant(np.float32(value)))
