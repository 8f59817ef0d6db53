"""The two graphs of a captioner: moments as the decoder reads them, and the next word of a caption that has begun."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.captioner import Captioner
from momentseek.models.export.graphs import relative_difference
from momentseek.models.export.nodes import Nodes
from momentseek.models.export.writing import ExportReport, write_export
from momentseek.models.layers.attention import DecoderLayer, TransformerLayer
from momentseek.models.zoo.mmt import MMT, NormProjection
from momentseek.recognition.captions.inputs import MomentParts, Vocabulary, stack_moments
from momentseek.recognition.exported.captioner import CAPTION_KIND, MOMENTS_GRAPH, NEXT_WORD_GRAPH
from momentseek.recognition.exported.manifest import MANIFEST_FORMAT, EncoderRef
from momentseek.recognition.runtime import session


def export_captioner(
    model: Captioner,
    name: str,
    out: Path,
    *,
    encoders: Mapping[str, EncoderRef] | None = None,
    clip_seconds: float = 1.5,
    trained: Mapping[str, Any] | None = None,
    force: bool = False,
) -> ExportReport:
    """Write a captioner as a folder that ``trained.captioner`` runs without torch, whole or not at all."""
    if not isinstance(model, MMT):
        raise MomentseekError(f"{name} cannot be exported yet; train mmt")
    was = model.training
    model.eval()
    try:
        graphs = {MOMENTS_GRAPH: moments_network(model), NEXT_WORD_GRAPH: next_word_network(model)}
        difference = difference_from_torch(model, graphs)
    finally:
        model.train(was)
    values = {
        "format": MANIFEST_FORMAT,
        "model": name,
        "config": dataclasses.asdict(model.config),
        "dims": {"video": model.dims.video, "vocabulary": list(model.dims.vocabulary)},
        "clip_seconds": clip_seconds,
        "encoders": {kind: dataclasses.asdict(source) for kind, source in (encoders or {}).items() if kind == "video"},
        "head": {"kind": CAPTION_KIND},
        "trained": dict(trained or {}),
    }
    return write_export(out, graphs, values, difference, force=force)


def moments_network(model: MMT) -> bytes:
    """``clips`` (moments, clips, columns), ``tokens`` and ``mask`` (moments, rows) to ``memory``."""
    nodes = Nodes("moments")
    graph, hidden = nodes.graph, model.config.hidden
    clips = graph.input("clips", "float32", ["moments", "clips", model.dims.video])
    tokens = graph.input("tokens", "int64", ["moments", "rows"])
    mask = graph.input("mask", "bool", ["moments", "rows"])
    seen = nodes.add("Gather", nodes.add("Shape", clips), nodes.integers(1), axis=0)
    rows = nodes.add("Gather", nodes.add("Shape", tokens), nodes.integers(1), axis=0)
    read = nodes.add("Sub", rows, seen)
    x = _embed(nodes, model, tokens)
    if model.video is not None:
        nothing = model.video(torch.zeros(1, 1, model.dims.video)).detach()
        size = nodes.add("Concat", nodes.add("Gather", nodes.add("Shape", tokens), nodes.integers(0), axis=0), read,
                         nodes.integers(hidden), axis=0)  # fmt: skip
        words = nodes.add("Expand", nodes.constant(nothing), size)
        x = nodes.add("Add", x, nodes.add("Concat", _project(nodes, model.video, clips), words, axis=1))
    first = model.config.max_clips + 2
    since, kinds = nodes.integers(first), model.kind.weight
    parts = [
        nodes.add("Add", _places(nodes, model, nodes.integers(0), seen), nodes.constant(kinds[0])),
        nodes.add("Add", _places(nodes, model, since, nodes.add("Add", since, read)), nodes.constant(kinds[1])),
    ]
    x = nodes.norm(model.norm, nodes.add("Add", x, nodes.add("Concat", *parts, axis=0)))
    for layer in model.encoder:
        assert isinstance(layer, TransformerLayer)
        x = nodes.block(layer.attend, x, x, mask)
        wide = nodes.gelu(nodes.linear(layer.wide, x))
        x = nodes.norm(layer.norm, nodes.add("Add", x, nodes.linear(layer.narrow, wide)))
    graph.output(nodes.graph.add("Identity", x, output="memory"), "float32", ["moments", "rows", hidden])
    return graph.model()


def next_word_network(model: MMT) -> bytes:
    """``memory`` (n, rows, hidden), ``mask`` (n, rows), ``begun`` (n, words) to ``logits`` (n, vocabulary)."""
    nodes = Nodes("next_word")
    graph, hidden = nodes.graph, model.config.hidden
    memory = graph.input("memory", "float32", ["captions", "rows", hidden])
    mask = graph.input("mask", "bool", ["captions", "rows"])
    begun = graph.input("begun", "int64", ["captions", "words"])
    length = nodes.add("Gather", nodes.add("Shape", begun), nodes.integers(1), axis=0)
    count = nodes.add("Squeeze", length)
    at = nodes.add("Range", nodes.constant(0, "int64"), count, nodes.constant(1, "int64"))
    earlier = nodes.add("GreaterOrEqual", nodes.add("Unsqueeze", at, nodes.integers(1)),
                        nodes.add("Unsqueeze", at, nodes.integers(0)))  # fmt: skip
    earlier = nodes.add("Unsqueeze", earlier, nodes.integers(0))
    x = nodes.add("Add", _embed(nodes, model, begun), _places(nodes, model, nodes.integers(0), length))
    for layer in model.decoder:
        assert isinstance(layer, DecoderLayer)
        x = nodes.block(layer.before, x, x, earlier, each=True)
        x = nodes.block(layer.across, x, memory, mask)
        wide = x if layer.wide is None else nodes.gelu(nodes.linear(layer.wide, x))
        x = nodes.norm(layer.norm, nodes.add("Add", x, nodes.linear(layer.narrow, wide)))
    last = nodes.add("Gather", x, nodes.constant(-1, "int64"), axis=1)
    mixed = nodes.norm(model.out_norm, nodes.gelu(nodes.linear(model.out, last)))
    logits = nodes.linear(model.choose, mixed)
    graph.output(graph.add("Identity", logits, output="logits"), "float32", ["captions", len(model.vocabulary)])
    return graph.model()


@torch.no_grad()
def difference_from_torch(model: MMT, graphs: Mapping[str, bytes]) -> float:
    """The largest difference between the graphs and torch in what decides the next word, as a share of the largest."""
    rng = np.random.default_rng(0)
    known: Vocabulary = model.vocabulary
    sees, reads = model.config.preparation.sees, model.config.preparation.reads
    parts = [
        MomentParts(
            rng.standard_normal((count if sees else 0, model.dims.video), np.float32),
            tuple(known.words[i] for i in rng.integers(len(known), size=count)) if reads else (),
        )
        for count in (1, 3, min(6, model.config.max_clips, model.config.max_words))
    ]
    inputs = stack_moments(parts, known, model.dims.video)
    arrays = {"clips": inputs.clips, "tokens": inputs.tokens, "mask": inputs.mask}
    begun = rng.integers(len(known), size=(len(parts), min(4, model.config.max_caption)))
    (memory,) = session(graphs[MOMENTS_GRAPH]).run(["memory"], arrays)
    given = {"memory": memory, "mask": inputs.mask, "begun": begun}
    (logits,) = session(graphs[NEXT_WORD_GRAPH]).run(["logits"], given)
    clips, tokens, mask = (torch.from_numpy(array) for array in arrays.values())
    torchs = model.logits(model.encode(clips, tokens, mask), mask, torch.from_numpy(begun))[:, -1]
    return relative_difference(logits, torchs.numpy())


def _embed(nodes: Nodes, model: MMT, tokens: str) -> str:
    return _project(nodes, model.words, nodes.add("Gather", nodes.constant(model.embedding.weight), tokens, axis=0))


def _project(nodes: Nodes, layer: NormProjection, x: str) -> str:
    return nodes.norm(layer.norm, nodes.projection(layer.project, x))


def _places(nodes: Nodes, model: MMT, first: str, last: str) -> str:
    return nodes.add("Slice", nodes.constant(model.places), first, last, nodes.integers(0))
