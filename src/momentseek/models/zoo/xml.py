"""XML, cross-modal moment localisation (Lei et al. 2020, "TVR", section 4).

The query is encoded as one vector per modality. Clips are encoded per modality, then each modality attends to the
other. A video's score is the cosine of its best clip with the query, on the first layer. Two filters over the curve of
query-clip similarities of the last layer find starts and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.attention import CrossEncoder, MaxQuery, ModularQuery, Stack, best_clip
from momentseek.models.layers.projection import Positions, Projection, clip_width, initialise
from momentseek.models.layers.spans import BoundaryFilters, span_grid
from momentseek.models.listwise import ListSettings, list_terms, sample_spans, span_divergence
from momentseek.models.losses import (
    Negatives,
    pair_weights,
    ranking_hinge,
    related_masks,
    span_cross_entropy,
    weighted_mean,
)
from momentseek.models.model import CorpusModel, CurveFilters, ModelConfig, one_of, parse_columns
from momentseek.models.registry import register

WEIGHTED_TERMS = ("all", "not-hinge", "none")


@dataclass(frozen=True, kw_only=True)
class XMLConfig(ModelConfig, ListSettings):
    """Settings of XML; the defaults are the paper's."""

    official: ClassVar[Mapping[str, Any]] = {
        "masked": False,
        "cross_linear": False,
        "lstm_positions": False,
        "positive_mask": False,
        "weighted": "none",
    }
    heads: int = 4
    encoder: str = "transformer"
    """``transformer``, ``lstm`` or ``cnn`` (Table 5)."""
    query_layers: int = 1
    columns: str | None = None
    """Columns of the video features to use, such as ``0:2048`` for the first of two (Table 7); all by default."""
    kernel: int = 5
    """Number of clips that a boundary filter covers; odd."""
    modular: bool = True
    """Use one attention over the words per modality; False max-pools the words (Table 5)."""
    third_encoder: bool = True
    """With one modality, use a third transformer encoder in place of cross-attention, as in the public code; the paper
    does not mention it."""
    lstm_positions: bool = True
    """Add learned positions before LSTMs too, as in the paper; the public code does not."""
    masked: bool = True
    """Make scores independent of padding; False lets padding reach the boundary filters and the CNN, as in the public
    code."""
    cross_linear: bool = True
    """Apply a linear map after cross-attention, as in the paper; the public code does not."""
    query_linear: bool = True
    """Apply a linear map to the query before the curve, as in the public code; the paper's formula has none."""
    margin: float = 0.1
    hinge_weight: float = 1.0
    span_weight: float = 0.01
    """Weight of the loss on starts and ends (the paper's lambda)."""
    hard_from: int | None = 20
    """First epoch, counted from 0, with hard negatives; None for never."""
    hard_pool: int = 20
    positive_mask: bool = True
    """Exclude other videos of the same query from the negatives, as in TVR-Ranking's paper; its code does not."""
    weighted: str = "all"
    """Terms weighted by similarity: ``all`` (TVR-Ranking's paper), ``not-hinge`` (its public code) or ``none``."""
    weighting: str = "linear"
    """How similarity becomes a weight: ``linear`` or ``exponential``."""
    objective: str = "paper"
    """``paper``, or ``list``: span scores are not normalised within their video, and `listwise` trains them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check()
        one_of(self, "objective", "paper", "list")
        parse_columns(self.columns)


class XML(CorpusModel):
    """XML: queries and videos in one space per modality, so that videos are encoded independently of queries."""

    config: XMLConfig
    clip_layers = 2
    """Number of encoders per modality; cross-attention comes before the second."""
    lone_layers = 1
    """Number of additional encoders with one modality, which has no cross-attention."""
    match_layer = 0
    """The layer whose clips are compared with the query to rank videos."""

    def __init__(self, config: XMLConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.modalities = config.modality_names
        if config.weighted not in WEIGHTED_TERMS:
            raise MomentseekError(f"weighted must be one of {', '.join(WEIGHTED_TERMS)}, not {config.weighted!r}")
        hidden, dropout = config.hidden, config.dropout
        self.columns = parse_columns(config.columns)
        if self.columns and self.columns[1] > (dims.video or 0):
            raise MomentseekError(f"columns is {config.columns}, but the video features have {dims.video or 0:,}")

        def stack(count: int) -> Stack:
            return Stack(count, config.encoder, hidden, config.heads, dropout, masked=config.masked)

        def positions(most: int) -> nn.Module:
            if config.encoder == "lstm" and not config.lstm_positions:
                return nn.Identity()
            return Positions(most, hidden, dropout)

        def cross_encoder() -> CrossEncoder:
            return CrossEncoder(hidden, config.heads, dropout, linear=config.cross_linear, masked=config.masked)

        def by_modality(make: Callable[[str], nn.Module]) -> nn.ModuleDict:
            return nn.ModuleDict({m: make(m) for m in self.modalities})

        self.word_projection = Projection(dims.query, hidden, dropout)
        self.word_positions = positions(config.max_words)
        self.word_encoders = stack(config.query_layers)
        self.pooling: ModularQuery | MaxQuery = (
            ModularQuery(hidden, len(self.modalities)) if config.modular else MaxQuery(len(self.modalities))
        )
        self.clip_projections = by_modality(lambda m: Projection(self._width(m), hidden, dropout))
        self.clip_positions = positions(config.max_clips)
        self.clip_first = by_modality(lambda m: stack(1))
        lone = len(self.modalities) == 1 and config.third_encoder and config.encoder == "transformer"
        self.clip_later = by_modality(lambda m: stack(self.clip_layers - 1 + (self.lone_layers if lone else 0)))
        if len(self.modalities) == 2:
            self.cross = by_modality(lambda m: cross_encoder())
        self.span_queries = by_modality(lambda m: nn.Linear(hidden, hidden) if config.query_linear else nn.Identity())
        self.boundaries_head = BoundaryFilters(config.kernel, masked=config.masked)
        initialise(self)

    @property
    def listed_negatives(self) -> int:
        return int(self.mined_videos > 0)

    @property
    def mined_videos(self) -> int:
        return self.config.mined if self.config.objective == "list" else 0

    def encode_words(self, words: Words) -> Encodings:
        return self._query_parts(self.pooling(self.word_states(words), words.mask))

    def encode_clips(self, clips: Clips) -> Encodings:
        return self._clip_parts(self.clip_stack(clips), clips.mask)

    @property
    def best_clip_parts(self) -> tuple[str, ...]:
        return self.modalities

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        return self._mean([best_clip(queries[m], videos[m], videos["mask"]) for m in self.modalities])

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        if self.config.objective == "list":
            edges = self.responses(queries, videos).masked_fill(~videos["mask"][:, None], -torch.inf)
            return span_grid(edges[:, 0], edges[:, 1], self.config.shortest, self.config.longest)
        return span_grid(*self.boundaries(queries, videos), self.config.shortest, self.config.longest)

    @property
    def curve_filters(self) -> CurveFilters | None:
        if self.config.objective == "list":
            return None
        terms = tuple((f"{m}_span", *self._curve_term(m)) for m in self.modalities)
        return CurveFilters(terms, self.boundaries_head.filters.weight.detach().cpu().double().squeeze(1).numpy())

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        queries, videos = self.encode_words(batch.words), self.encode_clips(batch.clips)
        if self.config.objective == "list":
            return self._list_loss(batch, queries, videos, epoch, rng)
        return self._retrieval_loss(batch, queries, videos, epoch, rng) | self._span_loss(batch, queries, videos)

    # What explains a result

    def attention(self, words: Words) -> dict[str, Tensor]:
        """(queries, words) for each modality: the weight of each word in the query's vector."""
        if not isinstance(self.pooling, ModularQuery):
            raise MomentseekError("this model has no modular queries, so words have no weights; train with modular")
        weight = self.pooling.attention(self.word_states(words), words.mask)
        return dict(zip(self.modalities, weight.unbind(1), strict=True))

    def curve(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips): similarity of query i with each clip of video i, ``(H_v q_v + H_s q_s) / 2``."""
        return self._mean([_clip_products(queries[f"{m}_span"], videos[f"{m}_span"]) for m in self.modalities])

    def responses(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, 2, clips): responses of the start and the end filter to the curve."""
        return self.boundaries_head.responses(self.curve(queries, videos), videos["mask"])

    def boundaries(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """Log-probabilities (n, clips) that each clip of video i is the first, and the last, for query i."""
        start, end = self.boundaries_head(self.curve(queries, videos), videos["mask"])
        return start, end

    # Parts

    def word_states(self, words: Words) -> Tensor:
        """(queries, words, hidden): the words after the last encoder."""
        x: Tensor = self.word_positions(self.word_projection(words.features))
        encoded: list[Tensor] = self.word_encoders(x, words.mask)
        return encoded[-1]

    def _query_parts(self, pooled: Tensor) -> Encodings:
        """The encodings of pooled queries (queries, modalities, hidden): unit vectors, and vectors for the curve."""
        kept: Encodings = {}
        for m, q in zip(self.modalities, pooled.unbind(1), strict=True):
            kept[m] = normalize(q, dim=-1)
            kept[f"{m}_span"] = self.span_queries[m](q)
        return kept

    def clip_stack(self, clips: Clips) -> dict[str, list[Tensor]]:
        """The output of each encoder of clips, (videos, clips, hidden), by modality."""
        mask = clips.mask
        stack: dict[str, list[Tensor]] = {}
        for m in self.modalities:
            x = self.clip_positions(self.clip_projections[m](self._used_columns(clips.modality(m), m)))
            stack[m] = self.clip_first[m](x, mask)
        first = {m: layers[0] for m, layers in stack.items()}
        for m, x in first.items():
            if len(self.modalities) == 2:
                other = next(o for o in self.modalities if o != m)
                x = self.cross[m](x, first[other], mask)
            stack[m] = stack[m] + self.clip_later[m](x, mask)
        return stack

    def _width(self, modality: str) -> int:
        """Number of columns of a modality that are projected."""
        width = clip_width(self.dims, self.config, modality)
        if self.columns is None or modality != "video":
            return width
        return width - (self.dims.video or 0) + self.columns[1] - self.columns[0]

    def _used_columns(self, clips: Tensor, modality: str) -> Tensor:
        """The columns of clips that are projected: those of ``columns``, and the temporal endpoints."""
        if self.columns is None or modality != "video":
            return clips
        return torch.cat([clips[..., slice(*self.columns)], clips[..., self.dims.video :]], dim=-1)

    def _clip_parts(self, stack: dict[str, list[Tensor]], mask: Tensor) -> Encodings:
        """The encodings of clips: unit vectors to match, and the last layer for the curve; zero in the padding."""
        kept: Encodings = {"mask": mask}
        for m, layers in stack.items():
            kept[m] = self._there(normalize(layers[self.match_layer], dim=-1), mask)
            kept[f"{m}_span"] = self._there(layers[-1], mask)
        return kept

    def _there(self, clips: Tensor, mask: Tensor) -> Tensor:
        """Set the padding to zero if ``masked``."""
        return clips * mask[..., None] if self.config.masked else clips

    def _curve_parts(self) -> list[str]:
        """Names of the videos' encodings that the curve needs."""
        return [name for m in self.modalities for name in self._curve_term(m) if name]

    def _curve_term(self, modality: str) -> tuple[str, str]:
        """Names of the clips' vectors that the curve multiplies by the query's, and of a factor of the products."""
        return f"{modality}_span", ""

    def _list_loss(
        self, batch: Batch, queries: Encodings, videos: Encodings, epoch: int, rng: torch.Generator
    ) -> dict[str, Tensor]:
        """The list loss on ``alpha * match + start + end``, the divergence of spans, and the list loss on videos."""
        config, pairs, mask = self.config, batch.pairs, videos["mask"]
        match = config.alpha * self.match(queries, videos)
        curves = []
        for m in self.modalities:
            clips, length = self._curve_term(m)
            curve = torch.einsum("qd,vtd->qvt", queries[f"{m}_span"], videos[clips])
            curves.append(curve * videos[length] if length else curve)
        seen = mask.repeat(len(match), 1)
        start, end = self.boundaries_head.responses(self._mean(curves).flatten(0, 1), seen).unbind(1)
        start, end = (edge.view(*match.shape, -1) for edge in (start, end))
        spans = sample_spans(pairs, mask, config.shortest, config.longest, rng)
        scores = match[:, spans.video] + start[:, spans.video, spans.first] + end[:, spans.video, spans.last]
        query, video = pairs.query[spans.compared], pairs.video[spans.compared]
        first, last = (edge[query, video].masked_fill(~mask[video], -torch.inf) for edge in (start, end))
        grid = span_grid(first, last, config.shortest, config.longest)
        divergence = span_divergence(grid, pairs.start[spans.compared], pairs.end[spans.compared], config.shortest)
        return list_terms(config, spans, scores, divergence, match, epoch)

    def _retrieval_loss(
        self, batch: Batch, queries: Encodings, videos: Encodings, epoch: int, rng: torch.Generator
    ) -> dict[str, Tensor]:
        config, pairs = self.config, batch.pairs
        known = related_masks(pairs, masked=config.positive_mask)
        pool = Negatives(config.hard_from, config.hard_pool).at(epoch)
        video, query = ranking_hinge(self.match(queries, videos), pairs, known, config.margin, pool, rng)
        weight = self._weight(batch, hinge=True) * config.hinge_weight
        return {"wrong_video": weighted_mean(video, weight), "wrong_query": weighted_mean(query, weight)}

    def _span_loss(self, batch: Batch, queries: Encodings, videos: Encodings) -> dict[str, Tensor]:
        pairs = batch.pairs
        # Only the encodings that the curve needs are copied for each pair.
        start, end = self.boundaries(
            {name: queries[name][pairs.query] for name in queries if name.endswith("_span")},
            {name: videos[name][pairs.video] for name in ("mask", *self._curve_parts())},
        )
        values = span_cross_entropy(start, end, pairs.start, pairs.end)
        return {"span": weighted_mean(values, self._weight(batch) * self.config.span_weight)}

    def _weight(self, batch: Batch, *, hinge: bool = False) -> Tensor:
        """Each pair's weight in a term, from its similarity."""
        plain = self.config.weighted == "none" or (hinge and self.config.weighted == "not-hinge")
        return pair_weights(batch.pairs.weight, "none" if plain else self.config.weighting)

    def _mean(self, parts: list[Tensor]) -> Tensor:
        return parts[0] if len(parts) == 1 else (parts[0] + parts[1]) / 2


def _clip_products(queries: Tensor, clips: Tensor) -> Tensor:
    return (clips @ queries[..., None]).squeeze(-1)


register("xml", XMLConfig, XML, "XML: cross-modal moment localisation with start and end filters (TVR, 2020)", format=2)
