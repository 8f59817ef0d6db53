"""Layers as ONNX nodes: each function adds what a layer computes to a graph and returns the result's name.

The graphs are written by ``encoders.onnx_writer``, in milliseconds and without the packages ``onnx`` and
``onnxscript`` (torch's own exporter took half a minute for a model of this size); every export is compared with torch
before it counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.attention import Attention, CnnEncoder, CrossEncoder, LstmEncoder, SelfEncoder, Stack
from momentseek.models.layers.moment_map import Cells, ConvolutionStack, MapConvolution
from momentseek.models.layers.pooling import ModularQuery
from momentseek.models.layers.projection import JointClips, MapClips, Positions, Projection
from momentseek.models.zoo.tan2d import SentenceEncoder
from momentseek.recognition.encoders.onnx_writer import Graph

LOWEST_SCORE = -3e38
"""Stands for minus infinity in graphs; its exponential is 0 too."""


class Nodes:
    """A graph being drawn, with names for its constants."""

    def __init__(self, name: str) -> None:
        self.graph = Graph(name)
        self._constants = 0

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """An operator on values."""
        return self.graph.add(operator, *inputs, **attributes)

    def constant(self, value: Any, kind: str = "float32") -> str:
        """A number, array or tensor."""
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        self._constants += 1
        return self.graph.constant(f"constant_{self._constants}", np.array(array, kind, order="C"))

    def integers(self, *values: int) -> str:
        """Sizes, axes and the like."""
        return self.constant(values, "int64")

    # layers

    def linear(self, layer: nn.Module, x: str) -> str:
        """``x W' + b``; an identity stays one."""
        if isinstance(layer, nn.Identity):
            return x
        assert isinstance(layer, nn.Linear)
        out = self.add("MatMul", x, self.constant(layer.weight.T))
        return out if layer.bias is None else self.add("Add", out, self.constant(layer.bias))

    def norm(self, layer: nn.LayerNorm, x: str) -> str:
        """Layer normalisation over the columns."""
        scale, shift = self.constant(layer.weight), self.constant(layer.bias)
        return self.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=float(layer.eps))

    def unit(self, x: str) -> str:
        """Rows of length 1."""
        length = self.add("ReduceL2", x, axes=[-1], keepdims=1)
        return self.add("Div", x, self.add("Max", length, self.constant(np.float32(1e-12))))

    def projection(self, layer: nn.Module, x: str) -> str:
        """Norm, linear map, ReLU."""
        assert isinstance(layer, Projection)
        return self.add("Relu", self.linear(layer.linear, self.norm(layer.norm, x)))

    def positions(self, layer: nn.Module, x: str) -> str:
        """Add nodes that add each row's position vector and then normalise; an identity stays one."""
        if isinstance(layer, nn.Identity):
            return x
        assert isinstance(layer, Positions)
        count = self.add("Gather", self.add("Shape", x), self.integers(1), axis=0)
        places = self.add("Slice", self.constant(layer.place.weight), self.integers(0), count, self.integers(0))
        return self.norm(layer.norm, self.add("Add", x, places))

    def encoder(self, layer: nn.Module, x: str, mask: str) -> str:
        """One of the sequence encoders."""
        if isinstance(layer, SelfEncoder):
            return self.block(layer, x, x, mask)
        if isinstance(layer, CnnEncoder):
            return self.cnn(layer, x, mask)
        if isinstance(layer, LstmEncoder):
            return self.lstm(layer, x, mask)
        raise MomentseekError(f"layers of the kind {type(layer).__name__} cannot be exported yet")

    def stack(self, layers: nn.Module, x: str, mask: str) -> list[str]:
        """What each of several encoders gives."""
        assert isinstance(layers, Stack)
        outputs = []
        for layer in layers.layers:
            x = self.encoder(layer, x, mask)
            outputs.append(x)
        return outputs

    def block(self, layer: nn.Module, x: str, other: str, mask: str, *, each: bool = False) -> str:
        """Attention, linear map, residual, norm; ``each`` as ``attention`` has it."""
        assert isinstance(layer, SelfEncoder | CrossEncoder)
        seen = self.linear(layer.linear, self.attention(layer.attention, x, other, mask, each=each))
        return self.norm(layer.norm, self.add("Add", x, seen))

    def attention(self, layer: Attention, x: str, other: str, mask: str, *, each: bool = False) -> str:
        """``softmax(Q K' / sqrt(d)) V`` in several heads, over the rows of ``other`` that are there.

        With ``each``, the mask has a row for each row of ``x``.
        """
        hidden, heads = layer.query.out_features, layer.heads
        key, value = layer.key_value.weight.chunk(2)
        key_bias, value_bias = layer.key_value.bias.chunk(2)
        shape = self.integers(0, 0, heads, hidden // heads)

        def heads_of(rows: str, weight: Tensor, bias: Tensor, order: list[int]) -> str:
            out = self.add("Add", self.add("MatMul", rows, self.constant(weight.T)), self.constant(bias))
            return self.add("Transpose", self.add("Reshape", out, shape), perm=order)

        scale = self.constant(np.float32(1 / math.sqrt(hidden // heads)))
        query = self.add("Mul", heads_of(x, layer.query.weight, layer.query.bias, [0, 2, 1, 3]), scale)
        scores = self.add("MatMul", query, heads_of(other, key, key_bias, [0, 2, 3, 1]))
        there = self.add("Unsqueeze", mask, self.integers(1) if each else self.integers(1, 2))
        weight = self.add("Softmax", self.add("Where", there, scores, self.constant(LOWEST_SCORE)), axis=-1)
        taken = self.add("MatMul", weight, heads_of(other, value, value_bias, [0, 2, 1, 3]))
        return self.add("Reshape", self.add("Transpose", taken, perm=[0, 2, 1, 3]), self.integers(0, 0, hidden))

    def transformer(self, encoder: nn.TransformerEncoder, x: str, mask: str) -> str:
        """Torch's own encoder: attention and two linear maps with GELU, each with residual and norm after it."""
        for layer in encoder.layers:
            assert isinstance(layer, nn.TransformerEncoderLayer)
            assert not layer.norm_first
            own, hidden = layer.self_attn, layer.self_attn.embed_dim
            shape = self.integers(0, 0, own.num_heads, hidden // own.num_heads)
            parts = []
            for weight, bias, order in zip(
                own.in_proj_weight.chunk(3), own.in_proj_bias.chunk(3), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]),
                strict=True,
            ):  # fmt: skip
                rows = self.add("Add", self.add("MatMul", x, self.constant(weight.T)), self.constant(bias))
                parts.append(self.add("Transpose", self.add("Reshape", rows, shape), perm=order))
            query, key, value = parts
            scale = self.constant(np.float32(1 / math.sqrt(hidden // own.num_heads)))
            scores = self.add("MatMul", self.add("Mul", query, scale), key)
            there = self.add("Unsqueeze", mask, self.integers(1, 2))
            weights = self.add("Softmax", self.add("Where", there, scores, self.constant(LOWEST_SCORE)), axis=-1)
            seen = self.add("Transpose", self.add("MatMul", weights, value), perm=[0, 2, 1, 3])
            seen = self.linear(own.out_proj, self.add("Reshape", seen, self.integers(0, 0, hidden)))
            x = self.norm(layer.norm1, self.add("Add", x, seen))
            wide = self.gelu(self.linear(layer.linear1, x))
            x = self.norm(layer.norm2, self.add("Add", x, self.linear(layer.linear2, wide)))
        return x

    def gelu(self, x: str) -> str:
        """Add nodes for the exact GELU, ``x Φ(x)``."""
        share = self.add("Erf", self.add("Mul", x, self.constant(np.float32(math.sqrt(0.5)))))
        half = self.add("Mul", x, self.constant(np.float32(0.5)))
        return self.add("Mul", half, self.add("Add", share, self.constant(np.float32(1))))

    def cnn(self, layer: CnnEncoder, x: str, mask: str) -> str:
        """A depthwise convolution over the rows, columns mixed, residual, norm."""
        there = self.fill_outside(x, mask)
        kernel, columns = layer.depth.kernel_size[0], layer.depth.in_channels
        assert layer.depth.bias is not None
        deep = self.add(
            "Conv", self.add("Transpose", there, perm=[0, 2, 1]), self.constant(layer.depth.weight),
            self.constant(layer.depth.bias),
            kernel_shape=[kernel], pads=[kernel // 2, kernel // 2], group=columns,
        )  # fmt: skip
        mixed = self.add("Relu", self.linear(layer.point, self.add("Transpose", deep, perm=[0, 2, 1])))
        return self.norm(layer.norm, self.add("Add", there, mixed))

    def lstm(self, layer: LstmEncoder, x: str, mask: str) -> str:
        """Both directions, each row as long as it is. ONNX has the gates in the order i, o, f, c; torch i, f, c, o."""
        own = layer.lstm

        def gates(kind: str) -> Any:
            both = (getattr(own, f"{kind}{end}").detach().cpu().numpy() for end in ("", "_reverse"))
            return np.stack([_gates(weight, own.hidden_size) for weight in both])

        bias = np.concatenate([gates("bias_ih_l0"), gates("bias_hh_l0")], axis=1)[..., 0]
        counts = self.add("Cast", mask, to=6)
        lengths = self.add("ReduceSum", counts, self.integers(1), keepdims=0)
        weights = [self.constant(gates(kind)) for kind in ("weight_ih_l0", "weight_hh_l0")]
        out = self.add(
            "LSTM", self.add("Transpose", x, perm=[1, 0, 2]), *weights, self.constant(bias), lengths,
            hidden_size=own.hidden_size, direction="bidirectional",
        )  # fmt: skip
        turned = self.add("Transpose", out, perm=[2, 0, 1, 3])  # from (length, directions, rows, columns)
        return self.add("Reshape", turned, self.integers(0, 0, 2 * own.hidden_size))

    def sentence(self, layer: SentenceEncoder, x: str, mask: str) -> tuple[str, str]:
        """The state at the last word of a query, and at each word: one-way LSTMs, one on the other."""
        own, x = layer.lstm, self.add("Transpose", x, perm=[1, 0, 2])
        for at in range(own.num_layers):
            weights = {kind: getattr(own, f"{kind}_l{at}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
            gates = {kind: _gates(value.detach().cpu().numpy(), own.hidden_size) for kind, value in weights.items()}
            bias = np.concatenate([gates["bias_ih"], gates["bias_hh"]])[None, :, 0]
            given = (self.constant(gates[kind][None]) for kind in ("weight_ih", "weight_hh"))
            out = self.add("LSTM", x, *given, self.constant(bias), hidden_size=own.hidden_size)
            x = self.add("Squeeze", out, self.integers(1))  # the one direction
        states = self.add("Transpose", x, perm=[1, 0, 2])
        before = self.add("Cast", mask, to=7)
        after = self.add("Pad", before, self.integers(0, 0, 0, 1))
        after = self.add("Slice", after, self.integers(1), self.integers(2**31), self.integers(1))
        last = self.add("Cast", self.add("Sub", before, after), to=1)  # 1 at the last word, 0 elsewhere
        last = self.add("Unsqueeze", last, self.integers(1))
        return self.add("Squeeze", self.add("MatMul", last, states), self.integers(1)), states

    def mean(self, x: str, mask: str) -> str:
        """The mean of the rows that are there."""
        there = self.add("Cast", mask, to=1)
        total = self.add("MatMul", self.add("Unsqueeze", there, self.integers(1)), x)
        count = self.add("ReduceSum", there, self.integers(1), keepdims=1)
        fewest = self.add("Max", count, self.constant(np.float32(1)))
        return self.add("Div", self.add("Squeeze", total, self.integers(1)), fewest)

    def joint_clips(self, layer: JointClips, parts: Sequence[str]) -> str:
        """Modalities side by side, through one linear layer."""
        return self.linear(layer.linear, parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=-1))

    def map_clips(self, layer: MapClips, parts: Sequence[str]) -> str:
        """The clips of a moment map: rows through the linear layer and ReLU, then the mean of every few."""
        rows = self.add("Relu", self.joint_clips(layer, parts))
        if layer.stride == 1:
            return rows
        split = self.add("Reshape", rows, self.integers(0, -1, layer.stride, layer.linear.out_features))
        return self.add("ReduceMean", split, axes=[2], keepdims=0)

    def fill_outside(self, x: str, mask: str, filler: float = 0.0) -> str:
        """``filler`` where there is nothing."""
        return self.add("Where", self.add("Unsqueeze", mask, self.integers(2)), x, self.constant(filler))

    def pooling(self, layer: nn.Module, x: str, mask: str, modalities: int) -> list[str]:
        """The query's vector for each modality."""
        if not isinstance(layer, ModularQuery):
            return [self.add("ReduceMax", self.fill_outside(x, mask, LOWEST_SCORE), axes=[1], keepdims=0)] * modalities
        scores = self.add("Transpose", self.linear(layer.weight, x), perm=[0, 2, 1])
        there = self.add("Unsqueeze", mask, self.integers(1))
        weight = self.add("Softmax", self.add("Where", there, scores, self.constant(LOWEST_SCORE)), axis=-1)
        pooled = self.add("MatMul", weight, x)
        return [self.add("Gather", pooled, self.constant(i, "int64"), axis=1) for i in range(modalities)]


def _gates(weight: NDArray[Any], hidden: int) -> NDArray[Any]:
    """Rows of an LSTM's gates in ONNX's order, from torch's."""
    i, f, c, o = weight.reshape(4, hidden, -1)
    return np.concatenate([i, o, f, c])


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
