"""Small ONNX graphs for tests, written node by node."""

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

IR_VERSION, OPSET = 8, 17


class Graph:
    """Nodes in the order of computation; ``add`` gives the name of the node's one output."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes = []
        self._constants = []
        self._inputs = []
        self._outputs = []

    def input(self, name: str, element: str, shape) -> str:
        """Add an input that callers give to the graph, and return its name."""
        self._inputs.append(self._value_info(name, element, shape))
        return name

    def output(self, name: str, element: str, shape) -> None:
        """Add an output that callers get from the graph: the name of an input or of a node's result."""
        self._outputs.append(self._value_info(name, element, shape))

    def constant(self, name: str, value) -> str:
        """Add a number or array that belongs to the graph, such as weights, and return its name."""
        self._constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes) -> str:
        """Add an operator on named values, and return the name of its result (``output``, or one of its own)."""
        output = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(onnx.helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def model(self) -> bytes:
        """The file's bytes (ModelProto)."""
        helper = onnx.helper
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, producer_name="momentseek", ir_version=IR_VERSION, opset_imports=opsets)
        data: bytes = model.SerializeToString()
        return data

    def _value_info(self, name: str, element: str, shape):
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(element))
        return onnx.helper.make_tensor_value_info(name, kind, shape)
