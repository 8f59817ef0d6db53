"""A model's folder with two tiny graphs, made by our own writer: no torch."""

import json

import numpy as np
from tests.encoders.dual_encoder.small import clip_tokenizer

from momentseek.encoders.onnx_writer import Graph

RANDOM = np.random.default_rng(8)


def vision(dim=6, batch="n", output="image_embeds", pixels="pixel_values"):
    """The mean colour, through a matrix."""
    graph = Graph("vision")
    x = graph.input(pixels, "float32", [batch, 3, 8, 8])
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x))
    matrix = np.random.default_rng(1).normal(size=(3, dim)).astype(np.float32)
    graph.add("Gemm", x, graph.constant("w", matrix), output=output)
    graph.output(output, "float32", [batch, dim])
    return graph.model()


def text(dim=6, batch="n", tokens="t", output="text_embeds", zero=False):
    """The mean token number, through a matrix."""
    graph = Graph("text")
    x = graph.add("Cast", graph.input("input_ids", "int64", [batch, tokens]), to=1)
    x = graph.add("ReduceMean", x, axes=[1], keepdims=1)
    matrix = np.random.default_rng(2).normal(size=(1, dim)).astype(np.float32) * (not zero)
    graph.add("Gemm", x, graph.constant("w", matrix), output=output)
    graph.output(output, "float32", [batch, dim])
    return graph.model()


def write_model(folder, **changes):
    """Files of a CLIP model; ``changes`` replace or (None) leave out a file, by path."""
    folder.mkdir(exist_ok=True)
    files = {
        "config.json": json.dumps({"model_type": "clip", "text_config": {"max_position_embeddings": 12}}).encode(),
        "preprocessor_config.json": json.dumps({"size": 8, "crop_size": 8}).encode(),
        "tokenizer.json": clip_tokenizer().to_str().encode(),
        "tokenizer_config.json": json.dumps({"pad_token": "<|endoftext|>"}).encode(),
        "onnx/vision_model.onnx": vision(),
        "onnx/text_model.onnx": text(),
        **changes,
    }
    for name, data in files.items():
        if data is not None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
    return folder
