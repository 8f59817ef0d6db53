"""The two graphs of a model that keeps vectors of moments (MMN, CroCs): candidates of a video, and queries.

A moment's and a query's vector for matching and for overlap, each of length 1, stand side by side divided by the root
of two: one vector of length 1, whose product with a query's is the mean of both cosines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from momentseek.models.batch import Clips, Words
from momentseek.models.export.graphs import (
    COMPARED_VIDEOS,
    ExportableKind,
    ModelGraphs,
    random_words,
    relative_difference,
)
from momentseek.models.export.nodes import Nodes, max_over, neighbours
from momentseek.models.layers.projection import clip_width
from momentseek.models.zoo.mmn import OVERLAP_SHARPNESS, Mmn
from momentseek.recognition.encoders.onnx_writer import Shape
from momentseek.recognition.exported.manifest import CLIPS_GRAPH, WORDS_GRAPH
from momentseek.recognition.runtime import session


def draw(model: Mmn, settings: Mapping[str, Any]) -> ModelGraphs:
    """Both graphs, and what turns two cosines into a score.

    In clips of the data, ``whole`` is how many are stretched to the model's at most; longer videos are cut into
    windows of ``window``.
    """
    graphs = {CLIPS_GRAPH: moments_network(model), WORDS_GRAPH: words_network(model)}
    config, seconds = model.config, settings["clip_seconds"]
    asked = settings["window"], settings.get("cut")
    whole, window = (None if s is None else max(1, math.ceil(s / seconds - 1e-9)) for s in asked)
    whole = whole or config.max_clips
    window = min(window or whole, whole)
    head = {
        "kind": "map", "match": config.space, "spans": 2 * config.space, "window": window, "whole": whole,
        "power": config.power, "sharpness": OVERLAP_SHARPNESS, "end_time": settings["end_time"],
        "cells": [model.cells.start.tolist(), model.cells.length.tolist()],
    }  # fmt: skip
    return ModelGraphs(graphs, tuple(model.clips.modalities), head, difference_from_torch(model, graphs))


def moments_network(model: Mmn) -> bytes:
    """``video``, ``subtitle`` (videos, clips, columns) to ``moments`` (videos, cells, columns)."""
    nodes, config = Nodes("moments"), model.config
    inputs = {
        part: nodes.graph.input(part, "float32", ["videos", config.preparation.rows, width])
        for part, width in widths(model).items()
    }
    clips = nodes.map_clips(model.clips, [inputs[m] for m in model.clips.modalities])
    moments = neighbours(nodes, model.neighbours, max_over(nodes, clips, model.cells), model.cells)
    shape: Shape = ["videos", len(model.cells), 2 * config.space]
    nodes.graph.output(_pair(nodes, moments, model.moment_match, model.moment_overlap, "moments"), "float32", shape)
    return nodes.graph.model()


def words_network(model: Mmn) -> bytes:
    """``words`` (queries, words, columns), ``mask`` (queries, words) to ``spans`` (queries, columns)."""
    nodes = Nodes("words")
    words = nodes.graph.input("words", "float32", ["queries", "words", model.dims.query])
    mask = nodes.graph.input("mask", "bool", ["queries", "words"])
    pooled = nodes.mean(words, mask) if model.sentence is None else nodes.sentence(model.sentence, words, mask)[0]
    query = nodes.norm(model.text_norm, pooled)
    shape: Shape = ["queries", 2 * model.config.space]
    nodes.graph.output(_pair(nodes, query, model.text_match, model.text_overlap, "spans"), "float32", shape)
    return nodes.graph.model()


def widths(model: Mmn) -> dict[str, int]:
    """Columns of each modality as the graph takes them, endpoints included."""
    return {part: clip_width(model.dims, model.config, part) for part in model.clips.modalities}


def _pair(nodes: Nodes, x: str, match: nn.Module, overlap: nn.Module, name: str) -> str:
    sides = (nodes.unit(nodes.linear(layer, x)) for layer in (match, overlap))
    joined = nodes.add("Concat", *sides, axis=-1)
    return nodes.graph.add("Mul", joined, nodes.constant(np.float32(math.sqrt(0.5))), output=name)


@torch.no_grad()
def difference_from_torch(model: Mmn, graphs: Mapping[str, bytes]) -> float:
    """The largest difference between the graphs and torch in the scores of moments, as a share of the largest."""
    rng, config = np.random.default_rng(0), model.config
    clips: dict[str, NDArray[Any]] = {
        part: rng.standard_normal((COMPARED_VIDEOS, config.preparation.rows, width), np.float32)
        for part, width in widths(model).items()
    }
    words = random_words(config.max_words, model.dims.query)
    (moments,) = session(graphs[CLIPS_GRAPH]).run(["moments"], clips)
    (asked,) = session(graphs[WORDS_GRAPH]).run(["spans"], words)
    tensors = {part: torch.from_numpy(rows) for part, rows in clips.items()}
    mask = torch.ones(COMPARED_VIDEOS, config.preparation.rows, dtype=torch.bool)
    videos = model.encode_clips(Clips(tensors.get("video"), tensors.get("subtitle"), mask))
    queries = model.encode_words(Words(torch.from_numpy(words["words"]), torch.from_numpy(words["mask"])))
    wanted = [torch.einsum("qd,vcd->qvc", queries[s], videos[s]) for s in ("match", "overlap")]
    sides = [2 * np.einsum("qd,vcd->qvc", a, b) for a, b in zip(*(_sides(x) for x in (asked, moments)), strict=True)]
    scores = model.log_score(*(torch.from_numpy(side) for side in sides)).numpy()
    worst = max(relative_difference(ours, theirs.numpy()) for ours, theirs in zip(sides, wanted, strict=True))
    return max(worst, relative_difference(scores, model.log_score(*wanted).numpy()))


def _sides(rows: NDArray[Any]) -> list[NDArray[Any]]:
    return np.split(rows, 2, axis=-1)


MOMENT_MAP_KIND = ExportableKind(Mmn, ("mmn", "crocs", "g2l"), draw)
