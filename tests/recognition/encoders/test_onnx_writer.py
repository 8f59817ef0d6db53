import numpy as np
import pytest

from momentseek.recognition.encoders.onnx_writer import Graph
from momentseek.recognition.runtime import session


def affine():
    graph = Graph("affine")
    x = graph.input("x", "float32", ["n", 3])
    weight = graph.constant("w", np.arange(6, dtype=np.float32).reshape(2, 3))
    y = graph.add("Gemm", x, weight, graph.constant("b", np.array([1, -1], np.float32)), transB=1, alpha=0.5)
    graph.add("Clip", y, graph.constant("low", np.float32(0)), output="y")
    graph.output("y", "float32", ["n", 2])
    return graph.model()


def test_the_runtime_computes_what_was_written():
    pytest.importorskip("onnxruntime")
    x = np.array([[1, 2, 3], [-4, 0, 1]], np.float32)
    expected = np.maximum(x @ np.arange(6).reshape(2, 3).T * 0.5 + [1, -1], 0)
    np.testing.assert_allclose(session(affine()).run(["y"], {"x": x})[0], expected)


def test_the_official_checker_agrees():
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(affine())
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Gemm", "Clip"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(model.graph.initializer[1]), [1, -1])
