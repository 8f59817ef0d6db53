"""EfficientNet-Lite0 and Lite2 as ONNX graphs, from the torch weights in a package.

The architecture is Tan and Le's EfficientNet (ICML 2019) in its variant for small devices: no squeeze-and-excitation,
ReLU6 for swish. It is a stem, stages of inverted residual blocks (expand 1×1, depthwise k×k, project 1×1; the input
is added where the shapes allow), a head, and one linear layer. Padding is TensorFlow's ``SAME``, with which the
weights were trained. Batch normalisation is folded into the convolution before it:
``w' = w·γ/√(σ²+ε)``, ``b' = β − μ·γ/√(σ²+ε)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.onnx_writer import Graph

LITE0_STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
"""Each stage's number of blocks, and the stride of its first."""
LITE2_STAGES = ((1, 1), (3, 2), (3, 2), (4, 2), (4, 1), (5, 2), (1, 1))
EPSILON = 1e-3
MEAN, DEVIATION = 127.0, 128.0
"""Mean and deviation by which pixels of every colour are scaled, as for the original TensorFlow models."""
CLASSES = 1000

Weights = Mapping[str, NDArray[Any]]


def build_network(weights: Weights, stages: tuple[tuple[int, int], ...] = LITE0_STAGES) -> bytes:
    """An ONNX file from ``images``, uint8 ``(n, height, width, 3)``, to ``logits``, ``(n, 1000)``."""
    graph = Graph("efficientnet-lite")
    build = _Builder(graph, weights)
    x = graph.add("Cast", graph.input("images", "uint8", ["n", "height", "width", 3]), to=1)
    x = graph.add("Sub", x, graph.constant("mean", np.float32(MEAN)))
    x = graph.add("Div", x, graph.constant("deviation", np.float32(DEVIATION)))
    x = graph.add("Transpose", x, perm=[0, 3, 1, 2])
    x = build.relu6(build.convolution(x, "_conv_stem", "_bn0", stride=2))
    at = 0
    for depth, stride in stages:
        for repeat in range(depth):
            x = build.block(x, f"_blocks.{at}.", 1 if repeat else stride, residual=repeat > 0)
            at += 1
    x = build.relu6(build.convolution(x, "_conv_head", "_bn1"))
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x))
    linear = [graph.constant(name, weights[name]) for name in ("_fc.weight", "_fc.bias")]
    graph.add("Gemm", x, *linear, transB=1, output="logits")
    graph.output("logits", "float32", ["n", CLASSES])
    return graph.model()


@dataclass
class _Builder:
    graph: Graph
    weights: Weights

    def __post_init__(self) -> None:
        self.zero = self.graph.constant("zero", np.float32(0))
        self.six = self.graph.constant("six", np.float32(6))

    def relu6(self, x: str) -> str:
        return self.graph.add("Clip", x, self.zero, self.six)

    def convolution(self, x: str, name: str, norm: str, stride: int = 1) -> str:
        weight, scale = self.weights[f"{name}.weight"], self._scale(norm)
        bias = self.weights[f"{norm}.bias"] - self.weights[f"{norm}.running_mean"] * scale
        return self.graph.add(
            "Conv",
            x,
            self.graph.constant(f"{name}.weight", (weight * scale[:, None, None, None]).astype(np.float32)),
            self.graph.constant(f"{name}.bias", bias.astype(np.float32)),
            auto_pad="SAME_UPPER",
            group=len(weight) if weight.shape[1] == 1 else 1,
            kernel_shape=weight.shape[2:],
            strides=[stride, stride],
        )

    def block(self, x: str, at: str, stride: int, *, residual: bool) -> str:
        """An inverted residual block; a stage's first changes the shape, so that nothing can be added to it."""
        y = x
        if f"{at}_expand_conv.weight" in self.weights:
            y = self.relu6(self.convolution(y, f"{at}_expand_conv", f"{at}_bn0"))
        y = self.relu6(self.convolution(y, f"{at}_depthwise_conv", f"{at}_bn1", stride))
        y = self.convolution(y, f"{at}_project_conv", f"{at}_bn2")
        return self.graph.add("Add", y, x) if residual else y

    def _scale(self, norm: str) -> NDArray[Any]:
        variance = self.weights[f"{norm}.running_var"].astype(np.float64)
        return self.weights[f"{norm}.weight"] / np.sqrt(variance + EPSILON)
