"""The two graphs of a model that keeps vectors of clips: clips in their context, and queries."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from momentseek.models.batch import Clips, Words
from momentseek.models.export.graphs import (
    COMPARED_QUERIES,
    COMPARED_VIDEOS,
    ExportableKind,
    ModelGraphs,
    random_words,
    relative_difference,
)
from momentseek.models.export.nodes import Nodes
from momentseek.models.layers.projection import Projection
from momentseek.models.zoo.xml import XML
from momentseek.recognition.encoders.onnx_writer import Shape
from momentseek.recognition.exported.manifest import CLIPS_GRAPH, WORDS_GRAPH
from momentseek.recognition.runtime import session


def draw(model: XML, settings: Mapping[str, Any]) -> ModelGraphs:
    """Both graphs, and the filters for the manifest. Padding reaches no exported score, whatever the model allows."""
    if not model.config.masked:
        model = _masked_twin(model)
    graphs = {CLIPS_GRAPH: clips_network(model), WORDS_GRAPH: words_network(model)}
    filters = model.boundaries_head.filters.weight.detach().cpu().numpy()[:, 0]
    width = model.config.hidden * len(model.modalities)
    head = {
        "modalities": len(model.modalities), "match": width, "spans": width,
        "start": filters[0].tolist(), "end": filters[1].tolist(), "end_time": settings["end_time"],
    }  # fmt: skip
    return ModelGraphs(graphs, tuple(model.modalities), head, difference_from_torch(model, graphs))


def clips_network(model: XML) -> bytes:
    """``video``, ``subtitle`` (videos, clips, columns), ``mask`` (videos, clips) to ``match`` and ``spans``.

    ``match`` is the modalities' unit vectors side by side, divided by the root of their number; ``spans`` the last
    layers side by side. What stands in padding means nothing.
    """
    nodes, columns = Nodes("clips"), ["videos", "clips"]
    graph, parts = nodes.graph, model.modalities
    inputs = {part: graph.input(part, "float32", [*columns, width]) for part, width in widths(model).items()}
    mask = graph.input("mask", "bool", columns)
    stacks: dict[str, list[str]] = {}
    for part in parts:
        placed = nodes.positions(model.clip_positions, nodes.projection(model.clip_projections[part], inputs[part]))
        stacks[part] = nodes.stack(model.clip_first[part], placed, mask)
    first = {part: layers[0] for part, layers in stacks.items()}
    for part, x in first.items():
        if len(parts) == 2:
            other = next(o for o in parts if o != part)
            x = nodes.block(model.cross[part], x, first[other], mask)
        stacks[part] = stacks[part] + nodes.stack(model.clip_later[part], x, mask)
    match = [nodes.unit(stacks[part][model.match_layer]) for part in parts]
    spans = [stacks[part][-1] for part in parts]
    shape: Shape = [*columns, model.config.hidden * len(parts)]
    _outputs(nodes, _join(nodes, match, 1 / math.sqrt(len(parts))), _join(nodes, spans, 1.0), shape)
    return graph.model()


def words_network(model: XML) -> bytes:
    """``words`` (queries, words, columns), ``mask`` (queries, words) to ``match`` and ``spans``.

    The dot product of a query's and a clip's ``match`` is the mean of the modalities' cosines, that of their ``spans``
    the model's curve.
    """
    nodes = Nodes("words")
    graph, parts = nodes.graph, model.modalities
    words = graph.input("words", "float32", ["queries", "words", model.dims.query])
    mask = graph.input("mask", "bool", ["queries", "words"])
    placed = nodes.positions(model.word_positions, nodes.projection(model.word_projection, words))
    pooled = nodes.pooling(model.pooling, nodes.stack(model.word_encoders, placed, mask)[-1], mask, len(parts))
    match = [nodes.unit(q) for q in pooled]
    spans = [nodes.linear(model.span_queries[part], q) for part, q in zip(parts, pooled, strict=True)]
    shape: Shape = ["queries", model.config.hidden * len(parts)]
    _outputs(nodes, _join(nodes, match, 1 / math.sqrt(len(parts))), _join(nodes, spans, 1 / len(parts)), shape)
    return graph.model()


def widths(model: XML) -> dict[str, int]:
    """Columns of each modality as the graph takes them, endpoints included."""
    found = {}
    for part in model.modalities:
        projection = model.clip_projections[part]
        assert isinstance(projection, Projection)
        found[part] = projection.linear.in_features
    return found


def _masked_twin(model: XML) -> XML:
    """The same weights in a model that keeps padding out."""
    twin = type(model)(dataclasses.replace(model.config, masked=True), model.dims).eval()
    twin.load_state_dict(model.state_dict())
    return twin


def _join(nodes: Nodes, parts: list[str], scale: float) -> str:
    joined = parts[0] if len(parts) == 1 else nodes.add("Concat", *parts, axis=-1)
    return joined if scale == 1 else nodes.add("Mul", joined, nodes.constant(np.float32(scale)))


def _outputs(nodes: Nodes, match: str, spans: str, shape: Shape) -> None:
    for name, value in (("match", match), ("spans", spans)):
        nodes.graph.output(nodes.graph.add("Identity", value, output=name), "float32", shape)


@torch.no_grad()
def difference_from_torch(model: XML, graphs: Mapping[str, bytes]) -> float:
    """The largest difference between the graphs and torch in curves and video scores, as a share of the largest."""
    rng = np.random.default_rng(0)
    most = model.config.max_clips
    clips: dict[str, NDArray[Any]] = {
        part: rng.standard_normal((COMPARED_VIDEOS, most, width), np.float32) for part, width in widths(model).items()
    }
    clips["mask"] = np.arange(most) < np.array([[most], [max(1, most // 3)]])
    words = random_words(model.config.max_words, model.dims.query)
    match, spans = session(graphs[CLIPS_GRAPH]).run(["match", "spans"], clips)
    query, asked = session(graphs[WORDS_GRAPH]).run(["match", "spans"], words)
    tensors = {part: torch.from_numpy(rows) for part, rows in clips.items()}
    videos = model.encode_clips(Clips(tensors.get("video"), tensors.get("subtitle"), tensors["mask"]))
    queries = model.encode_words(Words(torch.from_numpy(words["words"]), torch.from_numpy(words["mask"])))
    worst = 0.0
    for q in range(COMPARED_QUERIES):
        row = {key: value[[q] * COMPARED_VIDEOS] for key, value in queries.items()}
        worst = max(worst, relative_difference(spans @ asked[q], model.curve(row, videos).numpy(), clips["mask"]))
    sides = [part.reshape(*part.shape[:-1], len(model.modalities), -1) for part in (match, query)]
    cosines = np.einsum("vlmd,qmd->qvml", *sides)
    best = np.where(clips["mask"][None, :, None], cosines, -np.inf).max(-1).sum(-1)
    return max(worst, relative_difference(best, model.match(queries, videos).numpy()))


CLIPS_KIND = ExportableKind(XML, ("xml", "reloclnet"), draw)
