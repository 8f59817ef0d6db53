"""MS-SL: scores a video by its best clip of any length, because a query may fit only a part of it.

The best clip (a mean of neighbouring rows) then guides attention over the frames (Dong et al., ACM MM 2022; it is PRMR
in MVMR's Table 3). Like MEE, it ranks videos and not moments: it is a first stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.attention import SelfEncoder
from momentseek.models.layers.projection import Positions, Projection, clip_width, initialise
from momentseek.models.layers.spans import even_spans
from momentseek.models.losses import Negatives, draw_negatives, hinge, pair_weights, related_masks, weighted_mean
from momentseek.models.model import CorpusModel, ModelConfig, at_least
from momentseek.models.registry import register

MAX_SIMILARITIES = 1 << 22
"""Maximum number of values (queries × videos × spans) in memory (16 MB)."""


@dataclass(frozen=True, kw_only=True)
class MsSlConfig(ModelConfig):
    """MS-SL's settings; the defaults are those for ActivityNet Captions."""

    official: ClassVar[Mapping[str, Any]] = {"spare_siblings": False}
    hidden: int = 384
    heads: int = 4
    max_clips: int = 128
    """Maximum number of rows of the frame branch."""
    fit: str = "resample"
    modalities: str = "video"
    parts: int = 32
    """Number of rows of the clip branch, averaged from the frames' rows; clips are means over all spans of them."""
    clip_share: float = 0.7
    """Weight of the best clip's cosine; the frames' cosine has the rest."""
    margin: float = 0.2
    clip_contrast: float = 0.02
    frame_contrast: float = 0.04
    hard_from: int | None = 20
    """First epoch, counted from 0, with hard negatives; None for never."""
    hard_pool: int = 20
    spare_siblings: bool = True
    """In the frame branch, exclude other queries of the same video from the negatives; the public code does not."""
    weighting: str = "linear"
    """How a pair is weighted by the similarity of query and caption: ``linear``, ``exponential`` or ``none``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "parts", "hard_pool")
        at_least(self, 0, "margin", "clip_contrast", "frame_contrast")
        if not 0 <= self.clip_share <= 1:
            raise MomentseekError(f"model: clip_share must be from 0 to 1, not {self.clip_share:g}")
        if len(self.modality_names) != 1:
            raise MomentseekError("model: MS-SL reads one modality; set modalities=video or modalities=subtitle")


def even_parts(rows: Tensor, mask: Tensor, parts: int) -> Tensor:
    """(n, L, d), (n, L) -> (n, parts, d): resample the real rows to ``parts`` means of equal duration.

    >>> even_parts(torch.tensor([[[1.0], [3.0], [5.0], [9.0]]]), torch.tensor([[True, True, True, False]]), 2)[0, :, 0]
    tensor([1.6667, 4.3333])
    """
    sums = torch.cat([torch.zeros_like(rows[:, :1]), (rows * mask[..., None]).cumsum(1)], 1)
    count = mask.sum(1, keepdim=True).clamp(min=1)
    at = torch.arange(parts + 1, device=rows.device) * count / parts
    whole = at.floor().long().clamp(max=rows.shape[1])
    after = (whole + 1).clamp(max=rows.shape[1])

    def upto(place: Tensor) -> Tensor:
        return sums.gather(1, place[..., None].expand(-1, -1, rows.shape[2]))

    area = upto(whole) + (at - whole)[..., None] * (upto(after) - upto(whole))
    return area.diff(dim=1) / (count / parts)[..., None]


def span_means(rows: Tensor) -> Tensor:
    """(n, parts, d) -> (n, spans, d): the means of all neighbouring rows, by first row and then by length.

    >>> span_means(torch.tensor([[[1.0], [3.0]]])).flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    parts = rows.shape[1]
    sums = torch.cat([torch.zeros_like(rows[:, :1]), rows.cumsum(1)], 1)
    first, last = torch.triu_indices(parts, parts, device=rows.device)
    return (sums[:, last + 1] - sums[:, first]) / (last + 1 - first)[:, None]


class BranchEncoder(nn.Module):
    """Projection, positions and one block of self-attention (as in XML), over words, clips or frames."""

    def __init__(self, width: int, most: int, config: MsSlConfig) -> None:
        super().__init__()
        self.projection = Projection(width, config.hidden, config.dropout)
        self.positions = Positions(most, config.hidden, config.dropout)
        self.block = SelfEncoder(config.hidden, config.heads, config.dropout)

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        """(n, L, width), (n, L) -> (n, L, hidden), zero in the padding."""
        encoded: Tensor = self.block(self.positions(self.projection(rows)), mask)
        return encoded * mask[..., None]


class MsSl(CorpusModel):
    """MS-SL: the best clip of any length, and frames attended with that clip as a guide."""

    config: MsSlConfig

    def __init__(self, config: MsSlConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        (self.modality,) = config.modality_names
        width = clip_width(dims, config, self.modality)
        self.words = BranchEncoder(dims.query, config.max_words, config)
        self.parts = BranchEncoder(width, config.parts, config)
        self.frames = BranchEncoder(width, config.max_clips, config)
        self.pool = nn.Linear(config.hidden, 1, bias=False)
        self.key = nn.Linear(config.hidden, config.hidden, bias=False)
        self.value = nn.Linear(config.hidden, config.hidden, bias=False)
        initialise(self)

    def encode_words(self, words: Words) -> Encodings:
        """The query's vector: its words weighted by a softmax."""
        states = self.words(words.features, words.mask)
        weight = self.pool(states)[..., 0].masked_fill(~words.mask, -torch.inf).softmax(1)
        return {"query": torch.einsum("nl,nld->nd", weight, states)}

    def encode_clips(self, clips: Clips) -> Encodings:
        """The encoded parts and the encoded frames; the means of spans are computed when matching."""
        rows = clips.modality(self.modality)
        parts = even_parts(rows, clips.mask, self.config.parts)
        return {
            "parts": self.parts(parts, torch.ones(parts.shape[:2], dtype=torch.bool, device=rows.device)),
            "frames": self.frames(rows, clips.mask),
            "mask": clips.mask,
        }

    def clip_scores(self, query: Tensor, spans: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(queries, videos) three times: the best cosine, the best dot product, and the best span by cosine."""
        dots = torch.einsum("qd,vsd->qvs", query, spans)
        lengths = query.norm(dim=1)[:, None, None] * spans.norm(dim=2)
        best = (dots / lengths.clamp(min=1e-8)).max(2)
        return best.values, dots.amax(2), best.indices

    def frame_scores(self, query: Tensor, guide: Tensor, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(queries, n) twice: cosine and dot product of queries with frames i (n, L, hidden) attended by guide i."""
        weight = torch.einsum("nd,nld->nl", guide, self.key(frames)).masked_fill(~mask, -torch.inf).softmax(1)
        seen = torch.einsum("nl,nld->nd", weight, self.value(frames))
        return F.normalize(query, dim=1) @ F.normalize(seen, dim=1).T, query @ seen.T

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The weighted mean of two cosines: the best clip's (weight ``clip_share``) and the frames'."""
        query, mask = queries["query"], videos["mask"]
        share, parts = self.config.clip_share, self.config.parts
        step = max(1, MAX_SIMILARITIES // max(1, len(query) * parts * (parts + 1) // 2))
        found = []
        for begin in range(0, len(mask), step):
            here = slice(begin, begin + step)
            spans, frames, there = span_means(videos["parts"][here]), videos["frames"][here], mask[here]
            clip, _, best = self.clip_scores(query, spans)
            frame = torch.stack(
                [
                    self._guided_cosines(query, spans[v][best[:, v]], frames[v : v + 1], there[v : v + 1])
                    for v in range(len(there))
                ],
                dim=1,
            )
            found.append(share * clip + (1 - share) * frame)
        return torch.cat(found, 1)

    def _guided_cosines(self, query: Tensor, guide: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
        """(queries,): each query with one video's frames, attended by the query's own guide."""
        weight = (guide @ self.key(frames[0]).T).masked_fill(~mask, -torch.inf).softmax(1)
        return F.cosine_similarity(query, weight @ self.value(frames[0]), dim=1)

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Return the same score for every span that fits."""
        return even_spans(videos["mask"], self.config.shortest, self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Triplets and contrast of the clip branch, and of the frame branch (section 3.4)."""
        pairs, config = batch.pairs, self.config
        query, videos = self.encode_words(batch.words)["query"], self.encode_clips(batch.clips)
        spans = span_means(videos["parts"])
        cosine, dots, best = self.clip_scores(query, spans)
        pool = Negatives(config.hard_from, config.hard_pool).at(epoch)
        weight = pair_weights(pairs.weight, config.weighting)
        guide = spans[pairs.video, best[pairs.query, pairs.video]]
        frame, frame_dots = self.frame_scores(
            query[pairs.query], guide, videos["frames"][pairs.video], videos["mask"][pairs.video]
        )
        known = self.siblings(pairs)
        return {
            "clip": self.clip_triplets(cosine, pairs, weight, pool, rng),
            "clip contrast": config.clip_contrast * clip_contrast(dots, pairs, weight),
            "frame": weighted_mean(frame_triplets(frame, known, config.margin, pool, rng), weight),
            "frame contrast": config.frame_contrast * weighted_mean(frame_contrast_of(frame_dots, known), weight),
        }

    def siblings(self, pairs: BatchPairs) -> Tensor:
        """(pairs, pairs): pairs to exclude from the negatives, because the pair's video answers the other's query."""
        if not self.config.spare_siblings:
            return torch.eye(len(pairs.query), dtype=torch.bool, device=pairs.query.device)
        return pairs.positive[pairs.query][:, pairs.video] | pairs.positive[pairs.query][:, pairs.video].T

    def clip_triplets(
        self, cosine: Tensor, pairs: BatchPairs, weight: Tensor, pool: int | None, rng: torch.Generator
    ) -> Tensor:
        """Pairs against a wrong video, and videos, by the mean over their queries, against a wrong query."""
        margin, known = self.config.margin, related_masks(pairs)
        own = cosine[pairs.query, pairs.video]
        rows = cosine[pairs.query]
        wrong, found = draw_negatives(rows, ~known.videos, pool, rng)
        to_video = torch.where(found, hinge(own, rows.gather(1, wrong[:, None])[:, 0], margin), 0.0)
        video, first = np.unique(pairs.video.cpu().numpy(), return_index=True)
        right = pairs.positive.to(cosine)
        mean = ((cosine * right).sum(0) / right.sum(0).clamp(min=1))[video]
        columns = cosine.T[video]
        wrong, found = draw_negatives(columns, ~known.queries[first], None if pool is None else 1, rng)
        to_query = torch.where(found, hinge(mean, columns.gather(1, wrong[:, None])[:, 0], margin), 0.0)
        return weighted_mean(to_video, weight) + to_query.mean()


def clip_contrast(dots: Tensor, pairs: BatchPairs, weight: Tensor) -> Tensor:
    """``-log softmax`` over videos for each pair, plus ``-log(own queries / all queries)`` for each video."""
    to_video = weighted_mean(-dots.log_softmax(1)[pairs.query, pairs.video], weight)
    own = dots.T.masked_fill(~pairs.positive.T, -torch.inf)[pairs.video.unique()]  # type: ignore[no-untyped-call]
    every = dots.T[pairs.video.unique()]  # type: ignore[no-untyped-call]
    return to_video + (every.logsumexp(1) - own.logsumexp(1)).mean()


def frame_triplets(scores: Tensor, known: Tensor, margin: float, pool: int | None, rng: torch.Generator) -> Tensor:
    """(pairs,): hinges of scores (pairs, pairs), right ones on the diagonal, against a wrong column and a wrong row."""
    own = scores.diagonal()
    total = torch.zeros_like(own)
    for table, related in ((scores, known), (scores.T, known.T)):
        wrong, found = draw_negatives(table, ~related, pool, rng)
        total = total + torch.where(found, hinge(own, table.gather(1, wrong[:, None])[:, 0], margin), 0.0)
    return total


def frame_contrast_of(scores: Tensor, known: Tensor) -> Tensor:
    """(pairs,): ``-log(e^s_ii / (row i + column i))`` without what is related; the pair itself counts twice."""
    spared = known & ~torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    rows, columns = (x.masked_fill(m, -torch.inf) for x, m in ((scores, spared), (scores.T, spared.T)))
    return torch.cat([rows, columns], 1).logsumexp(1) - scores.diagonal()


register(
    "ms_sl", MsSlConfig, MsSl, "MS-SL: videos by their best clip of any length, then by their frames; a first stage"
)
