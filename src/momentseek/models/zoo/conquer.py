"""CONQUER: contextual query-aware ranking of moments in the videos of a first stage (Hou et al., ACM MM 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.attention import NetVLAD, ProjectedTransformer, TransformerLayer
from momentseek.models.layers.projection import Dropout, Positions, Projection, clip_width, initialise
from momentseek.models.layers.spans import span_grid
from momentseek.models.losses import draw_negatives, pair_weights, related_masks, weighted_mean
from momentseek.models.model import CorpusModel, ModelConfig, one_of
from momentseek.models.registry import register

MASKED_SIMILARITY = -1e4
"""Similarity of padding: real clips and words ignore it, and padding weights all equally."""
SCORE_KINDS = ("disjoint", "general", "exclusive")


class QueryAware(nn.Module):
    """Joins each clip with query-aware features, four times as wide: ``[c; A; c * A; c * B]``.

    Clip c_i and word q_j are compared by ``S_ij = a . c_i + b . q_j + (w * c_i) . q_j``. ``A_i`` is the mean of the
    words, weighted by the softmax of row i. ``B``, one vector for the whole video, is the mean of the clips, weighted
    by the softmax of ``max_j S_ij`` (Seo et al., ICLR 2017, section 2; CONQUER, section 3.3).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.clip = nn.Linear(dim, 1, bias=False)
        self.word = nn.Linear(dim, 1, bias=False)
        self.both = nn.Parameter(torch.empty(dim))
        nn.init.normal_(self.both, std=dim**-0.5)

    def forward(self, clips: Tensor, clip_mask: Tensor, words: Tensor, word_mask: Tensor) -> Tensor:
        """(n, L, dim), (n, L), (n, T, dim), (n, T) -> (n, L, 4 dim)."""
        similar = self.clip(clips) + self.word(words).transpose(1, 2) + (clips * self.both) @ words.transpose(1, 2)
        seen = clip_mask[:, :, None] & word_mask[:, None, :]
        similar = similar.masked_fill(~seen, MASKED_SIMILARITY)
        read = similar.softmax(2) @ words
        found = similar.amax(2).softmax(1)[:, None] @ clips
        return torch.cat([clips, read, clips * read, clips * found], dim=-1)


class ModalityWeights(nn.Module):
    """The query's weights of the modalities, from words pooled by NetVLAD: ``softmax(W vlad(q))``."""

    def __init__(self, dim: int, clusters: int, modalities: int, dropout: float = 0.0, *, masked: bool = True) -> None:
        super().__init__()
        self.pool = NetVLAD(dim, clusters, norm="layer", masked=masked)
        self.dropout = Dropout(dropout)
        self.weigh = nn.Linear(self.pool.width, modalities, bias=False)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """(n, T, dim), (n, T) -> (n, modalities)."""
        return self.weigh(self.dropout(self.pool(words, mask))).softmax(-1)


def fuse(weights: Tensor, modalities: Sequence[Tensor]) -> Tensor:
    """``sum_m weights[:, m] * modalities[m]``, clip by clip.

    >>> fuse(torch.tensor([[0.25, 0.75]]), [torch.ones(1, 1, 2), 2 * torch.ones(1, 1, 2)]).tolist()
    [[[1.75, 1.75]]]
    """
    return torch.einsum("nm,mnld->nld", weights, torch.stack(list(modalities)))


@dataclass(frozen=True, kw_only=True)
class ConquerConfig(ModelConfig):
    """Settings of CONQUER; the defaults are the published ones."""

    official: ClassVar[Mapping[str, Any]] = {"masked": False, "positive_mask": False, "weighting": "none"}
    hidden: int = 768
    heads: int = 12
    feedforward: int = 3072
    clusters: int = 32
    """Number of centres with which NetVLAD pools the query to weight the modalities."""
    kernel: int = 5
    head: int = 128
    """Number of columns between the two convolutions of a start or end head."""
    longest: int = 24
    videos: int = 10
    score: str = "disjoint"
    """The score of moments across videos: ``disjoint`` (start + end alone, which shared normalisation makes
    comparable), ``general`` (probabilities within the video and the first stage's score), or ``exclusive`` (such
    probabilities and a learned score of the video)."""
    video_head: int | None = None
    """Number of columns between the two linear maps that score a video, for ``exclusive``; by default ``head``."""
    alpha: float = 0.0
    """The power of the first stage's score r in ``p_start p_end r^alpha``, for ``general``; 1 as published."""
    multiply: bool = True
    """False uses ``p_start p_end exp(alpha r)`` for ``general``, as XML does, so that r may be negative."""
    negatives: int = 3
    """Number of wrong videos in the normalisation of the right one; 0 in TVR-Ranking's runs and for ``general``."""
    negatives_from: str = "list"
    """Draw wrong videos from a first stage's ``list`` (see ``lists``), or from the ``batch``."""
    masked: bool = True
    """Make scores independent of padding; False lets padding reach the words' pooling, the heads' convolutions and the
    video's maximum, as in the public code."""
    span_weight: float = 0.01
    video_weight: float = 0.05
    """Weight of the video's cross-entropy, for ``exclusive``."""
    weighting: str = "linear"
    """How a pair is weighted by the similarity of query and caption: ``linear``, ``exponential`` or ``none``."""
    positive_mask: bool = True
    """Exclude videos from the negatives that are related to the query in the training set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "score", *SCORE_KINDS)
        one_of(self, "negatives_from", "list", "batch")
        if self.alpha and self.score != "general":
            raise MomentseekError(f"{self.score} scores leave the first stage out; set score to general, or alpha to 0")
        if not self.alpha and self.score == "general":
            raise MomentseekError("general scores weigh the first stage's; set alpha (1 as published)")
        if self.kernel % 2 == 0:
            raise MomentseekError(f"the heads' kernel must be odd, not {self.kernel}")


class ConquerHead(nn.Module):
    """A linear map, an encoder and two convolutions without bias: ``W2 relu(conv(x))``, one logit per clip."""

    def __init__(self, width: int, config: ConquerConfig) -> None:
        super().__init__()
        self.encoder = _context_layer(width, config)
        self.wide = nn.Conv1d(config.hidden, config.head, config.kernel, padding=config.kernel // 2, bias=False)
        self.narrow = nn.Conv1d(config.head, 1, 1, bias=False)
        self.masked = config.masked

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, L, width), (n, L) -> encoded clips (n, L, hidden) and logits (n, L), minus infinity in the padding."""
        x = self.encoder(x, mask)
        if self.masked:
            x = x * mask[..., None]
        logits = self.narrow(self.wide(x.transpose(1, 2)).relu()).squeeze(1)
        return x, logits.masked_fill(~mask, -torch.inf)


class Conquer(CorpusModel):
    """CONQUER: fuses modalities by the query, makes clips query-aware, then predicts starts, and ends given starts.

    Videos are encoded once, with both modalities in one transformer layer. All else is computed per query and video, so
    a first stage must choose the videos.
    """

    retrieves: ClassVar[bool] = False
    config: ConquerConfig

    def __init__(self, config: ConquerConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden, dropout = config.hidden, config.dropout
        self.modalities = config.modality_names
        self.project_words = Projection(dims.query, hidden, dropout)
        self.word_kind = nn.Parameter(torch.empty(hidden))
        self.word_positions = Positions(config.max_words, hidden, dropout)
        self.word_encoder = _layer(config)
        self.project_clips = nn.ModuleDict(
            {name: Projection(clip_width(dims, config, name), hidden, dropout) for name in self.modalities}
        )
        self.kind = nn.Embedding(len(self.modalities), hidden)
        self.clip_positions = Positions(config.max_clips, hidden, dropout)
        self.joint = _layer(config)
        several = len(self.modalities)
        self.weigh = (
            ModalityWeights(hidden, config.clusters, several, dropout, masked=config.masked) if several > 1 else None
        )
        self.read = QueryAware(hidden)
        self.contextual = _context_layer(4 * hidden, config)
        self.begin = ConquerHead(5 * hidden, config)
        self.end = ConquerHead(2 * hidden, config)
        self.whole = _context_layer(5 * hidden, config) if config.score == "exclusive" else None
        between = config.video_head or config.head
        self.whole_score = (
            nn.Sequential(nn.Linear(hidden, between, bias=False), nn.ReLU(), nn.Linear(between, 1, bias=False))
            if config.score == "exclusive"
            else None
        )
        initialise(self)
        nn.init.normal_(self.word_kind, std=0.02)
        if self.weigh is not None:
            nn.init.normal_(self.weigh.pool.assign.weight, std=hidden**-0.5)

    @property
    def listed_negatives(self) -> int:
        return self.config.negatives if self.config.negatives_from == "list" else 0

    def encode_words(self, words: Words) -> Encodings:
        x = self.project_words(words.features) + self.word_kind
        x = self.word_encoder(self.word_positions(x), words.mask)
        weight = self.weigh(x, words.mask) if self.weigh is not None else x.new_ones(len(x), 1)
        return {"words": self._there(x, words.mask), "word_mask": words.mask, "weights": weight}

    def encode_clips(self, clips: Clips) -> Encodings:
        parts = [
            self.clip_positions(self.project_clips[name](clips.modality(name)) + self.kind.weight[m])
            for m, name in enumerate(self.modalities)
        ]
        several = len(self.modalities)
        mask = clips.mask.repeat(1, several)
        x = self._there(self.joint(torch.cat(parts, dim=1), mask), mask)
        return {"mask": clips.mask} | dict(zip(self.modalities, x.chunk(several, dim=1), strict=True))

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Return 0 for every video: a first stage ranks them."""
        return queries["words"].new_zeros(len(queries["words"]), len(videos["mask"]))

    def logits(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor, Tensor | None]:
        """Start and end logits of video i for query i, (n, L), and the video's own score, (n,), if it has one.

        Logits of different videos are comparable for one query, because they share their normalisation in training.
        """
        mask = videos["mask"]
        fused = fuse(queries["weights"], [videos[name] for name in self.modalities])
        aware = self.read(fused, mask, queries["words"], queries["word_mask"])
        context = self.contextual(aware, mask)
        both = torch.cat([aware, context], dim=-1)
        begun, begin = self.begin(both, mask)
        _, end = self.end(torch.cat([context, begun], dim=-1), mask)
        if self.whole is None or self.whole_score is None:
            return begin, end, None
        seen = self.whole(both, mask)
        if self.config.masked:
            seen = seen.masked_fill(~mask[..., None], -torch.inf)
        return begin, end, self.whole_score(seen.amax(1)).squeeze(-1)

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        begin, end, video = self.logits(queries, videos)
        if self.config.score != "disjoint":
            begin, end = begin.log_softmax(1), end.log_softmax(1)
        grid = span_grid(begin, end, self.config.shortest, self.config.longest)
        return grid if video is None else grid + video[:, None, None]

    def weigh_first_stage(self, scores: FloatArray) -> FloatArray:
        """The logarithms of the first stage's scores if these multiply the probabilities."""
        if not self.config.multiply:
            return scores
        if (scores[scores > -np.inf] <= 0).any():
            raise MomentseekError(
                "the first stage has scores of 0 and below, which cannot multiply a probability; set multiply=false"
            )
        return np.log(scores, where=scores > 0, out=np.full_like(scores, -np.inf))

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Cross-entropy of start and end over the clips of the right video and of ``negatives`` wrong ones.

        The wrong videos are those drawn for the query (``BatchPairs.hard_videos``), else unrelated ones of the batch.
        """
        c, pairs = self.config, batch.pairs
        wrong = ~related_masks(pairs, masked=c.positive_mask).videos
        if pairs.hard_videos is not None:
            wrong = wrong & pairs.hard_videos[pairs.query]
        chosen, there = [pairs.video], [torch.ones_like(pairs.video, dtype=torch.bool)]
        for _ in range(c.negatives):
            video, found = draw_negatives(wrong.float(), wrong, None, rng)
            chosen.append(video)
            there.append(found)
            wrong = wrong.scatter(1, video[:, None], False)
        shown, valid = torch.stack(chosen, 1), torch.stack(there, 1)  # (pairs, 1 + negatives), the right one first
        queries = take_rows(self.encode_words(batch.words), pairs.query.repeat_interleave(shown.shape[1]))
        videos = take_rows(self.encode_clips(batch.clips), shown.flatten())
        begin, end, video_score = self.logits(queries, videos)
        values = shared_cross_entropy(begin, valid, pairs.start) + shared_cross_entropy(end, valid, pairs.end)
        weight = pair_weights(pairs.weight, c.weighting)
        terms = {"span": c.span_weight * weighted_mean(values, weight)}
        if video_score is not None:
            scores = video_score.view(valid.shape).masked_fill(~valid, -torch.inf)
            terms["video"] = c.video_weight * weighted_mean(-scores.log_softmax(1)[:, 0], weight)
        return terms

    def _there(self, x: Tensor, mask: Tensor) -> Tensor:
        return x * mask[..., None] if self.config.masked else x


def shared_cross_entropy(logits: Tensor, valid: Tensor, target: Tensor) -> Tensor:
    """``-log softmax`` of clip ``target`` of each row's first video among the clips of all its videos.

    ``logits`` is (n * videos, L), minus infinity in the padding; ``valid``, (n, videos), leaves videos out.
    (Shared normalisation: Clark and Gardner, ACL 2018; CONQUER, section 3.5.)

    >>> even = torch.zeros(2, 4)
    >>> shared_cross_entropy(even, torch.tensor([[True, True]]), torch.tensor([1])).exp()  # one of eight
    tensor([8.])
    """
    several = logits.view(*valid.shape, -1).masked_fill(~valid[..., None], -torch.inf)
    return -several.flatten(1).log_softmax(1).gather(1, target[:, None]).squeeze(1)


def _layer(config: ConquerConfig) -> TransformerLayer:
    return TransformerLayer(config.hidden, config.heads, config.feedforward, config.dropout)


def _context_layer(width: int, config: ConquerConfig) -> ProjectedTransformer:
    return ProjectedTransformer(width, config.hidden, config.heads, config.feedforward, config.dropout)


register("conquer", ConquerConfig, Conquer, "contextual query-aware ranking in the videos of a first stage", format=2)
