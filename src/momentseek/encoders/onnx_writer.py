"""Writing ONNX files with nothing but the format's wire encoding.

ONNX is a Protocol Buffers message (onnx.proto3 in the ONNX repository has the field numbers, the protobuf manual's
"Encoding" page the bytes): a sequence of fields, each a key ``number << 3 | wire type`` and its value, where wire
type 0 is a varint, 2 a length and that many bytes, 5 four bytes. The package ``onnx`` could do this too, for 20 MB
and a second dependency on protobuf.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION, OPSET = 8, 17
ELEMENT = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9}
"""TensorProto.DataType."""
Attribute = float | int | str | Sequence[int]
Shape = Sequence[int | str]
"""A string is a size that differs from call to call."""


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
        """What callers give."""
        self._inputs.append(_value_info(name, element, shape))
        return name

    def output(self, name: str, element: str, shape: Shape) -> None:
        """What callers get: an input's or node's name."""
        self._outputs.append(_value_info(name, element, shape))

    def constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """A number or array that belongs to the graph, such as weights."""
        value = np.asarray(value)
        raw = value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
        dims = b"".join(_number(1, n) for n in value.shape)
        self._constants.append(dims + _number(2, ELEMENT[value.dtype.name]) + _text(8, name) + _bytes(9, raw))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Attribute) -> str:
        """An operator on named values; ``output`` is a name for its result."""
        output = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(
            b"".join(_text(1, name) for name in inputs)
            + _text(2, output)
            + _text(3, output)
            + _text(4, operator)
            + b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
        )
        return output

    def model(self) -> bytes:
        """The file's bytes (ModelProto)."""
        graph = (
            b"".join(_bytes(1, node) for node in self._nodes)
            + _text(2, self.name)
            + b"".join(_bytes(5, constant) for constant in self._constants)
            + b"".join(_bytes(11, value) for value in self._inputs)
            + b"".join(_bytes(12, value) for value in self._outputs)
        )
        opset = _text(1, "") + _number(2, OPSET)
        return _number(1, IR_VERSION) + _text(2, "momentseek") + _bytes(7, graph) + _bytes(8, opset)


def _value_info(name: str, element: str, shape: Shape) -> bytes:
    sizes = b"".join(_bytes(1, _text(2, n) if isinstance(n, str) else _number(1, n)) for n in shape)
    tensor = _number(1, ELEMENT[element]) + _bytes(2, sizes)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _key(2, 5) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    if isinstance(value, str):
        return _text(1, name) + _text(4, value) + _number(20, 3)
    return _text(1, name) + b"".join(_number(8, n) for n in value) + _number(20, 7)


def _number(number: int, value: int) -> bytes:
    return _key(number, 0) + _varint(value)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _varint(len(value)) + value


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, low ones first; the top bit says that more follow; a negative number is its 64-bit complement.

    >>> _varint(300).hex(), len(_varint(-1))
    ('ac02', 10)
    """
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
