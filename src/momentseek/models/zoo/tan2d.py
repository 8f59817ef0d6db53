"""2D-TAN: convolutions over a map of all candidate moments of a video, each fused with the query.

The last state of an LSTM over the words is multiplied with the maximum over each candidate's clips. The normalised
product passes through the map's convolutions, which give one score per cell. Its target is the scaled overlap with the
true moment (Zhang et al. 2020, sections 3.1–3.4; the base model of MDD, section 4.2). Each pair of query and video
costs a forward pass, so another model should rank the videos first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import (
    ConvolutionStack,
    MapConvolution,
    cells,
    max_over,
    overlap,
    scale_overlap,
)
from momentseek.models.layers.projection import MapClips
from momentseek.models.model import CorpusModel, GroundingConfig, at_least, one_of
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class Tan2dConfig(GroundingConfig):
    """2D-TAN's settings; the defaults are those for Charades-STA."""

    official: ClassVar[Mapping[str, Any]] = {"padding": "first", "fit": "rounded"}
    hidden: int = 512
    max_clips: int = 16
    fit: str = "stretch"
    longest: int = 16
    fit_first: bool = False
    normalise_words: bool | None = False
    stride: int = 16
    """Number of feature rows per clip of the map; rows are projected separately, then averaged to a clip."""
    text_layers: int = 3
    map_layers: int = 8
    kernel: int = 5
    moments: str = "pool"
    """How candidates are computed from clips: ``pool`` (maximum) or ``convolution``."""
    padding: str = "each"
    """Where maps are padded: in ``each`` layer, or for all layers in the ``first``, as in the public code."""
    low: float = 0.5
    high: float = 1.0
    """Overlaps up to ``low`` have the target 0, and from ``high`` on the target 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "moments", "pool", "convolution")
        one_of(self, "padding", "each", "first")
        at_least(self, 1, "stride", "text_layers", "map_layers", "kernel")
        if self.kernel % 2 == 0:
            raise MomentseekError(f"model: kernel must be odd, so that the map keeps its size, not {self.kernel}")
        if not self.low < self.high:
            raise MomentseekError(f"model: low ({self.low:g}) must be below high ({self.high:g})")
        one_of(self, "fit", "stretch", "rounded")
        if self.shortest != 1:
            raise MomentseekError(
                f"model: a map has cells from one clip on, so shortest must be 1, not {self.shortest}"
            )
        if self.longest < self.max_clips:
            raise MomentseekError(
                f"model: with longest={self.longest}, moments of up to {self.max_clips} clips would be learnt and the "
                f"long ones never predicted; set longest={self.max_clips}"
            )


class SentenceEncoder(nn.Module):
    """Encodes a query as the last state of a one-way LSTM over its words (2D-TAN, MDD)."""

    def __init__(self, dim: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(dim, hidden, layers, batch_first=True)

    def forward(self, words: Words) -> tuple[Tensor, Tensor]:
        """(queries, hidden) of the last words, and (queries, words, hidden) of all."""
        states = self.lstm(words.features)[0]
        last = words.mask.sum(1) - 1  # padding comes later and does not change it
        return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2])).squeeze(1), states


def overlap_loss(logits: Tensor, iou: Tensor, weight: Tensor, config: Tan2dConfig) -> Tensor:
    """Cross-entropy of scores (pairs, cells) and overlaps ``iou``, scaled; mean over cells, then pairs by weight."""
    target = scale_overlap(iou, config.low, config.high)
    each = F.binary_cross_entropy_with_logits(logits, target, reduction="none").mean(1)
    return (each * weight).sum() / weight.sum().clamp(min=1e-6)


class Tan2d(CorpusModel):
    """2D-TAN: convolutions over a map of all candidate moments, each fused with the query."""

    retrieves: ClassVar[bool] = False
    config: Tan2dConfig

    def __init__(self, config: Tan2dConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.cells = cells(config.max_clips)
        self.sentence = SentenceEncoder(dims.query, config.hidden, config.text_layers)
        self.clips = MapClips(config, dims, config.stride)
        self.stack = ConvolutionStack(config.hidden, config.max_clips) if config.moments == "convolution" else None
        self.text_in = nn.Linear(config.hidden, config.hidden)
        self.map_in = nn.Linear(config.hidden, config.hidden)
        self.neighbours = MapConvolution(
            self.cells.mask(), config.hidden, config.hidden, config.map_layers, config.kernel, padding=config.padding
        )
        self.score = nn.Linear(config.hidden, 1)

    def encode_words(self, words: Words) -> Encodings:
        """Encode each query as one vector."""
        return {"query": self.text_in(self.sentence(words)[0])}

    def encode_clips(self, clips: Clips) -> Encodings:
        """Encode the clips; candidates are ten times as many, so they are pooled when scored."""
        return {"clips": self.clips(clips), "mask": self.clips.mask(clips)}

    def candidates(self, clips: Tensor) -> Tensor:
        """(videos, cells, hidden): the map M, before it is fused with a query."""
        return max_over(clips, self.cells) if self.stack is None else self.stack(clips, self.cells)

    def logits(self, query: Tensor, candidates: Tensor) -> Tensor:
        """(n, cells): the logits of the scores for query i and the candidates of video i."""
        fused = F.normalize(query[:, None] * self.map_in(candidates), dim=2)
        near = self.neighbours.over(self.cells, fused)
        return self.score(near)[..., 0]

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips, lengths): the logarithm of each candidate's score."""
        scores = F.logsigmoid(self.logits(queries["query"], self.candidates(videos["clips"])))
        return self.cells.as_spans(scores, self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The terms of the loss, see ``terms``."""
        query = self.encode_words(batch.words)["query"]
        return self.terms(batch.pairs, query, self.candidates(self.encode_clips(batch.clips)["clips"]))

    def terms(self, pairs: BatchPairs, query: Tensor, candidates: Tensor) -> dict[str, Tensor]:
        """Cross-entropy of the scores and the scaled overlaps (eq. 13 of MDD)."""
        assert pairs.times is not None, "the map's targets are overlaps in time"
        logits = self.logits(query[pairs.query], candidates[pairs.video])
        return {"overlap": overlap_loss(logits, overlap(self.cells, pairs.times), pairs.weight, self.config)}


register(
    "tan2d", Tan2dConfig, Tan2d, "2D-TAN: convolutions over a map of all candidate moments, query fused early", format=2
)
