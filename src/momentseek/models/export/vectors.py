"""Export models that encode videos as a library's vectors: one graph for videos, one for queries.

XML, ReLoCLNet and Slate have vectors of clips; MMN, CroCs and G2L have vectors of candidate moments.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Clips, Words
from momentseek.models.export.graphs import (
    ExportableKind,
    ModelGraphs,
    PartOfModel,
    difference_from_torch,
    random_rows,
    trace,
)
from momentseek.models.layers.projection import clip_width
from momentseek.models.model import CorpusModel
from momentseek.models.zoo.mmn import OVERLAP_SHARPNESS, Mmn
from momentseek.models.zoo.slate import POOLINGS, Slate
from momentseek.models.zoo.xml import XML
from momentseek.recognition.exported.manifest import CLIPS_GRAPH, WORDS_GRAPH


class ClipVectors(PartOfModel):
    """XML's clips: the modalities' unit vectors for ``match``, joined and divided by the root of their number.

    The second output joins the last layers, for ``spans``.
    """

    model: XML

    def forward(self, mask: Tensor, *parts: Tensor) -> tuple[Tensor, Tensor]:
        """(videos, clips), each modality's (videos, clips, columns) -> ``match``, ``spans``, undefined in padding."""
        names = self.model.modalities
        stacks = self.model.clip_stack(_clips(names, parts, mask))
        match = [normalize(stacks[name][self.model.match_layer], dim=-1) for name in names]
        return torch.cat(match, -1) / math.sqrt(len(names)), torch.cat([stacks[name][-1] for name in names], -1)


class QueryVectors(PartOfModel):
    """XML's queries.

    The dot product of a query's and a clip's ``match`` is the mean of the modalities' cosines. That of their ``spans``
    is the model's curve.
    """

    model: XML

    def forward(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(queries, words, columns), (queries, words) -> ``match`` and ``spans``."""
        names, found = self.model.modalities, self.model.encode_words(Words(words, mask))
        match, spans = (torch.cat([found[name + end] for name in names], -1) for end in ("", "_span"))
        return match / math.sqrt(len(names)), spans / len(names)


class MomentVectors(PartOfModel):
    """MMN's candidate moments: the vectors of both spaces joined, with length 1 together.

    The dot product with a query's vector is the mean of both cosines.
    """

    model: Mmn

    def forward(self, *parts: Tensor) -> Tensor:
        """Each modality's (videos, clips, columns) -> (videos, cells, columns)."""
        mask = torch.ones(parts[0].shape[:2], dtype=torch.bool)
        found = self.model.encode_clips(_clips(self.model.clips.modalities, parts, mask))
        return torch.cat([found["match"], found["overlap"]], -1) * math.sqrt(0.5)


class MomentQueryVectors(PartOfModel):
    """MMN's queries: the vectors of both spaces joined, as in ``MomentVectors``."""

    model: Mmn

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """(queries, words, columns), (queries, words) -> (queries, columns)."""
        found = self.model.encode_words(Words(words, mask))
        return torch.cat([found["match"], found["overlap"]], -1) * math.sqrt(0.5)


class SlateClips(PartOfModel):
    """Slate's clips as unit vectors, without padding."""

    model: Slate

    def forward(self, *parts: Tensor) -> Tensor:
        """Each modality's (videos, clips, columns) -> (videos, clips, columns)."""
        mask = torch.ones(parts[0].shape[:2], dtype=torch.bool)
        found: Tensor = self.model.encode_clips(_clips(self.model.modalities, parts, mask))["clips"]
        return found


class SlateQueries(PartOfModel):
    """Slate's queries: the vectors for what, start and end and the scores of lengths, as one row."""

    model: Slate

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """(queries, words, columns), (queries, words) -> (queries, columns)."""
        found = self.model.encode_words(Words(words, mask))
        return torch.cat([found[name] for name in (*POOLINGS, "lengths")], -1)


def draw_slate(model: Slate, settings: Mapping[str, Any]) -> ModelGraphs:
    """Trace both graphs of Slate; the head includes how many neighbours a clip's vector depends on (``halo``)."""
    config, rng = model.config, torch.Generator().manual_seed(0)
    if config.endpoints:
        raise MomentseekError(
            "slate: endpoints=true makes clips depend on their place in the video, and a library encodes long videos "
            "in parts; train it without"
        )
    if config.per_video:
        raise MomentseekError(
            "slate: per_video=true makes scores that are comparable only within a video, so a library cannot use them; "
            "train it without"
        )
    halo = config.blocks * (config.kernel // 2) + config.context
    samples = [
        {name: torch.randn(1, clips, width, generator=rng) for name, width in _widths(model).items()}
        for clips in (7, 2 * halo + 9, 1)
    ]
    axes = dict.fromkeys((*samples[0], "match"), ("videos", "clips"))
    clips = trace(SlateClips(model), samples[1], ("match",), axes)
    words, worst = _trace_queries(SlateQueries(model), model, ("spans",))
    worst = max(worst, difference_from_torch(SlateClips(model), clips, samples))
    columns = config.space or config.hidden
    head = {
        "kind": "spans", "match": columns, "spans": 3 * columns + config.longest - config.shortest + 1, "halo": halo,
        "scales": model.scale.detach().abs().tolist(), "end_time": settings["end_time"],
    }  # fmt: skip
    return ModelGraphs({CLIPS_GRAPH: clips, WORDS_GRAPH: words}, tuple(model.modalities), head, worst)


def draw_clips(model: XML, settings: Mapping[str, Any]) -> ModelGraphs:
    """Trace both graphs of XML, with the filters for the manifest; exported scores never depend on padding."""
    if not model.config.masked:
        model = _masked_twin(model)
    rng, most = torch.Generator().manual_seed(0), model.config.max_clips
    samples = []
    for counts in ((min(7, most), min(3, most)), (most, max(1, most // 3), 1), (1,)):
        tables = {name: random_rows(max(counts), width, counts, rng) for name, width in _widths(model).items()}
        mask = next(iter(tables.values()))[1]
        samples.append({"mask": mask, **{name: rows for name, (rows, _) in tables.items()}})
    outputs = ("match", "spans")
    axes = dict.fromkeys((*samples[0], *outputs), ("videos", "clips"))
    clips = trace(ClipVectors(model), samples[0], outputs, axes)
    words, worst = _trace_queries(QueryVectors(model), model, outputs)
    worst = max(worst, difference_from_torch(ClipVectors(model), clips, samples))
    filters = model.boundaries_head.filters.weight.detach().cpu().numpy()[:, 0]
    width = model.config.hidden * len(model.modalities)
    head = {
        "modalities": len(model.modalities), "match": width, "spans": width,
        "start": filters[0].tolist(), "end": filters[1].tolist(), "end_time": settings["end_time"],
    }  # fmt: skip
    return ModelGraphs({CLIPS_GRAPH: clips, WORDS_GRAPH: words}, tuple(model.modalities), head, worst)


def draw_moments(model: Mmn, settings: Mapping[str, Any]) -> ModelGraphs:
    """Trace both graphs of MMN, with the values that turn two cosines into a score.

    ``whole`` is the maximum number of the data's clips that are stretched to the model's; longer videos are cut into
    windows of ``window`` clips.
    """
    config, seconds, rng = model.config, settings["clip_seconds"], torch.Generator().manual_seed(0)
    rows = config.preparation.rows
    samples = [
        {name: torch.randn(count, rows, width, generator=rng) for name, width in _widths(model).items()}
        for count in (2, 3, 1)
    ]
    axes = dict.fromkeys((*samples[0], "moments"), ("videos",))
    clips = trace(MomentVectors(model), samples[0], ("moments",), axes)
    words, worst = _trace_queries(MomentQueryVectors(model), model, ("spans",))
    worst = max(worst, difference_from_torch(MomentVectors(model), clips, samples))
    asked = settings["window"], settings.get("cut")
    whole, window = (None if s is None else max(1, math.ceil(s / seconds - 1e-9)) for s in asked)
    whole = whole or config.max_clips
    head = {
        "kind": "map", "match": config.space, "spans": 2 * config.space, "window": min(window or whole, whole),
        "whole": whole, "power": config.power, "sharpness": OVERLAP_SHARPNESS, "end_time": settings["end_time"],
        "cells": [model.cells.start.tolist(), model.cells.length.tolist()],
    }  # fmt: skip
    return ModelGraphs({CLIPS_GRAPH: clips, WORDS_GRAPH: words}, tuple(model.clips.modalities), head, worst)


def _trace_queries(module: nn.Module, model: CorpusModel, outputs: tuple[str, ...]) -> tuple[bytes, float]:
    """Trace the graph of queries, for any number and length, and return it with its difference from torch."""
    rng, most = torch.Generator().manual_seed(1), model.config.max_words
    samples = []
    for counts in ((min(4, most), 1), (most, max(1, most // 2), 1), (1,)):
        words, mask = random_rows(max(counts), model.dims.query, counts, rng)
        samples.append({"words": words, "mask": mask})
    axes = dict.fromkeys(("words", "mask"), ("queries", "words")) | dict.fromkeys(outputs, ("queries",))
    graph = trace(module, samples[0], outputs, axes)
    return graph, difference_from_torch(module, graph, samples)


def _widths(model: XML | Mmn | Slate) -> dict[str, int]:
    """Number of columns of each modality in a graph's input, including endpoints."""
    names = model.clips.modalities if isinstance(model, Mmn) else model.modalities
    return {name: clip_width(model.dims, model.config, name) for name in names}


def _clips(names: tuple[str, ...], parts: tuple[Tensor, ...], mask: Tensor) -> Clips:
    given = dict(zip(names, parts, strict=True))
    return Clips(given.get("video"), given.get("subtitle"), mask)


def _masked_twin(model: XML) -> XML:
    """A copy of a model with ``masked=True``, which ignores padding."""
    twin = type(model)(dataclasses.replace(model.config, masked=True), model.dims).eval()
    twin.load_state_dict(model.state_dict())
    return twin


VECTOR_KINDS = (
    ExportableKind((XML,), ("xml", "reloclnet"), draw_clips),
    ExportableKind((Mmn,), ("mmn", "crocs", "g2l"), draw_moments),
    ExportableKind((Slate,), ("slate",), draw_slate),
)
