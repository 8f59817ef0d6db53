"""ABLR: regresses both boundaries of a moment from the query's attention over the video.

The query attends to the clips, the result attends to the query's words, and these attend to the clips again. The last
attention weights, or the features that they gather, give start and end (Yuan et al., AAAI 2019). There are no
candidates: each pair of query and video has one moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import Dropout, JointClips, clip_width
from momentseek.models.layers.recurrent import Recurrent
from momentseek.models.model import CorpusModel, GroundingConfig, Predicted, at_least, one_of
from momentseek.models.registry import register

WIDE_FEATURES = 4096
"""Number of columns from which features are projected before the LSTM, as in the public code."""
FLOOR = 1e-12
"""Added to the attention before taking the logarithm."""
SHORTEST_SHARE = 1e-4
"""Duration, as a share of the video, of a moment whose boundaries coincide."""


@dataclass(frozen=True, kw_only=True)
class AblrConfig(GroundingConfig):
    """ABLR's settings; the defaults are those for ActivityNet Captions."""

    official: ClassVar[Mapping[str, Any]] = {"reduction": "sum"}
    hidden: int = 256
    max_clips: int = 128
    fit: str = "stretch"
    max_words: int = 35
    dropout: float = 0.5
    between: int = 64
    """Number of hidden columns between the attention (or its features) and the two boundaries."""
    head: str = "weights"
    """The boundaries come from the attention's ``weights`` over the clips (AW), or from the ``features`` they gather
    (AF)."""
    attention: float = 5.0
    """Weight of the attention's distance from the truth (beta)."""
    reduction: str = "mean"
    """The boundaries' error is the ``mean`` over a batch, as the attention's is, or the ``sum`` (the public code), so
    that the regression counts a hundred times as much."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "head", "weights", "features")
        one_of(self, "reduction", "mean", "sum")
        at_least(self, 1, "between")
        at_least(self, 0, "attention")
        one_of(self, "fit", "stretch", "rounded")


class ConditionedAttention(nn.Module):
    """``a_j ∝ exp(w' tanh(W g + U x_j + b))`` over the rows that are there, and ``sum_j a_j x_j``."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.given = nn.Linear(hidden, hidden)
        self.rows = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, rows: Tensor, mask: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """(n, L, d), (n, L), (n, d) -> gathered (n, d) and weights (n, L)."""
        scores = self.score(torch.tanh(self.given(given)[:, None] + self.rows(rows)))[..., 0]
        weights = scores.masked_fill(~mask, -torch.inf).softmax(1)
        return torch.einsum("nl,nld->nd", weights, rows), weights


class Ablr(CorpusModel):
    """Two boundaries from co-attention of words and clips."""

    retrieves: ClassVar[bool] = False
    config: AblrConfig

    def __init__(self, config: AblrConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden = config.hidden
        columns = sum(clip_width(dims, config, name) for name in config.modality_names)
        narrow = columns >= WIDE_FEATURES or len(config.modality_names) > 1
        self.clip_in = JointClips(config, dims) if narrow else None
        self.clip_states = Recurrent(hidden if narrow else columns, 2 * hidden)
        self.word_states = Recurrent(dims.query, 2 * hidden)
        self.clip_out, self.word_out = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.dropout = Dropout(config.dropout)
        self.over_clips, self.over_words = ConditionedAttention(hidden), ConditionedAttention(hidden)
        if config.head == "weights":
            self.boundaries = nn.Sequential(nn.Linear(config.max_clips, config.between), nn.Linear(config.between, 2))
        else:
            self.boundaries = nn.Sequential(
                nn.Linear(2 * hidden, hidden),
                nn.ReLU(),
                nn.Linear(hidden, config.between),
                nn.Linear(config.between, 2),
            )
        with torch.no_grad():  # the middle half, so that the last ReLU is not shut from the start
            self.boundaries[-1].bias.copy_(torch.tensor([0.25, 0.75]))  # type: ignore[operator]

    @property
    def pair_numbers(self) -> int:
        """Both attentions over the clips."""
        return 4 * self.config.hidden

    def encode_words(self, words: Words) -> Encodings:
        """The states of the words; padding is zero."""
        states = self.dropout(self.word_states(words.features, words.mask)[0])
        return {"words": F.relu(self.word_out(states)) * words.mask[..., None], "words_mask": words.mask}

    def encode_clips(self, clips: Clips) -> Encodings:
        """The states of the clips."""
        (name, *_) = self.config.modality_names
        rows = clips.modality(name) if self.clip_in is None else self.clip_in(clips)
        states = self.dropout(self.clip_states(rows, clips.mask)[0])
        return {"clips": F.relu(self.clip_out(states)), "mask": clips.mask}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Return 0 for every video: attention within a video cannot rank videos."""
        return queries["words"].new_zeros(len(queries["words"]), len(videos["mask"]))

    def regress(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """(n, 2): start and end of query i in video i as shares, at least 0; and the last attention (n, clips)."""
        words, there = queries["words"], queries["words_mask"]
        whole = words.sum(1) / there.sum(1, keepdim=True).clamp(min=1)
        seen, _ = self.over_clips(videos["clips"], videos["mask"], whole)
        attended, _ = self.over_words(words, there, seen)
        gathered, weights = self.over_clips(videos["clips"], videos["mask"], attended)
        given = weights if self.config.head == "weights" else torch.cat([gathered, attended], 1)
        return F.relu(self.boundaries(given)), weights

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """One moment for each pair: cut to the video, and turned round if it ends before it begins."""
        ends = self.regress(queries, videos)[0].clamp(max=1.0)
        start, end = ends.amin(1, keepdim=True), ends.amax(1, keepdim=True)
        middle = ((start + end) / 2).clamp(SHORTEST_SHARE / 2, 1 - SHORTEST_SHARE / 2)
        short = end - start < SHORTEST_SHARE
        start = torch.where(short, middle - SHORTEST_SHARE / 2, start)
        return start, torch.where(short, middle + SHORTEST_SHARE / 2, end), torch.zeros_like(start)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Smooth L1 of the boundaries, and minus the logarithm of the attention inside the moment (eq. 9, 10)."""
        pairs = batch.pairs
        assert pairs.times is not None, "boundaries are shares of the video"
        queries = take_rows(self.encode_words(batch.words), pairs.query)
        ends, weights = self.regress(queries, take_rows(self.encode_clips(batch.clips), pairs.video))
        error = F.smooth_l1_loss(ends, pairs.times, reduction="none").sum(1)
        place = torch.arange(weights.shape[1], device=weights.device)
        inside = (place >= pairs.start[:, None]) & (place <= pairs.end[:, None])
        calibrated = -(inside * (weights + FLOOR).log()).sum(1) / inside.sum(1).clamp(min=1)
        total = pairs.weight.sum().clamp(min=1e-6)
        scale = 1.0 if self.config.reduction == "sum" else 1 / total
        return {
            "boundaries": scale * (error * pairs.weight).sum(),
            "attention": self.config.attention * (calibrated * pairs.weight).sum() / total,
        }


register("ablr", AblrConfig, Ablr, "ABLR: start and end regressed from co-attention of words and clips", format=2)
