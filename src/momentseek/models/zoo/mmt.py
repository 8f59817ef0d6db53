"""MMT, the multi-modal transformer that describes a moment from its clips and subtitles (TVR, appendix C.2).

The encoder reads clips and subtitle words as one sequence. The decoder writes the caption word by word, with the same
word embeddings. Training is by maximum likelihood with smoothed labels, and decoding is greedy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from momentseek.models.captioner import CaptionBatch, Captioner, CaptionerConfig, CaptionerDims, register_captioner
from momentseek.models.layers.attention import DecoderLayer, TransformerLayer, earlier_rows
from momentseek.models.layers.projection import Dropout, Projection, initialise
from momentseek.models.model import at_least, below_one, one_of
from momentseek.recognition.captions.inputs import PAD

NORM_EPSILON = 1e-12
REDUCTIONS = ("sum", "mean")
NO_VIDEO_COLUMNS = 2
"""Number of columns of zeros that replace the clips of a captioner without video, as in the public code."""


def smoothed_divergence(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """(n,): the Kullback-Leibler divergence of each row's softmax from its smoothed target.

    .. math:: \\sum_v t_v (\\log t_v - \\log p_v), \\qquad t_y = 1 - \\varepsilon, \\quad
              t_v = \\varepsilon / (V - 1) \\text{ for } v \\ne y

    Without smoothing it is the cross-entropy, and it is 0 where the softmax is the target.

    >>> import torch
    >>> smoothed_divergence(torch.tensor([[0.8, 0.1, 0.1]]).log(), torch.tensor([0]), 0.2).abs() < 1e-6
    tensor([True])
    """
    others = logits.shape[-1] - 1
    chance = logits.log_softmax(-1)
    right = chance.gather(-1, target[:, None])[:, 0]
    if not smoothing or not others:
        return -right
    share = smoothing / others
    entropy = (1 - smoothing) * math.log(1 - smoothing) + smoothing * math.log(share)
    return entropy - (1 - smoothing - share) * right - share * chance.sum(-1)


def sine_positions(most: int, hidden: int) -> Tensor:
    """(most, hidden): alternating sin and cos of the position divided by 10,000^(2i / hidden).

    >>> sine_positions(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    place = torch.arange(most, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, hidden, 2, dtype=torch.float32) * (-math.log(10_000.0) / hidden))
    table = torch.zeros(most, hidden)
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)[:, : hidden // 2]
    return table


@dataclass(frozen=True, kw_only=True)
class MMTConfig(CaptionerConfig):
    """Settings of the model MMT."""

    official: ClassVar[Mapping[str, Any]] = {
        "whole_decoder": False,
        "end_clip": "official",
        "captions": "official",
    }
    heads: int = 12
    layers: int = 2
    """Number of layers of the encoder, and of the decoder."""
    feedforward: int = 768
    word_dim: int = 300
    """Columns of a word's embedding, which subtitles and captions share."""
    whole_decoder: bool = True
    """Use the standard decoder layer, as in the paper; that of the public code has no feed-forward part."""
    smoothing: float = 0.1
    """Share of a label that goes to all other words."""
    reduction: str = "sum"
    """The loss of a step: the ``sum`` over all words (public code) or their ``mean``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "feedforward", "word_dim")
        below_one(self, "smoothing")
        one_of(self, "reduction", *REDUCTIONS)


class NormProjection(nn.Module):
    """A projection to the model's width (layer norm, dropout, linear map, ReLU), followed by another layer norm."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.project = Projection(width, hidden, dropout)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.project(x))


class MMT(Captioner):
    """Encoder and decoder, two layers each; ``encode`` once per moment, ``logits`` once per word."""

    config: MMTConfig

    def __init__(self, config: MMTConfig, dims: CaptionerDims) -> None:
        super().__init__(config, dims)
        hidden, count = config.hidden, len(self.vocabulary)
        self.pad = self.vocabulary.number[PAD]
        self.embedding = nn.Embedding(count, config.word_dim, padding_idx=self.pad)
        self.words = NormProjection(config.word_dim, hidden, config.dropout)
        self.video = NormProjection(dims.video or NO_VIDEO_COLUMNS, hidden, config.dropout)
        self.kind = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            TransformerLayer(hidden, config.heads, config.feedforward, config.dropout) for _ in range(config.layers)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(hidden, config.heads, config.feedforward, config.dropout, whole=config.whole_decoder)
            for _ in range(config.layers)
        )
        self.out = nn.Linear(hidden, hidden)
        self.out_norm = nn.LayerNorm(hidden)
        self.choose = nn.Linear(hidden, count)
        most = max(config.max_clips + config.max_words + 4, config.max_caption + 2)
        self.places = nn.Buffer(sine_positions(most, hidden), persistent=False)
        initialise(self)
        with torch.no_grad():
            self.embedding.weight[self.pad] = 0
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = NORM_EPSILON

    def encode(self, clips: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        seen, read = clips.shape[1], tokens.shape[1] - clips.shape[1]
        x: Tensor = self.words(self.embedding(tokens))
        if self.config.preparation.sees:
            nothing = self.video(clips.new_zeros(1, 1, clips.shape[2])).expand(clips.shape[0], read, -1)
            x = x + torch.cat([self.video(clips), nothing], 1)
        else:
            x = x + self.video(clips.new_zeros(1, 1, NO_VIDEO_COLUMNS))
        # words have the same positions whatever the number of clips
        text = self.config.max_clips + 2 if self.config.preparation.sees else 2
        places = torch.cat([self.places[:seen], self.places[text : text + read]])
        kinds = torch.cat([self.kind.weight[:1].expand(seen, -1), self.kind.weight[1:].expand(read, -1)])
        x = self.dropout(self.norm(x + places + kinds))
        for layer in self.encoder:
            x = layer(x, mask)
        return x

    def logits(self, memory: Tensor, mask: Tensor, begun: Tensor) -> Tensor:
        length = begun.shape[1]
        x = self.words(self.embedding(begun)) + self.places[:length]
        earlier = earlier_rows(length, x.device)
        for layer in self.decoder:
            x = layer(x, earlier, memory, mask)
        return self.choose(self.out_norm(F.gelu(self.out(x))))

    def loss(self, batch: CaptionBatch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        memory = self.encode(batch.clips, batch.tokens, batch.mask)
        given, target = batch.caption[:, :-1], batch.caption[:, 1:]
        there = target != self.pad
        values = smoothed_divergence(
            self.logits(memory, batch.mask, given)[there], target[there], self.config.smoothing
        )
        return {"likelihood": values.sum() if self.config.reduction == "sum" else values.mean()}


register_captioner("mmt", MMTConfig, MMT, "multi-modal transformer: describes a given moment in words (TVC)")
