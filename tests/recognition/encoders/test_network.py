"""The graph, compared with plain numpy on random weights and with torch on the real ones."""

import numpy as np
import onnx
import pytest

from momentseek.recognition.encoders.network import DEVIATION, EPSILON, MEAN, build_network
from momentseek.recognition.runtime import session

pytest.importorskip("onnxruntime")
STAGES = ((1, 1), (2, 2))
CHANNELS = 4, 4, 6
RANDOM = np.random.default_rng(5)


def norm(name, channels):
    return {
        f"{name}.weight": RANDOM.uniform(0.5, 2, channels).astype(np.float32),
        f"{name}.bias": RANDOM.normal(0, 0.3, channels).astype(np.float32),
        f"{name}.running_mean": RANDOM.normal(0, 0.3, channels).astype(np.float32),
        f"{name}.running_var": RANDOM.uniform(0.5, 2, channels).astype(np.float32),
    }


def weight(*shape):
    return RANDOM.normal(0, 0.5, shape).astype(np.float32)


def block(at, before, after, kernel, expand):
    inner = before * expand
    found = {f"{at}_depthwise_conv.weight": weight(inner, 1, kernel, kernel), **norm(f"{at}_bn1", inner)}
    found |= {f"{at}_project_conv.weight": weight(after, inner, 1, 1), **norm(f"{at}_bn2", after)}
    if expand > 1:
        found |= {f"{at}_expand_conv.weight": weight(inner, before, 1, 1), **norm(f"{at}_bn0", inner)}
    return found


def small_weights():
    stem, first, second = CHANNELS
    found = {"_conv_stem.weight": weight(stem, 3, 3, 3), **norm("_bn0", stem)}
    found |= block("_blocks.0.", stem, first, 3, 1)
    found |= block("_blocks.1.", first, second, 5, 6)
    found |= block("_blocks.2.", second, second, 5, 6)
    found |= {"_conv_head.weight": weight(8, second, 1, 1), **norm("_bn1", 8)}
    return found | {"_fc.weight": weight(1000, 8), "_fc.bias": weight(1000)}


def convolution(x, kernel, stride):
    """Convolve by definition, with TensorFlow's SAME padding: the remainder goes to the right and bottom."""
    size, depthwise = kernel.shape[2], kernel.shape[1] == 1
    out = -(-x.shape[1] // stride), -(-x.shape[2] // stride)
    pads = [max((n - 1) * stride + size - m, 0) for n, m in zip(out, x.shape[1:], strict=True)]
    x = np.pad(x, [(0, 0), *((p // 2, p - p // 2) for p in pads)])
    y = np.zeros((len(kernel), *out))
    for i in range(out[0]):
        for j in range(out[1]):
            patch = x[:, i * stride : i * stride + size, j * stride : j * stride + size]
            y[:, i, j] = (patch * kernel[:, 0]).sum((1, 2)) if depthwise else np.tensordot(kernel, patch, 3)
    return y


def by_hand(weights, image):
    def step(x, name, bn, stride=1):
        y = convolution(x, weights[f"{name}.weight"], stride)
        mean, variance = weights[f"{bn}.running_mean"], weights[f"{bn}.running_var"]
        scale = (weights[f"{bn}.weight"] / np.sqrt(variance + EPSILON))[:, None, None]
        return (y - mean[:, None, None]) * scale + weights[f"{bn}.bias"][:, None, None]

    def relu6(x):
        return np.clip(x, 0, 6)

    x = ((image.astype(float) - MEAN) / DEVIATION).transpose(2, 0, 1)
    x = relu6(step(x, "_conv_stem", "_bn0", 2))
    for at, (stride, residual) in enumerate([(1, False), (2, False), (1, True)]):
        y, name = x, f"_blocks.{at}."
        if f"{name}_expand_conv.weight" in weights:
            y = relu6(step(y, f"{name}_expand_conv", f"{name}_bn0"))
        y = relu6(step(y, f"{name}_depthwise_conv", f"{name}_bn1", stride))
        y = step(y, f"{name}_project_conv", f"{name}_bn2")
        x = x + y if residual else y
    x = relu6(step(x, "_conv_head", "_bn1")).mean((1, 2))
    return weights["_fc.weight"] @ x + weights["_fc.bias"]


@pytest.mark.parametrize("size", [(16, 16), (15, 22)])
def test_graph_equals_the_reference(size):
    weights = small_weights()
    images = RANDOM.integers(0, 256, (2, *size, 3)).astype(np.uint8)
    network = build_network(weights, STAGES)
    onnx.checker.check_model(onnx.load_from_string(network), full_check=True)
    (found,) = session(network).run(["logits"], {"images": images})
    np.testing.assert_allclose(found, [by_hand(weights, image) for image in images], atol=2e-4)
