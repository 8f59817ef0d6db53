"""The one graph of a model that is followed through its layers by torch, rather than drawn: words and clips in.

These models are many, small and alike only in what they answer, so a second description of each would be code for
its own sake. TorchScript's exporter follows one call and fixes what it has seen; hence a graph takes one video at a
time, filled up to the number of rows that the model reads at most, and only the number of words is free. It is compared
with torch for several numbers of words and clips before it counts.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.models.batch import Clips, Words
from momentseek.models.export.graphs import ExportableKind, ModelGraphs, relative_difference
from momentseek.models.layers.projection import clip_width
from momentseek.models.model import CorpusModel
from momentseek.models.zoo.ablr import Ablr
from momentseek.models.zoo.acrn import Acrn
from momentseek.models.zoo.ctrl import Ctrl
from momentseek.models.zoo.drn import Drn
from momentseek.models.zoo.scdm import Scdm
from momentseek.models.zoo.tcn_dcm import TcnDcm
from momentseek.models.zoo.tsp_prl import TspPrl
from momentseek.recognition.exported.manifest import JOINT_GRAPH, JOINT_KIND, SPANS_OUTPUT, TIMES_OUTPUTS
from momentseek.recognition.runtime import session

OPSET = 17


class AnswerOfPair(nn.Module):
    """A model as one function of the words of a query and the clips of a video."""

    def __init__(self, model: CorpusModel) -> None:
        super().__init__()
        self.model = model
        self.parts = model.config.modality_names

    def forward(self, words: Tensor, mask: Tensor, *clips: Tensor) -> tuple[Tensor, ...]:
        """(1, words, columns), (1, clips) and the modalities' (1, clips, columns) -> times, or scores of spans."""
        given = dict(zip(self.parts, clips, strict=True))
        videos = self.model.encode_clips(Clips(given.get("video"), given.get("subtitle"), mask))
        queries = self.model.encode_words(Words(words, torch.ones(words.shape[:2], dtype=torch.bool)))
        return self.model.moments(queries, videos) if self.model.continuous else (self.model.spans(queries, videos),)


def draw(model: CorpusModel, settings: Mapping[str, Any]) -> ModelGraphs:
    """The graph, and what re-ranking must know beside it."""
    graph = network(model)
    head = {
        "kind": JOINT_KIND,
        "roles": False,
        "end_time": settings["end_time"],
        "nms": settings.get("nms"),
        "window": settings.get("window"),
        "rows": model.config.preparation.rows,
        "times": model.continuous,
    }
    return ModelGraphs({JOINT_GRAPH: graph}, model.config.modality_names, head, difference_from_torch(model, graph))


def network(model: CorpusModel) -> bytes:
    """``words`` (1, words, columns), ``mask`` (1, clips) and the modalities to ``start``, ``end`` and ``score`` (1, k).

    A model of spans has ``spans`` (1, clips, lengths) instead. Inputs that change nothing are left out of the graph.
    """
    pair = AnswerOfPair(model).eval()
    given = random_pair(model, 2, model.config.preparation.rows)
    with warnings.catch_warnings(), torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / JOINT_GRAPH
        warnings.simplefilter("ignore")  # a deprecated exporter, and branches that depend on sizes, which are fixed
        torch.onnx.export(
            pair, tuple(map(torch.from_numpy, given.values())), file, dynamo=False, opset_version=OPSET,
            input_names=list(given), output_names=list(TIMES_OUTPUTS if model.continuous else (SPANS_OUTPUT,)),
            dynamic_axes={"words": {1: "words"}},
        )  # fmt: skip
        return file.read_bytes()


def random_pair(model: CorpusModel, words: int, clips: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """The inputs of a graph: a query of so many random words, and a video of so many clips, filled up with zeros."""
    rng, rows = np.random.default_rng(seed), model.config.preparation.rows
    there = np.arange(rows) < clips
    given: dict[str, NDArray[Any]] = {
        "words": rng.standard_normal((1, words, model.dims.query), np.float32),
        "mask": there[None],
    }
    for part in model.config.modality_names:
        columns = clip_width(model.dims, model.config, part)
        given[part] = rng.standard_normal((1, rows, columns), np.float32) * there[:, None]
    return given


@torch.no_grad()
def difference_from_torch(model: CorpusModel, graph: bytes) -> float:
    """The largest difference between the graph and torch in times and scores, as a share of the largest.

    Infinite if the one has a moment that the other does not have.
    """
    run, pair, config = session(graph), AnswerOfPair(model).eval(), model.config
    names, taken = [o.name for o in run.get_outputs()], {i.name for i in run.get_inputs()}
    rows, worst = config.preparation.rows, 0.0
    sizes = [rows] if config.fit in ("stretch", "rounded") else [rows, max(1, rows // 2), max(1, rows // 5)]
    for seed, clips in enumerate(sizes):
        for words in {1, max(1, config.max_words // 2), config.max_words}:
            given = random_pair(model, words, clips, seed)
            theirs = [x.numpy() for x in pair(*map(torch.from_numpy, given.values()))]
            ours = run.run(names, {name: values for name, values in given.items() if name in taken})
            real = theirs[-1] > -np.inf
            if any(x.shape != y.shape for x, y in zip(ours, theirs, strict=True)):
                return math.inf
            if not np.array_equal(ours[-1] > -np.inf, real):
                return math.inf
            parts = [(np.where(real, x, 0), np.where(real, y, 0)) for x, y in zip(ours, theirs, strict=True)]
            worst = max(worst, *(relative_difference(x, y) for x, y in parts))
    return worst


TRACED_KINDS = (
    ExportableKind(Ctrl, ("ctrl",), draw),
    ExportableKind(Acrn, ("acrn",), draw),
    ExportableKind(Ablr, ("ablr",), draw),
    ExportableKind(Scdm, ("scdm",), draw),
    ExportableKind(Drn, ("drn",), draw),
    ExportableKind(TspPrl, ("tsp_prl",), draw),
    ExportableKind(TcnDcm, ("tcn_dcm",), draw),
)
