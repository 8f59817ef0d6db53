"""ExCL: predicts the first and last clip from the clips joined with the query (Ghosh et al., NAACL 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import Dropout, clip_width
from momentseek.models.layers.recurrent import Recurrent
from momentseek.models.layers.spans import span_grid
from momentseek.models.losses import pair_weights, span_cross_entropy, weighted_mean
from momentseek.models.model import CorpusModel, ModelConfig
from momentseek.models.registry import register

PREDICTORS = ("mlp", "tied-lstm", "conditioned-lstm")


@dataclass(frozen=True, kw_only=True)
class ExCLConfig(ModelConfig):
    """Settings of the model ExCL."""

    official: ClassVar[Mapping[str, Any]] = {"weighting": "none"}
    predictor: str = "tied-lstm"
    """Network over clips and query: ``mlp`` for each clip by itself, ``tied-lstm`` with one LSTM for start and end, or
    ``conditioned-lstm`` with a second LSTM for the end on top of the start's (ExCL, section 3.3)."""
    endpoints: bool = True
    weighting: str = "linear"
    """How a pair is weighted by the similarity of query and caption: ``linear``, ``exponential`` or ``none``."""


class Predictor(nn.Module):
    """Start and end logits of every clip from its state and the query's: ``W2 tanh(W1 [p; v; q])``."""

    def __init__(self, hidden: int, dropout: float, kind: str) -> None:
        super().__init__()
        self.first = Recurrent(2 * hidden, hidden) if kind != "mlp" else None
        self.second = Recurrent(hidden, hidden) if kind == "conditioned-lstm" else None
        width = 2 * hidden + (hidden if self.first is not None else 0)
        self.start, self.end = (
            nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), Dropout(dropout), nn.Linear(hidden, 1, bias=False))
            for _ in range(2)
        )

    def forward(self, clips: Tensor, query: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, L, hidden), (n, hidden), (n, L) -> two of (n, L)."""
        both = torch.cat([clips, query[:, None].expand_as(clips)], dim=-1)
        start = end = both
        if self.first is not None:
            state, _ = self.first(both, mask)
            after = self.second(state, mask)[0] if self.second is not None else state
            start, end = torch.cat([state, both], dim=-1), torch.cat([after, both], dim=-1)
        return self.start(start).squeeze(-1), self.end(end).squeeze(-1)


class ExCL(CorpusModel):
    """Start and end probabilities of every clip; the logits of the modalities are averaged (TVR, section 5.2)."""

    retrieves: ClassVar[bool] = False
    config: ExCLConfig

    def __init__(self, config: ExCLConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        if config.predictor not in PREDICTORS:
            raise MomentseekError(f"predictor must be one of {', '.join(PREDICTORS)}, not {config.predictor!r}")
        self.modalities = config.modality_names
        self.dropout = Dropout(config.dropout)
        self.words = Recurrent(dims.query, config.hidden)
        self.clips = nn.ModuleDict(
            {name: Recurrent(clip_width(dims, config, name), config.hidden) for name in self.modalities}
        )
        self.predictors = nn.ModuleDict(
            {name: Predictor(config.hidden, config.dropout, config.predictor) for name in self.modalities}
        )

    def encode_words(self, words: Words) -> Encodings:
        _, last = self.words(words.features, words.mask)
        return {"query": self.dropout(last)}

    def encode_clips(self, clips: Clips) -> Encodings:
        states = {name: self.dropout(self.clips[name](clips.modality(name), clips.mask)[0]) for name in self.modalities}
        return {"mask": clips.mask} | states

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Return 0 for every video: probabilities within a video cannot rank videos."""
        return queries["query"].new_zeros(len(queries["query"]), len(videos["mask"]))

    def boundaries(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """(n, L) log-probabilities of the first and of the last clip of video i for query i."""
        mask = videos["mask"]
        logits = [self.predictors[name](videos[name], queries["query"], mask) for name in self.modalities]
        start, end = (torch.stack(parts).mean(0) for parts in zip(*logits, strict=True))
        start, end = (part.masked_fill(~mask, -torch.inf).log_softmax(1) for part in (start, end))
        return start, end

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        return span_grid(*self.boundaries(queries, videos), self.config.shortest, self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        pairs = batch.pairs
        queries, videos = self.encode_words(batch.words), self.encode_clips(batch.clips)
        start, end = self.boundaries(take_rows(queries, pairs.query), take_rows(videos, pairs.video))
        values = span_cross_entropy(start, end, pairs.start, pairs.end)
        return {"span": weighted_mean(values, pair_weights(pairs.weight, self.config.weighting))}


register(
    "excl",
    ExCLConfig,
    ExCL,
    "extractive clip localisation: LSTMs over clips joined with query; needs a first stage",
)
