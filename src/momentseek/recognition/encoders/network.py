"""EfficientNet-Lite2 as an ONNX graph, from the torch weights in a package.

The architecture is Tan and Le's EfficientNet (ICML 2019) in its variant for small devices: no squeeze-and-excitation,
ReLU6 for swish. It is a stem, stages of inverted residual blocks (expand 1×1, depthwise k×k, project 1×1; the input
is added where the shapes allow), a head, and one linear layer. Padding is TensorFlow's ``SAME``, with which the
weights were trained. Batch normalisation is folded into the convolution before it:
``w' = w·γ/√(σ²+ε)``, ``b' = β − μ·γ/√(σ²+ε)``.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, optional_module

LITE2_STAGES = ((1, 1), (3, 2), (3, 2), (4, 2), (4, 1), (5, 2), (1, 1))
"""Number of blocks per stage, and the stride of the first block."""
EPSILON = 1e-3
MEAN, DEVIATION = 127.0, 128.0
"""Mean and standard deviation for scaling the pixels of every colour, as in the original TensorFlow models."""
CLASSES = 1000
IR_VERSION, OPSET = 8, 17
"""Versions of ONNX's file format and operators."""

Weights = Mapping[str, NDArray[Any]]


def build_network(weights: Weights, stages: tuple[tuple[int, int], ...] = LITE2_STAGES) -> bytes:
    """Return an ONNX file that maps ``images``, uint8 ``(n, height, width, 3)``, to ``logits``, ``(n, 1000)``."""
    build = _LiteBuilder(weights)
    x = build.add("Cast", "images", to=1)
    x = build.add("Sub", x, build.constant("mean", np.float32(MEAN)))
    x = build.add("Div", x, build.constant("deviation", np.float32(DEVIATION)))
    x = build.add("Transpose", x, perm=[0, 3, 1, 2])
    x = build.relu6(build.convolution(x, "_conv_stem", "_bn0", stride=2))
    at = 0
    for depth, stride in stages:
        for repeat in range(depth):
            x = build.block(x, f"_blocks.{at}.", 1 if repeat else stride, residual=repeat > 0)
            at += 1
    x = build.relu6(build.convolution(x, "_conv_head", "_bn1"))
    x = build.add("Flatten", build.add("GlobalAveragePool", x))
    linear = [build.constant(name, weights[name]) for name in ("_fc.weight", "_fc.bias")]
    build.add("Gemm", x, *linear, transB=1, output="logits")
    return build.finish("efficientnet-lite", ["n", "height", "width", 3], "logits", CLASSES)


class GraphBuilder:
    """Builds the nodes of an ONNX graph in order of computation; each method returns the name of its result."""

    def __init__(self) -> None:
        self.onnx = optional_module("onnx", "search")
        self.file = self.onnx.ModelProto(producer_name="momentseek", ir_version=IR_VERSION)
        self.kept: set[str] = set()

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node."""
        nodes = self.file.graph.node
        output = output or f"{operator}_{len(nodes)}"
        nodes.append(self.onnx.helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def keep(self, name: str, value: NDArray[Any]) -> str:
        """Add an initialiser under a name, once."""
        if name not in self.kept:  # serialised at once, so that large weights are not in memory twice
            kind = self.onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            self.file.graph.initializer.add(name=name, data_type=kind, dims=value.shape, raw_data=value.tobytes())
            self.kept.add(name)
        return name

    def constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """Add a float32 initialiser."""
        return self.keep(name, np.asarray(value, np.float32))

    def finish(self, name: str, images: list[int | str], result: str, columns: int) -> bytes:
        """Return the ONNX file: a graph from uint8 ``images`` of a shape to a table of floats."""
        helper, types, graph = self.onnx.helper, self.onnx.TensorProto, self.file.graph
        graph.name = name
        graph.input.append(helper.make_tensor_value_info("images", types.UINT8, images))
        graph.output.append(helper.make_tensor_value_info(result, types.FLOAT, ["n", columns]))
        self.file.opset_import.append(helper.make_opsetid("", OPSET))
        data: bytes = self.file.SerializeToString()
        return data


class _LiteBuilder(GraphBuilder):
    """Builds the blocks of EfficientNet-Lite."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.weights = weights
        self.zero, self.six = (self.constant(name, np.float32(n)) for name, n in (("zero", 0), ("six", 6)))

    def relu6(self, x: str) -> str:
        return self.add("Clip", x, self.zero, self.six)

    def convolution(self, x: str, name: str, norm: str, stride: int = 1) -> str:
        weight, scale = self.weights[f"{name}.weight"], self._scale(norm)
        bias = self.weights[f"{norm}.bias"] - self.weights[f"{norm}.running_mean"] * scale
        return self.add(
            "Conv",
            x,
            self.constant(f"{name}.weight", (weight * scale[:, None, None, None]).astype(np.float32)),
            self.constant(f"{name}.bias", bias.astype(np.float32)),
            auto_pad="SAME_UPPER",
            group=len(weight) if weight.shape[1] == 1 else 1,
            kernel_shape=weight.shape[2:],
            strides=[stride, stride],
        )

    def block(self, x: str, at: str, stride: int, *, residual: bool) -> str:
        """Add an inverted residual block; a stage's first one changes the shape, so it has no skip connection."""
        y = x
        if f"{at}_expand_conv.weight" in self.weights:
            y = self.relu6(self.convolution(y, f"{at}_expand_conv", f"{at}_bn0"))
        y = self.relu6(self.convolution(y, f"{at}_depthwise_conv", f"{at}_bn1", stride))
        y = self.convolution(y, f"{at}_project_conv", f"{at}_bn2")
        return self.add("Add", y, x) if residual else y

    def _scale(self, norm: str) -> NDArray[Any]:
        variance = self.weights[f"{norm}.running_var"].astype(np.float64)
        return self.weights[f"{norm}.weight"] / np.sqrt(variance + EPSILON)


# Read tensors from a file that ``torch.save`` wrote before torch 1.6, without torch and without running code in it. The
# file is a sequence of pickles (magic number, version, machine, the object, the keys of its storages) followed by each
# storage, its length as a 64-bit integer and its raw numbers. A pickle may call any function of any module; this reader
# allows a few harmless names and refuses all others.

TORCH_MAGIC = 0x1950A86A20F9469CFC6C
STORAGE_TYPES = {("torch", "FloatStorage"): "<f4", ("torch", "HalfStorage"): "<f2", ("torch", "LongStorage"): "<i8"}


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage whose numbers follow later in the file."""

    storage: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _TensorUnpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.storages: dict[str, tuple[str, int]] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: _Tensor(storage, offset, tuple(shape), tuple(strides))
        if (module, name) in STORAGE_TYPES:
            return STORAGE_TYPES[module, name]
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _storage_of_bytes
        if (module, name) == ("builtins", "set"):
            return set
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> str:
        kind, numbers, key, _, length, view = pid
        if kind != "storage" or view is not None or numbers not in STORAGE_TYPES.values():
            raise pickle.UnpicklingError(f"it has a storage of an unknown kind {kind!r}")
        self.storages[key] = (numbers, int(length))
        return str(key)


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read the named tensors of a state dict; raise an error that says what is wrong with the file."""
    try:
        with path.open("rb") as file:
            _read_head(file)
            reader = _TensorUnpickler(file)
            tensors = reader.load()
            numbers = {key: _storage(file, *reader.storages[key]) for key in _plain(file)}
        if not isinstance(tensors, Mapping):
            raise ValueError("it holds no named tensors")
        return {
            str(name): _view(tensor, numbers[tensor.storage])
            for name, tensor in tensors.items()
            if isinstance(tensor, _Tensor)
        }
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file") from None
    except Exception as e:  # a hostile pickle may raise anything
        raise MomentseekError(
            f"{path}: is no file of named tensors ({e}); install the package that carries it again"
        ) from e


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain values, sets and one torch tensor; anything else is refused."""
    try:
        with path.open("rb") as file:
            found = _plain(file)
        return _view(found, found.storage) if isinstance(found, _Tensor) else found
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file") from None
    except Exception as e:  # a hostile pickle may raise anything
        raise MomentseekError(f"{path}: is no pickle of plain values ({e}); get the file again") from e


def _read_head(file: BinaryIO) -> None:
    if _plain(file) != TORCH_MAGIC:
        raise ValueError("it does not begin as torch.save's old format does")
    _plain(file), _plain(file)  # the version of the protocol and the machine's byte order


def _storage_of_bytes(data: bytes) -> NDArray[Any]:
    """Read a storage that was pickled separately."""
    file = io.BytesIO(data)
    _read_head(file)
    reader = _TensorUnpickler(file)
    key = reader.load()
    _plain(file)  # the keys of the storages that follow: this one
    return _storage(file, *reader.storages[key])


def _plain(file: BinaryIO) -> Any:
    """Read a pickle of plain values only."""
    return _TensorUnpickler(file).load()


def _storage(file: BinaryIO, kind: str, length: int) -> NDArray[Any]:
    stored = int.from_bytes(file.read(8), "little")
    size = np.dtype(kind).itemsize
    data = file.read(length * size)
    if stored != length or len(data) != length * size:
        raise ValueError("it is cut off")
    return np.frombuffer(data, kind)


def _view(tensor: _Tensor, numbers: NDArray[Any]) -> NDArray[Any]:
    last = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True))
    values = (tensor.offset, *tensor.shape, *tensor.strides)
    if not all(isinstance(v, int) and v >= 0 for v in values) or last >= len(numbers):
        raise ValueError("a tensor reaches past its numbers")
    strides = [step * numbers.itemsize for step in tensor.strides]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, strides))
