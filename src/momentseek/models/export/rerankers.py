"""Export models that read query and video together, as one graph from words and clips to scores of spans or times.

These models cannot encode a video before the query is known, so they re-rank the videos that another search finds
(``search --rerank``). A graph takes one video at a time, padded to the model's maximum number of rows; only the number
of words varies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from momentseek.models.batch import Clips, Words
from momentseek.models.export.graphs import (
    ExportableKind,
    Inputs,
    ModelGraphs,
    difference_from_torch,
    random_rows,
    trace,
)
from momentseek.models.inputs import needs_roles, role_parser
from momentseek.models.layers.highlights import HighlightModel
from momentseek.models.layers.projection import clip_width
from momentseek.models.model import CorpusModel
from momentseek.models.zoo.ablr import Ablr
from momentseek.models.zoo.acrn import Acrn
from momentseek.models.zoo.cet import Cet
from momentseek.models.zoo.ctrl import Ctrl
from momentseek.models.zoo.drn import Drn
from momentseek.models.zoo.scdm import Scdm
from momentseek.models.zoo.spr import Spr
from momentseek.models.zoo.tan2d import Tan2d
from momentseek.models.zoo.tcn_dcm import TcnDcm
from momentseek.models.zoo.tsp_prl import TspPrl
from momentseek.recognition.exported.manifest import JOINT_GRAPH, JOINT_KIND, SPANS_OUTPUT, TIMES_OUTPUTS


class AnswerOfPair(nn.Module):
    """A model as one function of a query's words and a video's clips."""

    def __init__(self, model: CorpusModel) -> None:
        super().__init__()
        self.model = model
        roles = ("roles", "phrase") if needs_roles(model.config) else ()
        self.names = ("words", *roles, "mask", *model.config.modality_names)
        self.most = model.config.max_words if isinstance(model, Cet) else None
        """Number of words that queries are padded to, for models whose traced attention has a fixed size; else None."""

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """(1, words, columns), (1, clips) and the modalities' (1, clips, columns) -> times, or scores of spans."""
        named = dict(zip(self.names, given, strict=True))
        words = named["words"]
        there = torch.ones(words.shape[:2], dtype=torch.bool)
        if self.most is not None:
            there = (torch.arange(self.most) < words.shape[1])[None]
            words = pad(words, (0, 0, 0, self.most - words.shape[1]))
        videos = self.model.encode_clips(Clips(named.get("video"), named.get("subtitle"), named["mask"]))
        queries = self.model.encode_words(Words(words, there, named.get("roles"), named.get("phrase")))
        return self.model.moments(queries, videos) if self.model.continuous else (self.model.spans(queries, videos),)


def draw(model: CorpusModel, settings: Mapping[str, Any]) -> ModelGraphs:
    """Trace the graph of a model, and return it with the other values that re-ranking needs."""
    config, graph = model.config, network(model)
    head = {
        "kind": JOINT_KIND,
        "roles": needs_roles(config),
        "parse": role_parser(config),
        "end_time": settings["end_time"],
        "nms": settings.get("nms"),
        "window": settings.get("window"),
        "rows": config.preparation.rows,
        "times": model.continuous,
    }
    return ModelGraphs({JOINT_GRAPH: graph}, config.modality_names, head, difference(model, graph))


def network(model: CorpusModel) -> bytes:
    """Trace a model from words, mask and modalities to ``start``, ``end`` and ``score`` (1, k).

    ``words`` is (1, words, columns) and ``mask`` (1, clips). A model of spans returns ``spans`` (1, clips, lengths).
    MDD also takes the words' ``roles`` and ``phrase``. Unused inputs are left out of the graph.
    """
    outputs = TIMES_OUTPUTS if model.continuous else (SPANS_OUTPUT,)
    given = random_pair(model, min(2, model.config.max_words), model.config.preparation.rows)
    free = {name: ("", "words") for name in ("words", "roles", "phrase") if name in given}
    return trace(AnswerOfPair(model), given, outputs, free)


def difference(model: CorpusModel, graph: bytes) -> float:
    """The largest difference from torch for several numbers of words and clips."""
    config, rows = model.config, model.config.preparation.rows
    sizes = [rows] if config.fit in ("stretch", "rounded") else [rows, max(1, rows // 2), max(1, rows // 5)]
    lengths = sorted({1, max(1, config.max_words // 2), config.max_words})
    samples = [random_pair(model, words, clips, seed) for seed, clips in enumerate(sizes) for words in lengths]
    return float(difference_from_torch(AnswerOfPair(model), graph, samples))


def random_pair(model: CorpusModel, words: int, clips: int, seed: int = 0) -> Inputs:
    """Random inputs of a graph: a query of ``words`` words, and a video of ``clips`` clips, padded with zeros."""
    rng, rows = torch.Generator().manual_seed(seed), model.config.preparation.rows
    given = {
        "words": torch.randn(1, words, model.dims.query, generator=rng),
        "roles": torch.randint(0, 3, (1, words), generator=rng),
        "phrase": torch.arange(words)[None] // 3,
    }
    for part in model.config.modality_names:
        given[part], given["mask"] = random_rows(rows, clip_width(model.dims, model.config, part), [clips], rng)
    return {name: given[name] for name in AnswerOfPair(model).names}


RERANKER_KIND = ExportableKind(
    (Tan2d, Cet, Ctrl, Acrn, Ablr, Scdm, Drn, TspPrl, TcnDcm, HighlightModel, Spr),
    (
        "tan2d", "mdd", "cet", "ctrl", "acrn", "ablr", "scdm", "drn", "tsp_prl", "tcn_dcm", "moment_detr", "qd_detr",
        "univtg", "spr",
    ),
    draw,
)  # fmt: skip
