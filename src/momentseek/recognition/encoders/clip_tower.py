"""CLIP ViT-B/16's image tower as an ONNX graph, built from the 8-bit weights in a package.

The package's own graph also rounds activations to 8 bits, which distorts the vectors (cosine .4 to .5 to the true
ones), but its weights are good. So only the weights are used: 8-bit integers with a scale for each column. The tower is
rebuilt from them with float32 activations (Radford et al., "Learning Transferable Visual Models From Natural Language
Supervision", ICML 2021, section 2.4; a Vision Transformer with a layer normalisation before its first layer).

Two things are cheaper than in the original. Of the last layer only the class token is computed, with the same result.
And pictures may be smaller than 224 pixels, with the position embeddings interpolated to the smaller grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.recognition.encoders.network import GraphBuilder
from momentseek.recognition.encoders.protocol import Vectors

LAYERS, WIDTH, HEADS, PATCH, GRID = 12, 768, 12, 16, 14
"""Sizes of ViT-B/16; the grid is that of the 224 pixels it was trained with."""
EPSILON = 1e-5
MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)
"""Mean and standard deviation of the colours, from 0 to 1, for scaling CLIP's pixels."""
QUICK_GELU = 1.702


@dataclass(frozen=True)
class Matrix:
    """A matrix of 8-bit integers, with a scale and a zero point for each column."""

    codes: NDArray[np.int8]
    scale: Vectors
    zero: NDArray[np.int8]


Weights = Mapping[str, Vectors | Matrix]


def read_weights(path: Path) -> Weights:
    """Read the tower's weights by name; a matrix has the name of the layer that multiplies with it."""
    onnx = optional_module("onnx", "search")
    try:
        graph = onnx.load(str(path)).graph
        values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        found: dict[str, Vectors | Matrix] = {name.removeprefix("vision_model."): x for name, x in values.items()}
        for node in graph.node:
            if node.op_type == "MatMulInteger":
                stem = node.input[1].removesuffix("quantized")
                parts = (values[stem + part] for part in ("quantized", "scale", "zero_point"))
                found[_layer_name(node.output[0])] = Matrix(*parts)
    except Exception as e:  # a damaged file may raise anything
        raise MomentseekError(f"{path}: is not the CLIP model that was tested ({e}); get it again") from None
    return found


def _layer_name(output: str) -> str:
    """Return the name of a matrix, given the name of its product's output.

    >>> import momentseek.recognition.encoders.clip_tower as tower
    >>> tower._layer_name("/vision_model/encoder/layers.3/mlp/fc1/MatMul_output_0_output_quantized")
    'encoder.layers.3.mlp.fc1.weight'
    """
    if output.startswith("image_embeds"):
        return "projection.weight"
    return output.removeprefix("/vision_model/").split("/MatMul")[0].replace("/", ".") + ".weight"


def build_tower(weights: Weights, side: int) -> bytes:
    """Return an ONNX file that maps ``images``, uint8 ``(n, side, side, 3)``, to ``vectors``, ``(n, 512)``."""
    build = _TowerBuilder(weights)
    x = build.add("Cast", "images", to=1)
    x = build.add("Mul", x, build.constant("scale", 1 / (255 * np.array(DEVIATION))))
    x = build.add("Sub", x, build.constant("shift", np.array(MEAN) / np.array(DEVIATION)))
    x = build.add("Transpose", x, perm=[0, 3, 1, 2])
    patches = build.weight("embeddings.patch_embedding.weight")
    x = build.add("Conv", x, patches, strides=[PATCH, PATCH], kernel_shape=[PATCH, PATCH])
    x = build.add("Transpose", build.add("Reshape", x, build.integers("flat", [0, WIDTH, -1])), perm=[0, 2, 1])
    zero = build.add("Mul", build.first_token(x), build.constant("zero", np.zeros(1)))  # a row for each image
    token = build.add("Add", zero, build.weight("embeddings.class_embedding"))
    x = build.add("Concat", token, x, axis=1)
    table = weights["embeddings.position_embedding.weight"]
    assert not isinstance(table, Matrix)
    positions = resize_positions(table, side // PATCH)
    x = build.normalise(build.add("Add", x, build.constant("positions", positions)), "pre_layrnorm")
    for layer in range(LAYERS):
        x = build.layer(x, f"encoder.layers.{layer}.", last=layer == LAYERS - 1)
    x = build.add("Squeeze", build.normalise(x, "post_layernorm"), build.integers("token axis", [1]))
    build.add("MatMul", x, build.weight("projection.weight"), output="vectors")
    return build.finish("clip-vit-b16", ["n", side, side, 3], "vectors", 512)


def resize_positions(table: Vectors, grid: int) -> Vectors:
    """Resize position embeddings to another grid by bicubic interpolation.

    >>> table = np.arange(197, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
    >>> resize_positions(table, 14).shape, resize_positions(table, 10)[0].tolist()
    ((197, 2), [0.0, 0.0])
    """
    if grid == GRID:
        return table
    pillow = optional_module("PIL.Image", "search")
    planes = table[1:].reshape(GRID, GRID, -1).transpose(2, 0, 1)
    sized = [pillow.fromarray(plane).resize((grid, grid), pillow.Resampling.BICUBIC) for plane in planes]
    return np.concatenate([table[:1], np.stack(sized, axis=-1).reshape(grid * grid, -1)])


class _TowerBuilder(GraphBuilder):
    """Builds the layers of the tower."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.weights = weights

    def integers(self, name: str, value: list[int]) -> str:
        return self.keep(name, np.array(value, np.int64))

    def weight(self, name: str) -> str:
        """Add a weight; the runtime multiplies directly with 8-bit integers if the CPU supports that.

        The second layer of each MLP uses floats: a few of its inputs are so large that 8 bits are too coarse.
        """
        value = self.weights[name]
        if not isinstance(value, Matrix):
            return self.constant(name, value)
        if ".mlp.fc2." in name:
            return self.constant(name, (value.codes.astype(np.float32) - value.zero) * value.scale)
        parts: dict[str, NDArray[Any]] = {"codes": value.codes, "scale": value.scale, "zero": value.zero}
        inputs = (self.keep(f"{name}.{part}", array) for part, array in parts.items())
        return self.add("DequantizeLinear", *inputs, axis=1)

    def normalise(self, x: str, name: str) -> str:
        parts = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", x, *parts, axis=-1, epsilon=EPSILON)

    def linear(self, x: str, name: str) -> str:
        product = self.add("MatMul", x, self.weight(f"{name}.weight"))
        return self.add("Add", product, self.weight(f"{name}.bias"))

    def heads(self, x: str, perm: list[int]) -> str:
        split = self.integers("split", [0, 0, HEADS, WIDTH // HEADS])
        return self.add("Transpose", self.add("Reshape", x, split), perm=perm)

    def first_token(self, x: str) -> str:
        ends = (self.integers(name, [n]) for name, n in (("slice0", 0), ("slice1", 1), ("slice2", 1)))
        return self.add("Slice", x, *ends)

    def layer(self, x: str, at: str, *, last: bool) -> str:
        """Add one layer; the last one computes only the class token."""
        normal = self.normalise(x, f"{at}layer_norm1")
        asking = self.first_token(normal) if last else normal
        q = self.heads(self.linear(asking, f"{at}self_attn.q_proj"), [0, 2, 1, 3])
        k = self.heads(self.linear(normal, f"{at}self_attn.k_proj"), [0, 2, 3, 1])
        v = self.heads(self.linear(normal, f"{at}self_attn.v_proj"), [0, 2, 1, 3])
        scaled = self.add("Mul", q, self.constant("head scale", np.float32((WIDTH // HEADS) ** -0.5)))
        shares = self.add("Softmax", self.add("MatMul", scaled, k), axis=-1)
        seen = self.add("Transpose", self.add("MatMul", shares, v), perm=[0, 2, 1, 3])
        seen = self.add("Reshape", seen, self.integers("join", [0, 0, WIDTH]))
        x = self.add("Add", self.first_token(x) if last else x, self.linear(seen, f"{at}self_attn.out_proj"))
        wide = self.linear(self.normalise(x, f"{at}layer_norm2"), f"{at}mlp.fc1")
        gate = self.add("Sigmoid", self.add("Mul", wide, self.constant("gelu", np.float32(QUICK_GELU))))
        return self.add("Add", x, self.linear(self.add("Mul", wide, gate), f"{at}mlp.fc2"))
