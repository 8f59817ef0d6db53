"""UniVTG: one network for moments, highlights and summaries, clip by clip and without a decoder.

For every clip it predicts the probability of being in a moment, the distances to the moment's ends, and the similarity
to the query. Moments use the first two; highlights and summaries use the first and third (Lin et al., ICCV 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.detr import Perceptron, PlacedEncoderLayer, draw_by_xavier
from momentseek.models.layers.highlights import HighlightConfig, HighlightModel
from momentseek.models.layers.set_prediction import (
    WindowSamples,
    draw_clips,
    generalised_iou,
    saliency_targets,
    window_samples,
)
from momentseek.models.model import Predicted, above_nothing, at_least, below_one, one_of
from momentseek.models.registry import register

KERNEL = 3
"""Kernel size of the heads' convolutions, in clips."""
MIN_FLOAT = 1e-45
"""Added to a mask before taking the logarithm, as in the public code, where padding has a saliency of -103."""


@dataclass(frozen=True, kw_only=True)
class UniVtgConfig(HighlightConfig):
    """Settings of UniVTG; the defaults are those for QVHighlights."""

    official: ClassVar[Mapping[str, Any]] = {
        **HighlightConfig.official, "masked": False, "stamp": "public", "batch_contrast": True, "max_clips": 2000,
    }  # fmt: skip
    hidden: int = 1024
    encoder_layers: int = 4
    dropout: float = 0.0
    drop_path: float = 0.1
    """Share of the samples for which a branch of an encoder layer is left out in training."""
    max_words: int = 75
    windows: int = 1000
    """Maximum number of windows of a query in a training step; the clips of others are background."""
    masked: bool = True
    """Convolutions read zeros outside a video; with False, they read the batch's padding, as in the public code."""
    stamp: str = "middle"
    """The time from which a clip's distances are measured: its ``middle``, or as in the ``public`` code ``i +
    clip_seconds / 2`` (which mixes clips and seconds, and is the end of clips of 2 s)."""
    clip_seconds: float = 2.0
    """Seconds of a clip, for the stamp of the public code."""
    rating: str = "both"
    """How highlights are rated: by similarity to the query (``near``), or by that plus the probability of being in a
    moment (``both``)."""
    label: float = 10.0
    ends: float = 10.0
    iou: float = 1.0
    inter: float = 0.01
    intra: float = 0.05
    """Weights of the loss's terms: clips in moments, distances, overlap, contrast across and within videos."""
    background: float = 0.1
    """Weight of clips outside of moments."""
    temperature: float = 0.07
    batch_contrast: bool = False
    """Contrast the positive clip also with those at its position in the batch's other videos, as in public code."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "stamp", "middle", "public")
        one_of(self, "rating", "near", "both")
        below_one(self, "drop_path")
        at_least(self, 0, "label", "ends", "iou", "inter", "intra", "background")
        above_nothing(self, "clip_seconds", "temperature")


@dataclass(frozen=True, eq=False)
class ClipAnswers:
    """The predictions for every clip."""

    share: Tensor
    """(n, clips): the probability of lying in a moment."""
    times: Tensor
    """(n, clips, 2): start and end of that moment, as shares of the video."""
    near: Tensor
    """(n, clips): cosine of clip and query."""
    clips: Tensor
    """(n, clips, hidden), compared with ``query``."""
    query: Tensor
    """(n, hidden)."""
    mask: Tensor


@dataclass(frozen=True, eq=False)
class ClipTargets:
    """The targets of every clip."""

    within: Tensor
    """(n, clips), True in a window."""
    times: Tensor
    """(n, clips, 2): the window's start and end."""
    positive: Tensor
    """(n,), a clip inside."""
    ratings: Tensor
    """(n, clips)."""


class UniVtg(HighlightModel):
    """UniVTG: an encoder over clips and words, and three heads for each clip."""

    config: UniVtgConfig

    def __init__(self, config: UniVtgConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden = config.hidden
        self.kind = nn.Embedding(2, hidden)
        nn.init.normal_(self.kind.weight, std=0.02)
        self.encoder = nn.ModuleList(
            PlacedEncoderLayer(hidden, config.heads, config.feedforward, config.dropout, "gelu", path=config.drop_path)
            for _ in range(config.encoder_layers)
        )
        draw_by_xavier(self.encoder)
        self.pool = nn.Linear(hidden, 1, bias=False)
        nn.init.xavier_uniform_(self.pool.weight)
        self.label = Perceptron((hidden, hidden, hidden, 1), KERNEL, masked=config.masked)
        self.ends = Perceptron((hidden, hidden, hidden, 2), KERNEL, masked=config.masked)

    def encode_words(self, words: Words) -> Encodings:
        """Project the words, and add a vector that distinguishes them from clips."""
        found = super().encode_words(words)
        rows = found["words"] + self.kind.weight[0]
        placed = {} if self.word_places is None else {"word_places": self.word_places(rows)}
        return {**found, "words": rows, **placed}

    def encode_clips(self, clips: Clips) -> Encodings:
        """Project the clips, and add a vector that distinguishes them from words."""
        found = super().encode_clips(clips)
        return {**found, "clips": found["clips"] + self.kind.weight[1]}

    def stamps(self, mask: Tensor, like: Tensor) -> Tensor:
        """(n, clips): the time of each clip as a share of its video."""
        later = 0.5 if self.config.stamp == "middle" else self.config.clip_seconds / 2
        place = torch.arange(mask.shape[1], dtype=like.dtype, device=mask.device)
        return (place + later) / mask.sum(1, keepdim=True)

    def sentence(self, queries: Encodings) -> Tensor:
        """(n, hidden): the words, weighted by ``softmax(w' t)``."""
        weight = self.pool(queries["words"])[..., 0].masked_fill(~queries["words_mask"], -torch.inf).softmax(1)
        return torch.einsum("nw,nwd->nd", weight, queries["words"])

    def answer(self, queries: Encodings, videos: Encodings) -> ClipAnswers:
        """The predictions of the network for query i in video i."""
        mask, clips, query = videos["mask"], videos["clips"], self.sentence(queries)
        place = torch.cat(self.places(queries, videos), 1)
        rows, there = torch.cat([clips, queries["words"]], 1), torch.cat([mask, queries["words_mask"]], 1)
        for layer in self.encoder:
            rows = layer(rows, there, place)
        rows = rows[:, : mask.shape[1]]
        apart = self.ends(rows, mask).sigmoid() * rows.new_tensor([-1.0, 1.0])
        return ClipAnswers(
            self.label(rows, mask)[..., 0].sigmoid(),
            self.stamps(mask, rows)[..., None] + apart,
            F.cosine_similarity(clips, query[:, None], dim=-1),
            clips, query, mask,
        )  # fmt: skip

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """The moment of every clip; its score is the probability that the clip is in one."""
        found = self.answer(queries, videos)
        start, end = found.times.unbind(-1)
        return start, end, found.share.masked_fill(~found.mask, -torch.inf)

    def saliency(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The similarity to the query; with ``rating=both``, plus the probability of being in a moment."""
        found = self.answer(queries, videos)
        return found.near + found.share if self.config.rating == "both" else found.near

    def clip_targets(
        self, pairs: BatchPairs, samples: WindowSamples, mask: Tensor, rng: torch.Generator
    ) -> ClipTargets:
        """The window of each clip, by its stamp; if no stamp is in a window, the clip at the first window's start.

        The positive clip is drawn from those in windows: by their ratings, or without any by their stamps.
        """
        stamps = self.stamps(mask, samples.times[0])
        within, wanted = torch.zeros_like(mask), stamps.new_zeros(*mask.shape, 2)
        for row, windows in enumerate(samples.times):
            for start, end in windows:  # where windows overlap, the last counts
                hit = (stamps[row] >= start) & (stamps[row] <= end) & mask[row]
                within[row] |= hit
                wanted[row][hit] = torch.stack([start, end])
            if not within[row].any():
                first = torch.minimum(samples.clips[row][0, 0], mask[row].sum() - 1)
                within[row, first], wanted[row, first] = True, windows[0]
        if pairs.ratings is None:
            return ClipTargets(within, wanted, draw_clips(within, 1, rng)[:, 0], within.float())
        salient = saliency_targets(pairs, samples, mask, rng, public=self.config.seconds == "duration")
        return ClipTargets(within, wanted, salient.above[:, 1], salient.ratings)

    def terms(self, found: ClipAnswers, wanted: ClipTargets) -> dict[str, Tensor]:
        """The loss's terms, weighted."""
        config, inside = self.config, wanted.within
        weight = torch.where(inside, 1.0, config.background) * found.mask
        label = F.binary_cross_entropy(found.share, inside.to(found.share.dtype), weight, reduction="sum")
        ends = F.smooth_l1_loss(found.times[inside], wanted.times[inside], reduction="sum")
        near = 1 - generalised_iou(found.times[inside], wanted.times[inside])
        inter, intra = self.contrasts(found, wanted)
        return {
            "label": config.label * label / found.mask.sum(),
            "ends": config.ends * ends / inside.sum(),
            "iou": config.iou * near.mean(),
            "inter": config.inter * inter,
            "intra": config.intra * intra,
        }

    def contrasts(self, found: ClipAnswers, wanted: ClipTargets) -> tuple[Tensor, Tensor]:
        """The contrasts of positive clips and queries across the batch, and of positive with lower-rated clips."""
        rows, t = torch.arange(len(found.mask), device=found.mask.device), self.config.temperature
        positive = found.clips[rows, wanted.positive]
        near = F.normalize(positive, dim=1) @ F.normalize(found.query, dim=1).T / t
        inter = -(near.log_softmax(1).diagonal() + near.log_softmax(0).diagonal()).mean()
        own = wanted.ratings[rows, wanted.positive]
        among = (wanted.ratings < own[:, None]) & found.mask
        among[rows, wanted.positive] = True
        curve = (found.near + (among.to(found.near.dtype) + MIN_FLOAT).log()) / t
        intra = -curve.log_softmax(1)[rows, wanted.positive].mean()
        if self.config.batch_contrast:
            intra = intra - curve.log_softmax(0)[rows, wanted.positive].mean()
        return inter, intra

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Clips in moments, their distances, and two contrasts (the paper's section 3.3, equations 3 to 7)."""
        samples = window_samples(batch.pairs, self.config.windows, rng)
        videos = take_rows(self.encode_clips(batch.clips), samples.video)
        found = self.answer(take_rows(self.encode_words(batch.words), samples.query), videos)
        return self.terms(found, self.clip_targets(batch.pairs, samples, found.mask, rng))


register("univtg", UniVtgConfig, UniVtg, "UniVTG: moments, highlights and summaries from what every clip says")
