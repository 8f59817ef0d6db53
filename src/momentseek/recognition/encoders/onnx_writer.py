"""Writing ONNX files with nothing but the format's wire encoding.

ONNX is a Protocol Buffers message; onnx.proto3 in the ONNX repository has the field numbers that stand here. The
package ``onnx`` could do this too, for 30 MB and a second dependency on protobuf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.recognition.protobuf import bytes_field, float_field, text_field, varint_field

IR_VERSION, OPSET = 8, 17
ELEMENT_TYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9}
"""ONNX's number of each element type (``TensorProto.DataType``)."""
Attribute = float | int | str | Sequence[int]
Shape = Sequence[int | str]
"""Sizes of a tensor; a string names a size that differs from call to call."""


@dataclass
class Graph:
    """Nodes in the order of computation; ``add`` gives the name of the node's one output.

    >>> graph = Graph("double")
    >>> x = graph.input("x", "float32", ["n", 2])
    >>> graph.output(graph.add("Mul", x, graph.constant("two", np.float32(2))), "float32", ["n", 2])
    >>> graph.model()[:2]  # field 1 (ir_version) = 8
    b'\\x08\\x08'
    """

    name: str
    _nodes: list[bytes] = field(default_factory=list)
    _constants: list[bytes] = field(default_factory=list)
    _inputs: list[bytes] = field(default_factory=list)
    _outputs: list[bytes] = field(default_factory=list)

    def input(self, name: str, element: str, shape: Shape) -> str:
        """Add an input that callers give to the graph, and return its name."""
        self._inputs.append(_value_info(name, element, shape))
        return name

    def output(self, name: str, element: str, shape: Shape) -> None:
        """Add an output that callers get from the graph: the name of an input or of a node's result."""
        self._outputs.append(_value_info(name, element, shape))

    def constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """A number or array that belongs to the graph, such as weights."""
        value = np.asarray(value)
        raw = value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
        dims = b"".join(varint_field(1, n) for n in value.shape)
        self._constants.append(
            dims + varint_field(2, ELEMENT_TYPES[value.dtype.name]) + text_field(8, name) + bytes_field(9, raw)
        )
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Attribute) -> str:
        """An operator on named values; ``output`` is a name for its result."""
        output = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(
            b"".join(text_field(1, name) for name in inputs)
            + text_field(2, output)
            + text_field(3, output)
            + text_field(4, operator)
            + b"".join(bytes_field(5, _attribute(name, value)) for name, value in attributes.items())
        )
        return output

    def model(self) -> bytes:
        """The file's bytes (ModelProto)."""
        graph = (
            b"".join(bytes_field(1, node) for node in self._nodes)
            + text_field(2, self.name)
            + b"".join(bytes_field(5, constant) for constant in self._constants)
            + b"".join(bytes_field(11, value) for value in self._inputs)
            + b"".join(bytes_field(12, value) for value in self._outputs)
        )
        opset = text_field(1, "") + varint_field(2, OPSET)
        return varint_field(1, IR_VERSION) + text_field(2, "momentseek") + bytes_field(7, graph) + bytes_field(8, opset)


def _value_info(name: str, element: str, shape: Shape) -> bytes:
    sizes = b"".join(bytes_field(1, text_field(2, n) if isinstance(n, str) else varint_field(1, n)) for n in shape)
    tensor = varint_field(1, ELEMENT_TYPES[element]) + bytes_field(2, sizes)
    return text_field(1, name) + bytes_field(2, bytes_field(1, tensor))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return text_field(1, name) + float_field(2, value) + varint_field(20, 1)
    if isinstance(value, int):
        return text_field(1, name) + varint_field(3, value) + varint_field(20, 2)
    if isinstance(value, str):
        return text_field(1, name) + text_field(4, value) + varint_field(20, 3)
    return text_field(1, name) + b"".join(varint_field(8, n) for n in value) + varint_field(20, 7)
