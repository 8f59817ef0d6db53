"""QD-DETR: clips attend to the words, a global token rates saliency, and a decoder refines anchors to windows.

After cross-attention to the words, only the clips are processed further. A global token rates their saliency, also for
the words of another sample as negatives. The decoder moves anchors (centre, width) layer by layer (Moon et al., CVPR
2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Encodings
from momentseek.models.features.data import Dims
from momentseek.models.layers.detr import (
    FeedForward,
    MultiHead,
    Perceptron,
    PlacedEncoderLayer,
    attend,
    draw_by_xavier,
    logit,
    sine_waves,
    split_heads,
)
from momentseek.models.layers.projection import Dropout
from momentseek.models.layers.set_prediction import Matching, SaliencyTargets, saliency_margin
from momentseek.models.model import above_nothing, at_least, one_of
from momentseek.models.registry import register
from momentseek.models.zoo.moment_detr import Detections, SetPredictionConfig, SetPredictor

RANKS = 11
"""Levels of the summed ratings (0 to 12) above which clips are contrasted with those below."""
HIDDEN_SCORE = -1e3
"""The saliency of padding."""


@dataclass(frozen=True, kw_only=True)
class QdDetrConfig(SetPredictionConfig):
    """Settings of QD-DETR; the defaults are those for QVHighlights."""

    official: ClassVar[Mapping[str, Any]] = {**SetPredictionConfig.official, "mask": "tiled", "rank_parts": RANKS + 1}
    mask: str = "own"
    """Words that clips attend to: those of the ``own`` query, or ``tiled`` as in the public code, where heads also mask
    the padding of other samples, so that results depend on the batch."""
    rank_parts: int = RANKS
    """Divisor of the sum of the 11 ranking terms (12 in the public code)."""
    sharpness: float = 0.5
    """Temperature of the ranking terms."""
    align: float = 0.0
    """Weight of the public code's contrast with words, which sees none there: a constant in the loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "mask", "own", "tiled")
        above_nothing(self, "rank_parts", "sharpness")
        at_least(self, 0, "align")
        if self.hidden % 4:
            raise MomentseekError(f"model: hidden must be a multiple of 4, not {self.hidden}")


class WordsIntoClips(nn.Module):
    """``v = v + A(v, words)``; ``v = LN(v + FFN(LN(v)))``."""

    def __init__(self, config: QdDetrConfig) -> None:
        super().__init__()
        self.attention = MultiHead(config.hidden, config.heads, config.dropout)
        self.feed = FeedForward(config.hidden, config.feedforward, config.dropout, "prelu")
        self.norms = nn.ModuleList(nn.LayerNorm(config.hidden) for _ in range(2))
        self.dropout = Dropout(config.dropout)

    def forward(self, clips: Tensor, words: Tensor, mask: Tensor, places: tuple[Tensor, Tensor]) -> Tensor:
        """(n, clips, hidden) from as much."""
        seen = clips + self.dropout(self.attention(clips + places[0], words + places[1], words, mask))
        return self.norms[1](seen + self.dropout(self.feed(self.norms[0](seen))))


class AnchorDecoderLayer(nn.Module):
    """DAB-DETR's layer: content and position are projected apart, and meet in the heads of cross-attention."""

    def __init__(self, config: QdDetrConfig, *, first: bool) -> None:
        super().__init__()
        hidden, self.heads, self.first = config.hidden, config.heads, first
        among = ("query", "query_place", "key", "key_place", "value", "out")
        across = ("query", "key", "key_place", "value", "sine", "out", *(("query_place",) if first else ()))
        self.among = nn.ModuleDict({name: nn.Linear(hidden, hidden) for name in among})
        self.across = nn.ModuleDict({name: nn.Linear(hidden, hidden) for name in across})
        for part in (self.among, self.across):
            nn.init.zeros_(part["out"].bias)  # type: ignore[arg-type]
        self.feed = FeedForward(hidden, config.feedforward, config.dropout, "prelu")
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(3))
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, qpos: Tensor, sine: Tensor, memory: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """(n, queries, hidden) from as much; ``sine`` are the anchors' waves, ``place`` the clips' positions."""
        a, c, heads = self.among, self.across, self.heads
        q, k = a["query"](x) + a["query_place"](qpos), a["key"](x) + a["key_place"](qpos)
        q, k, v = (split_heads(y, heads) for y in (q, k, a["value"](x)))
        seen = attend(q, k, v, None, self.dropout)
        x = self.norms[0](x + self.dropout(a["out"](seen)))
        q, k, k_place = c["query"](x), c["key"](memory), c["key_place"](place)
        if self.first:
            q, k = q + c["query_place"](qpos), k + k_place
        query, key = (
            torch.cat([split_heads(content, heads), split_heads(position, heads)], -1)
            for content, position in ((q, c["sine"](sine)), (k, k_place))
        )
        seen = attend(query, key, split_heads(c["value"](memory), heads), mask, self.dropout)
        x = self.norms[1](x + self.dropout(c["out"](seen)))
        return self.norms[2](x + self.dropout(self.feed(x)))


class AnchorDecoder(nn.Module):
    """A decoder whose layers move anchors; the window of a layer is predicted relative to the layer's input anchor."""

    def __init__(self, config: QdDetrConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.layers = nn.ModuleList(AnchorDecoderLayer(config, first=n == 0) for n in range(config.decoder_layers))
        self.norm = nn.LayerNorm(hidden)
        self.place = Perceptron((hidden, hidden, hidden))
        self.scale = Perceptron((hidden, hidden, hidden))
        self.width = Perceptron((hidden, hidden, 1))
        self.move = Perceptron((hidden, hidden, hidden, 2))
        nn.init.zeros_(self.move.layers[-1].bias)  # type: ignore[arg-type]

    def forward(self, anchor: Tensor, memory: Tensor, mask: Tensor, place: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """(n, queries, 2) anchors -> the normalised states and the anchors of each layer."""
        x = memory.new_zeros(*anchor.shape[:2], memory.shape[2])
        half = memory.shape[2] // 2
        states, anchors = [], [anchor]
        for number, layer in enumerate(self.layers):
            given = anchor.detach() if number else anchor
            sine = torch.cat([sine_waves(2 * math.pi * part, half) for part in given.unbind(-1)], -1)
            qpos = self.place(sine)
            if number:
                sine = sine * self.scale(x)
            sine = sine * (self.width(x).sigmoid() / given[..., 1:])
            x = layer(x, qpos, sine, memory, mask, place)
            states.append(self.norm(x))
            if number + 1 < len(self.layers):
                anchor = (self.move(x) + logit(given)).sigmoid()
                anchors.append(anchor)
        return states, anchors


class QdDetr(SetPredictor):
    """QD-DETR: clips that attend to words, a global token, and anchors that become windows."""

    config: QdDetrConfig

    def __init__(self, config: QdDetrConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden = config.hidden
        self.whole = nn.Parameter(torch.randn(hidden))
        self.whole_place = nn.Parameter(torch.randn(hidden))
        self.words_into_clips = nn.ModuleList(WordsIntoClips(config) for _ in range(config.encoder_layers))
        self.encoder = nn.ModuleList(
            PlacedEncoderLayer(hidden, config.heads, config.feedforward, config.dropout, "prelu")
            for _ in range(config.encoder_layers)
        )
        self.decoder = AnchorDecoder(config)
        for part in (self.words_into_clips, self.encoder, self.decoder):
            draw_by_xavier(part)
        self.anchors = nn.Embedding(config.queries, 2)
        self.label = nn.Linear(hidden, 2)
        self.span = Perceptron((hidden, hidden, hidden, 2))
        self.salient_clip, self.salient_whole = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def word_mask(self, words: Tensor, clips: Tensor) -> Tensor:
        """The mask of words for clips: (n, words), or (n, heads, clips, words) if tiled as in the public code."""
        if self.config.mask == "own":
            return words
        count, heads = len(words), self.config.heads
        padding = ~clips[:, :, None] & ~words[:, None, :]
        order = torch.arange(count * heads, device=words.device) % count
        return words[:, None, None, :] & ~padding[order].view(count, heads, *padding.shape[1:])

    def read(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of the clips, the global token's, and the saliency of the clips."""
        places, mask, clips = self.places(queries, videos), videos["mask"], videos["clips"]
        seen = self.word_mask(queries["words_mask"], mask)
        for layer in self.words_into_clips:
            clips = layer(clips, queries["words"], seen, places)
        whole, place = (p.expand(len(clips), 1, -1) for p in (self.whole, self.whole_place))
        rows, place = torch.cat([whole, clips], 1), torch.cat([place, places[0]], 1)
        mask = torch.cat([torch.ones_like(mask[:, :1]), mask], 1)
        for layer in self.encoder:
            rows = layer(rows, mask, place)
        whole, clips = rows[:, 0], rows[:, 1:]
        near = (self.salient_clip(clips) * self.salient_whole(whole)[:, None]).sum(-1)
        return clips, whole, near / math.sqrt(self.config.hidden)

    def saliency(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The product of each clip and the global token, both projected; the decoder is not needed."""
        return self.read(queries, videos)[2]

    def detect(self, queries: Encodings, videos: Encodings) -> Detections:
        """The windows of every layer of the decoder."""
        memory, _, saliency = self.read(queries, videos)
        anchor = self.anchors.weight.sigmoid().expand(len(memory), -1, -1)
        states, anchors = self.decoder(anchor, memory, videos["mask"], self.places(queries, videos)[0])
        spans = [(self.span(y) + logit(given)).sigmoid() for y, given in zip(states, anchors, strict=True)]
        return Detections([self.label(y) for y in states], spans, saliency, {"mask": videos["mask"]})

    def learn(self, queries: Encodings, videos: Encodings) -> Detections:
        """The result of ``detect``, and the saliency for the words of the next sample."""
        found = self.detect(queries, videos)
        return replace(found, more={**found.more, "other": self.saliency(self.next_words(queries), videos)})

    def next_words(self, queries: Encodings) -> Encodings:
        """The words of the next sample in the batch, at the positions of the sample's own words."""
        return {name: x if name == "word_places" else x.roll(-1, 0) for name, x in queries.items()}

    def saliency_loss(self, found: Detections, salient: SaliencyTargets) -> Tensor:
        """Margin, ranking and negative pairs (the paper's section 3.3, equations 5 to 8)."""
        return sum(self.saliency_parts(found, salient).values(), found.saliency.new_zeros(()))

    def further_terms(self, found: Detections, matchings: Sequence[Matching]) -> dict[str, Tensor]:
        """The constant of the public code's contrast: without words, all predictions are as near to them."""
        if not self.config.align:
            return {}
        layers = [f"align_{n}" for n in range(len(matchings) - 1)] if self.config.auxiliary else []
        constant = found.saliency.new_tensor(self.config.align * math.log(self.config.queries))
        return dict.fromkeys([*layers, "align"], constant)

    def saliency_parts(self, found: Detections, salient: SaliencyTargets) -> dict[str, Tensor]:
        """The three terms: of pairs of clips, of all clips by their ratings, and of the words of another sample."""
        mask, other = found.more["mask"], found.more["other"]
        there = mask.repeat(1, 2)
        scores = torch.cat([found.saliency, other], 1).masked_fill(~there, HIDDEN_SCORE)
        log_share = (scores / self.config.sharpness).log_softmax(1)
        ratings = torch.cat([salient.ratings, torch.zeros_like(salient.ratings)], 1)
        rank = scores.new_zeros(())
        for level in range(1, RANKS + 1):
            above = ratings >= level
            rank = rank - ((log_share * (above & there)).sum(1) / above.sum(1).clamp(min=1)).mean()
        return {
            "margin": saliency_margin(found.saliency, salient, self.config.margin),
            "rank": rank / self.config.rank_parts,
            "negative": (F.softplus(other) * mask).sum(1).mean(),
        }


register("qd_detr", QdDetrConfig, QdDetr, "QD-DETR: words read into clips, negative pairs, anchors that become windows")
