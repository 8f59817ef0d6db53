"""A model's folder with two tiny graphs, made without torch."""

import json

import numpy as np
from tests.recognition.encoders.onnx_graph import Graph
from tests.recognition.encoders.small import clip_tokenizer, gemma_tokenizer

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


def siglip2_vision(dim=6, side=8, rounds=False, swaps=False):
    """As SigLIP 2's is published: ``pixel_values`` to ``last_hidden_state`` and ``pooler_output``, the mean colour.

    ``rounds`` rounds by the largest value of the batch, as dynamic 8-bit graphs do; ``swaps`` takes red for blue.
    """
    graph = Graph("vision")
    x = graph.input("pixel_values", "float32", ["batch_size", 3, "height", "width"])
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x))
    if rounds:
        largest = graph.add("ReduceMax", graph.add("Abs", x), keepdims=0)
        x = graph.add("Round", graph.add("Mul", graph.add("Div", x, largest), graph.constant("levels", np.float32(5))))
    matrix = np.eye(3, dim, dtype=np.float32)[::-1] if swaps else np.eye(3, dim, dtype=np.float32)
    graph.add("Gemm", x, graph.constant("w", np.ascontiguousarray(matrix)), output="pooler_output")
    graph.add("Unsqueeze", "pooler_output", graph.constant("middle", np.array([1])), output="last_hidden_state")
    graph.output("last_hidden_state", "float32", ["batch_size", 1, dim])
    graph.output("pooler_output", "float32", ["batch_size", dim])
    return graph.model()


def siglip2_text(dim=6):
    """As SigLIP 2's is published: ``input_ids``, no mask, to ``last_hidden_state`` and ``pooler_output``."""
    table = np.full((20, dim), 0.01, np.float32)
    for at, name in enumerate(("red", "green", "blue")):
        table[gemma_tokenizer().token_to_id(name), at] = 100
    graph = Graph("text")
    ids = graph.input("input_ids", "int64", ["batch_size", "sequence_length"])
    graph.add("Gather", graph.constant("table", table), ids, output="last_hidden_state")
    graph.add("ReduceMean", "last_hidden_state", axes=[1], keepdims=0, output="pooler_output")
    graph.output("last_hidden_state", "float32", ["batch_size", "sequence_length", dim])
    graph.output("pooler_output", "float32", ["batch_size", dim])
    return graph.model()


def siglip2_files(**changes):
    """The files of a small SigLIP 2, by path, as the hub has them; it knows three colours."""
    image = {"do_resize": True, "size": {"height": 8, "width": 8}, "resample": 2, "image_mean": [0.5] * 3}
    return {
        "onnx/vision_model.onnx": siglip2_vision(),
        "onnx/text_model_fp16.onnx": siglip2_text(),
        "tokenizer.json": gemma_tokenizer().to_str().encode(),
        "config.json": json.dumps({"model_type": "siglip"}).encode(),
        "preprocessor_config.json": json.dumps(image).encode(),
        "tokenizer_config.json": json.dumps({"padding_side": "left", "do_lower_case": False}).encode(),
        **changes,
    }


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
