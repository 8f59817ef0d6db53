"""Moment-DETR: a transformer over clips and words whose decoder predicts a fixed number of windows.

Clips and words form one sequence. Ten learned queries attend to it, and each becomes a window (centre, width) with the
probability that it is a moment. Training matches predictions with the true windows one to one. The clips' saliency is a
linear map of their rows (Lei et al., NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Encodings, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.detr import FeedForward, MultiHead, Perceptron, PlacedEncoderLayer, draw_by_xavier
from momentseek.models.layers.highlights import HighlightConfig, HighlightModel
from momentseek.models.layers.projection import Dropout
from momentseek.models.layers.set_prediction import (
    Matching,
    SaliencyTargets,
    best_matching,
    centre_width,
    clip_log_probabilities,
    match_cost,
    saliency_margin,
    saliency_targets,
    set_losses,
    start_end,
    window_samples,
)
from momentseek.models.model import Predicted, above_nothing, at_least, one_of
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class SetPredictionConfig(HighlightConfig):
    """Settings that Moment-DETR and QD-DETR share; the defaults are those for QVHighlights."""

    official: ClassVar[Mapping[str, Any]] = {**HighlightConfig.official, "round_to": 2.0, "latest": 150.0}
    queries: int = 10
    """Number of predicted windows."""
    decoder_layers: int = 2
    auxiliary: bool = True
    """Train the windows of every layer of the decoder, not only of the last."""
    cost_span: float = 10.0
    cost_iou: float = 1.0
    cost_label: float = 4.0
    """Weights of distance, overlap and class in the matching of predictions with the truth."""
    span: float = 10.0
    iou: float = 1.0
    label: float = 4.0
    salient: float = 1.0
    """Weights of the loss's terms."""
    background: float = 0.1
    """Weight of unmatched predictions."""
    margin: float = 0.2
    """By how much a salient clip should score above another."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "queries", "decoder_layers")
        at_least(self, 0, "cost_span", "cost_iou", "cost_label", "margin", "background")
        at_least(self, 0, "span", "iou", "label", "salient")


@dataclass(frozen=True, eq=False)
class Detections:
    """The output of a decoder: the windows of each of its layers, and the saliency of clips."""

    logits: Sequence[Tensor]
    """(n, queries, 2) of each layer: moment, background."""
    spans: Sequence[Tensor]
    """(n, queries, 2) of each layer: centre and width; or logits of first and last clips."""
    saliency: Tensor
    """(n, clips)."""
    more: Mapping[str, Tensor] = field(default_factory=dict)
    """Further tensors that a model's loss needs."""


class SetPredictor(HighlightModel):
    """Base class of models that are trained by matching predicted windows with the true ones."""

    config: SetPredictionConfig

    def detect(self, queries: Encodings, videos: Encodings) -> Detections:
        """The windows and the saliency of query i in video i."""
        raise NotImplementedError

    def learn(self, queries: Encodings, videos: Encodings) -> Detections:
        """The result of ``detect``, with further tensors that only the loss needs."""
        return self.detect(queries, videos)

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """The last layer's windows; a score is the probability of a moment."""
        found = self.detect(queries, videos)
        spans, score = found.spans[-1], found.logits[-1].softmax(-1)[..., 0]
        if spans.shape[-1] > 2:
            first, last = clip_log_probabilities(spans).argmax(-1).unbind(-1)
            count = videos["mask"].sum(1, keepdim=True).to(score.dtype)
            return first / count, (last + 1) / count, score
        start, end = start_end(spans).unbind(-1)
        return start, end, score

    def matchings(self, found: Detections, wanted: Sequence[Tensor]) -> list[Matching]:
        """The matching of predictions and true windows, for each layer and sample."""
        weights = self.config.cost_span, self.config.cost_iou, self.config.cost_label
        return [
            [best_matching(match_cost(*sample, weights)) for sample in zip(logits, spans, wanted, strict=True)]
            for logits, spans in zip(found.logits, found.spans, strict=True)
        ]

    def terms(self, found: Detections, wanted: Sequence[Tensor], salient: SaliencyTargets) -> dict[str, Tensor]:
        """The weighted terms of the loss; those of earlier layers have the layer's number in their names."""
        config, last = self.config, len(found.logits) - 1
        matchings = self.matchings(found, wanted)
        terms: dict[str, Tensor] = {}
        for layer, matching in enumerate(matchings):
            if layer < last and not config.auxiliary:
                continue
            values = set_losses(found.logits[layer], found.spans[layer], wanted, matching, config.background)
            for name, weight in (("span", config.span), ("giou", config.iou), ("label", config.label)):
                terms[name if layer == last else f"{name}_{layer}"] = weight * values[name]
        terms["saliency"] = config.salient * self.saliency_loss(found, salient)
        return terms | self.further_terms(found, matchings)

    def saliency_loss(self, found: Detections, salient: SaliencyTargets) -> Tensor:
        """The margin loss that ranks salient clips above others."""
        return saliency_margin(found.saliency, salient, self.config.margin)

    def further_terms(self, found: Detections, matchings: Sequence[Matching]) -> dict[str, Tensor]:
        """Terms that only some models have."""
        return {}

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Matched windows and the saliency of clips."""
        samples = window_samples(batch.pairs, self.config.windows, rng)
        videos = take_rows(self.encode_clips(batch.clips), samples.video)
        found = self.learn(take_rows(self.encode_words(batch.words), samples.query), videos)
        if (columns := found.spans[-1].shape[-1]) > 2:
            wanted = [clips.clamp(max=columns // 2 - 1) for clips in samples.clips]
        else:
            wanted = [centre_width(times) for times in samples.times]
        public = self.config.seconds == "duration"
        return self.terms(found, wanted, saliency_targets(batch.pairs, samples, videos["mask"], rng, public=public))


@dataclass(frozen=True, kw_only=True)
class MomentDetrConfig(SetPredictionConfig):
    """Settings of Moment-DETR; the defaults are those for QVHighlights."""

    official: ClassVar[Mapping[str, Any]] = {**SetPredictionConfig.official, "align_padding": True}
    pre_norm: bool = False
    """Normalise before attention and feed-forward parts instead of after them."""
    regress: str = "times"
    """Windows are ``times`` (centre and width), or first and last ``clips``."""
    span_clips: int = 75
    """Number of clips among which first and last clips are chosen."""
    align_columns: int = 0
    """Columns of the space in which matched predictions are contrasted with the query's words; 0 for no contrast."""
    align: float = 0.02
    """Weight of that contrast."""
    align_padding: bool = False
    """Include the batch's padding among the words of that contrast, as in the public code."""
    temperature: float = 0.07

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "regress", "times", "clips")
        at_least(self, 0, "align", "align_columns")
        above_nothing(self, "temperature")
        if self.regress == "clips" and self.span_clips < self.max_clips:
            raise MomentseekError(
                f"model: first and last clips are chosen among {self.span_clips} (span_clips), and videos have up to "
                f"{self.max_clips} (max_clips)"
            )


class WindowDecoderLayer(nn.Module):
    """A decoder layer: predictions attend to each other, then to clips and words; both add their learned vectors."""

    def __init__(self, config: MomentDetrConfig) -> None:
        super().__init__()
        self.among = MultiHead(config.hidden, config.heads, config.dropout)
        self.across = MultiHead(config.hidden, config.heads, config.dropout)
        self.feed = FeedForward(config.hidden, config.feedforward, config.dropout, "relu")
        self.norms = nn.ModuleList(nn.LayerNorm(config.hidden) for _ in range(3))
        self.dropout = Dropout(config.dropout)
        self.before = config.pre_norm

    def forward(self, x: Tensor, learnt: Tensor, memory: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """(n, queries, hidden) from as much; ``memory`` has the rows of clips and words."""
        branches: tuple[Callable[[Tensor], Tensor], ...] = (
            lambda y: self.among(y + learnt, y + learnt, y),
            lambda y: self.across(y + learnt, memory + place, memory, mask),
            self.feed,
        )
        for norm, branch in zip(self.norms, branches, strict=True):
            x = x + self.dropout(branch(norm(x))) if self.before else norm(x + self.dropout(branch(x)))
        return x


class MomentDetr(SetPredictor):
    """Moment-DETR: one transformer over clips and words, and learned queries that become windows."""

    config: MomentDetrConfig

    def __init__(self, config: MomentDetrConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden = config.hidden
        self.encoder = nn.ModuleList(
            PlacedEncoderLayer(hidden, config.heads, config.feedforward, config.dropout, before=config.pre_norm)
            for _ in range(config.encoder_layers)
        )
        self.encoder_norm = nn.LayerNorm(hidden) if config.pre_norm else nn.Identity()
        self.decoder = nn.ModuleList(WindowDecoderLayer(config) for _ in range(config.decoder_layers))
        self.decoder_norm = nn.LayerNorm(hidden)
        draw_by_xavier(self.encoder)
        draw_by_xavier(self.decoder)
        self.learnt = nn.Embedding(config.queries, hidden)
        self.label = nn.Linear(hidden, 2)
        self.span = Perceptron((hidden, hidden, hidden, 2 if config.regress == "times" else 2 * config.span_clips))
        self.salient = nn.Linear(hidden, 1)
        self.align_queries, self.align_words = (
            nn.Linear(hidden, config.align_columns) if config.align_columns else None for _ in range(2)
        )

    def read(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of clips and words after the encoder, their mask and their positions."""
        place = torch.cat(self.places(queries, videos), 1)
        mask = torch.cat([videos["mask"], queries["words_mask"]], 1)
        memory = torch.cat([videos["clips"], queries["words"]], 1)
        for layer in self.encoder:
            memory = layer(memory, mask, place)
        return self.encoder_norm(memory), mask, place

    def saliency(self, queries: Encodings, videos: Encodings) -> Tensor:
        """A linear map of the clips' rows; the decoder is not needed."""
        memory = self.read(queries, videos)[0][:, : videos["mask"].shape[1]]
        return self.salient(memory)[..., 0]

    def detect(self, queries: Encodings, videos: Encodings) -> Detections:
        """The windows of every layer of the decoder."""
        memory, mask, place = self.read(queries, videos)
        length = videos["mask"].shape[1]
        learnt = self.learnt.weight.expand(len(memory), -1, -1)
        x, states = torch.zeros_like(learnt), []
        for layer in self.decoder:
            x = layer(x, learnt, memory, mask, place)
            states.append(self.decoder_norm(x))
        spans = [self.span(y) for y in states]
        more = {}
        if self.align_queries is not None and self.align_words is not None:
            more["queries"] = F.normalize(self.align_queries(torch.stack(states)), dim=-1)
            words = F.normalize(self.align_words(memory[:, length:]), dim=-1)
            there = torch.ones_like(mask) if self.config.align_padding else mask
            more["words"] = words * there[:, length:, None]
        return Detections(
            [self.label(y) for y in states],
            [s.sigmoid() for s in spans] if self.config.regress == "times" else spans,
            self.salient(memory[:, :length])[..., 0],
            more,
        )

    def further_terms(self, found: Detections, matchings: Sequence[Matching]) -> dict[str, Tensor]:
        """Matched predictions of each layer are nearer to the words than others, summed over the words."""
        if not found.more:
            return {}
        terms, last = {}, len(matchings) - 1
        for layer, (queries, matching) in enumerate(zip(found.more["queries"], matchings, strict=True)):
            if layer < last and not self.config.auxiliary:
                continue
            near = torch.einsum("nqd,nwd->nq", queries, found.more["words"]) / self.config.temperature
            right = torch.stack([n[rows].mean() for n, (rows, _) in zip(near, matching, strict=True)])
            loss = self.config.align * (near.logsumexp(1) - right).mean()
            terms["align" if layer == last else f"align_{layer}"] = loss
        return terms


register(
    "moment_detr", MomentDetrConfig, MomentDetr, "Moment-DETR: a set of windows by a transformer, and salient clips"
)
