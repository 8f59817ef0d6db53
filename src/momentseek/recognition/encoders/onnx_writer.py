"""Write an ONNX graph node by node, by the helper functions of the package ``onnx``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import optional_module

IR_VERSION, OPSET = 8, 17
Attribute = float | int | str | Sequence[int]
Shape = Sequence[int | str]
"""Sizes of a tensor; a string names a size that differs from call to call."""


class Graph:
    """Nodes in the order of computation; ``add`` gives the name of the node's one output.

    >>> graph = Graph("double")
    >>> x = graph.input("x", "float32", ["n", 2])
    >>> graph.output(graph.add("Mul", x, graph.constant("two", np.float32(2))), "float32", ["n", 2])
    >>> graph.model()[:2]  # field 1 (ir_version) = 8
    b'\\x08\\x08'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._onnx = optional_module("onnx", "offline")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, element: str, shape: Shape) -> str:
        """Add an input that callers give to the graph, and return its name."""
        self._inputs.append(self._value_info(name, element, shape))
        return name

    def output(self, name: str, element: str, shape: Shape) -> None:
        """Add an output that callers get from the graph: the name of an input or of a node's result."""
        self._outputs.append(self._value_info(name, element, shape))

    def constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """Add a number or array that belongs to the graph, such as weights, and return its name."""
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Attribute) -> str:
        """Add an operator on named values, and return the name of its result (``output``, or one of its own)."""
        output = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def model(self) -> bytes:
        """The file's bytes (ModelProto)."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, producer_name="momentseek", ir_version=IR_VERSION, opset_imports=opsets)
        data: bytes = model.SerializeToString()
        return data

    def _value_info(self, name: str, element: str, shape: Shape) -> Any:
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(element))
        return self._onnx.helper.make_tensor_value_info(name, kind, shape)
