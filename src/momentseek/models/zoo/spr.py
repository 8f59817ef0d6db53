"""SPR: retrieves short segments from the whole corpus, joins neighbours to proposals, and refines these.

Videos are cut into segments of a few clips, each encoded as one vector. For a query, the best segments of all videos
are retrieved, and adjacent ones are joined. ReLoCLNet then reads every such proposal with some context like a video
(Zhang, Zhu and Sun 2025). Both networks are trained together here. As they share no weights, this is equivalent to
training one after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.attention import TransformerLayer, best_clip
from momentseek.models.layers.projection import JointClips
from momentseek.models.layers.recurrent import mean_of_words
from momentseek.models.model import CorpusModel, ModelConfig, Phase, Predicted, at_least
from momentseek.models.registry import register
from momentseek.models.zoo.reloclnet import ReLoCLNet, ReLoCLNetConfig

FIRST_SCALE = 100.0
"""Initial factor of the cosines, which is CLIP's."""
SCALE_RATE = 0.01
"""Factor of the learning rate for that scale."""
REFINED = "refined_"
"""Prefix of the names of the second network's encodings of queries."""


@dataclass(frozen=True, kw_only=True)
class SprConfig(ModelConfig):
    """Settings of SPR; the defaults are those for TVR-Ranking."""

    hidden: int = 768
    heads: int = 12
    layers: int = 6
    dropout: float = 0.0
    max_clips: int = 400
    alpha: float = 0.0
    videos: int = 200
    segment: int = 4
    """Number of clips of a segment."""
    retrieved: int = 200
    """Number of segments retrieved per query from all videos together."""
    per_video: int = 4
    """Number of segments retrieved when a single video is searched."""
    proposals: int = 8
    """Maximum number of proposals of a video that are refined."""
    context: int = 8
    """Number of clips before and after a proposal that are read with it."""
    window: int = 64
    """Maximum number of clips of a proposal with its context."""
    relevant: float = 0.3
    """Minimum similarity of moments that are positives; all positives have the same weight."""
    refine_hidden: int = 768
    refine_heads: int = 8
    refine_dropout: float = 0.1
    span_weight: float = 0.02
    """Weight of starts and ends in the second network's loss."""
    sharpness: float = 30.0
    """Weight of a proposal's match, added to the log-probabilities of its start and end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "layers", "segment", "retrieved", "per_video", "proposals", "window")
        at_least(self, 0, "context", "relevant", "sharpness", "span_weight")
        if self.window < self.segment + 2 * self.context:
            raise MomentseekError(
                f"model: window is {self.window} clips, and a segment with its context has "
                f"{self.segment + 2 * self.context}; choose more"
            )

    @property
    def refiner(self) -> ReLoCLNetConfig:
        """Settings of the second network."""
        return ReLoCLNetConfig(
            hidden=self.refine_hidden, heads=self.refine_heads, dropout=self.refine_dropout, max_words=self.max_words,
            max_clips=self.window, modalities=self.modalities, endpoints=self.endpoints, shortest=self.shortest,
            longest=self.longest, weighted="none", hard_from=None, span_weight=self.span_weight, fit="truncate",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class VideoProposals:
    """Proposals to refine, (n, proposals) each: first clip, the clip after the last, and whether the entry is real."""

    first: Tensor
    after: Tensor
    there: Tensor


def merge_segments(scores: Tensor, chosen: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Join adjacent chosen segments to runs, best first; returns first and last segments, and whether a run is real.

    ``scores`` and ``chosen`` are (n, segments); the results (n, count).

    >>> scores, chosen = torch.tensor([[1.0, 3.0, 0.0, 2.0]]), torch.tensor([[True, True, False, True]])
    >>> [x.tolist() for x in merge_segments(scores, chosen, 3)]
    [[[0, 3, 0]], [[1, 3, 1]], [[True, True, False]]]
    """
    begins = chosen & ~F.pad(chosen, (1, 0))[:, :-1]
    run = begins.long().cumsum(1) * chosen  # 0 for segments that are not chosen
    place = torch.arange(chosen.shape[1], device=chosen.device)
    same = (run[:, :, None] == run[:, None, :]) & chosen[:, :, None]
    best = torch.where(same, scores[:, None, :], -torch.inf).argmax(2)
    stands = chosen & (best == place)  # the best segment stands for its run
    value, at = torch.where(stands, scores, -torch.inf).topk(min(count, chosen.shape[1]), dim=1)
    own = same.gather(1, at[..., None].expand(-1, -1, same.shape[2]))
    first = torch.where(own, place, chosen.shape[1]).amin(2)
    last = torch.where(own, place, -1).amax(2)
    there = value > -torch.inf
    fill = (0, count - there.shape[1])
    first, last, there = F.pad(first, fill), F.pad(last, fill), F.pad(there, fill)
    return torch.where(there, first, 0), torch.where(there, last, 1), there


class Spr(CorpusModel):
    """SPR: retrieval of segments, and refinement of proposals."""

    rate_groups: ClassVar[tuple[str, ...]] = ("scale",)
    config: SprConfig

    def __init__(self, config: SprConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.clips = JointClips(config, dims)
        self.encoder = nn.ModuleList(
            TransformerLayer(config.hidden, config.heads, 4 * config.hidden, config.dropout)
            for _ in range(config.layers)
        )
        self.segment_out = nn.Linear(config.hidden, config.hidden)
        self.sentence_out = nn.Linear(dims.query, config.hidden)
        self.scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))
        self.refiner = ReLoCLNet(config.refiner, dims)

    def phase_at(self, step: int, epoch: int) -> Phase:
        """The factor of the cosines has a lower learning rate."""
        return Phase(rates={"scale": SCALE_RATE})

    @property
    def best_clip_parts(self) -> tuple[str, ...]:
        """A video's score is that of its best segment."""
        return ("segment",)

    @property
    def unit_depth(self) -> int:
        """Number of segments of all videos that form the proposals."""
        return self.config.retrieved

    @property
    def pair_numbers(self) -> int:
        """Number of values of all proposals, per clip of the video."""
        config = self.config
        return 8 * config.refine_hidden * max(1, config.proposals * config.window // config.max_clips)

    def encode_words(self, words: Words) -> Encodings:
        """The query's vector for segments, and the second network's encodings of the query."""
        refined = {f"{REFINED}{name}": x for name, x in self.refiner.encode_words(words).items()}
        return {"segment": F.normalize(self.sentence_out(mean_of_words(words)), dim=1), **refined}

    def encode_clips(self, clips: Clips) -> Encodings:
        """Each clip's features, and the vector of the segment that it is in."""
        rows = self.segments(clips).repeat_interleave(self.config.segment, 1)[:, : clips.mask.shape[1]]
        features = {name: clips.modality(name) for name in self.config.modality_names}
        return {"segment": rows, **{f"{n}_rows": x for n, x in features.items()}, "mask": clips.mask}

    def segments(self, clips: Clips) -> Tensor:
        """(videos, segments, hidden), of length 1: a transformer over the clips of each segment, with a residual."""
        size, hidden = self.config.segment, self.config.hidden
        more = -clips.mask.shape[1] % size
        mask = F.pad(clips.mask, (0, more)).view(-1, size)
        rows = F.pad(self.clips(clips), (0, 0, 0, more)).view(-1, size, hidden)
        seen = mask | ~mask.any(1, keepdim=True)  # segments of padding need something to attend to
        x = rows
        for layer in self.encoder:
            x = layer(x, seen)
        x = F.normalize(rows + x, dim=2) * mask[..., None]
        pooled = x.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return F.normalize(self.segment_out(pooled), dim=1).view(len(clips.mask), -1, hidden)

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(queries, videos): the cosine of each query with each video's best segment."""
        return best_clip(queries["segment"], videos["segment"], videos["mask"])

    def unit_scores(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, segments): cosines of query i with the segments of video i; minus infinity in the padding."""
        at = slice(None, None, self.config.segment)
        cosine = torch.einsum("nd,nsd->ns", queries["segment"], videos["segment"][:, at])
        return cosine.masked_fill(~videos["mask"][:, at], -torch.inf)

    def proposals(self, queries: Encodings, videos: Encodings) -> VideoProposals:
        """Runs of retrieved segments with their context, among the best of all videos or of this video."""
        config, scores, count = self.config, self.unit_scores(queries, videos), videos["mask"].sum(1)
        if "cutoff" in queries:
            chosen = scores >= queries["cutoff"][:, None]
        else:
            least = scores.topk(min(config.per_video, scores.shape[1]), dim=1).values[:, -1:]
            chosen = scores >= least
        first, last, there = merge_segments(scores, chosen & (scores > -torch.inf), config.proposals)
        begin = (first * config.segment - config.context).clamp(min=0)
        after = torch.minimum((last + 1) * config.segment + config.context, count[:, None])
        return VideoProposals(begin, torch.minimum(after, begin + config.window), there)

    def cut(self, videos: Encodings, found: VideoProposals) -> Clips:
        """The clips of every proposal as those of a separate video: n · proposals videos."""
        place = found.first[..., None] + torch.arange(self.config.window, device=found.first.device)
        mask = place < found.after[..., None]
        mask = mask | ~mask.any(2, keepdim=True)  # missing proposals are read too, and dropped later
        place = place.clamp(max=videos["mask"].shape[1] - 1)
        row = torch.arange(len(place), device=place.device)[:, None, None]
        rows = {n: videos[f"{n}_rows"][row, place].flatten(0, 1) for n in self.config.modality_names}
        mask = mask.flatten(0, 1)
        kept = {name: x * mask[..., None] for name, x in rows.items()}
        return Clips(kept.get("video"), kept.get("subtitle"), mask)

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """The best span of every proposal, scored ``sharpness · match + log p_start + log p_end``."""
        found, config = self.proposals(queries, videos), self.config
        read = self.refiner.encode_clips(self.cut(videos, found))
        asked = {
            name.removeprefix(REFINED): x.repeat_interleave(config.proposals, 0)
            for name, x in queries.items()
            if name.startswith(REFINED)
        }
        near = [(read[m] @ asked[m][..., None])[..., 0] for m in self.refiner.modalities]
        match = torch.stack([c.masked_fill(~read["mask"], -torch.inf).amax(1) for c in near]).mean(0)
        spans = self.refiner.spans(asked, read)
        score, at = spans.flatten(1).max(1)
        shape = found.first.shape
        start = torch.div(at, spans.shape[2], rounding_mode="floor").view(shape)
        end = start + (at % spans.shape[2]).view(shape) + config.shortest
        whole = videos["mask"].sum(1, keepdim=True)
        value = (config.sharpness * match + score).view(shape).masked_fill(~found.there, -torch.inf)
        return (found.first + start) / whole, (found.first + end) / whole, value

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """MIL-NCE of queries and segments in both directions, and ReLoCLNet's loss on the true moments' proposals."""
        pairs = keep_relevant(batch.pairs, self.config.relevant)
        place = torch.rand(len(pairs.start), generator=rng, device=rng.device).to(pairs.start.device)
        middle = pairs.start + ((pairs.end - pairs.start + 1) * place).long()
        segment = torch.div(middle, self.config.segment, rounding_mode="floor")
        vectors = self.segments(batch.clips)[pairs.video, segment]
        words = F.normalize(self.sentence_out(mean_of_words(batch.words)), dim=1)
        scores = self.scale.exp() * words @ vectors.T
        edges = segment * self.config.segment, (segment + 1) * self.config.segment - 1
        related = related_stretches(pairs, len(words), *edges)
        refined = self.refiner.loss(self.proposal_batch(replace(batch, pairs=pairs)), epoch, rng)
        return {"segments": both_ways(scores, related), **refined}

    def proposal_batch(self, batch: Batch) -> Batch:
        """The batch whose videos are the moments' segments with their context."""
        config, pairs = self.config, batch.pairs
        count = batch.clips.mask.sum(1)[pairs.video]
        first = torch.div(pairs.start, config.segment, rounding_mode="floor") * config.segment - config.context
        first = first.clamp(min=0)
        last = torch.div(pairs.end, config.segment, rounding_mode="floor") + 1
        after = torch.minimum(last * config.segment + config.context, count)
        after = torch.minimum(after, first + config.window)
        rows = {f"{n}_rows": batch.clips.modality(n)[pairs.video] for n in config.modality_names}
        found = VideoProposals(first[:, None], after[:, None], torch.ones_like(first[:, None], dtype=torch.bool))
        clips = self.cut({**rows, "mask": batch.clips.mask[pairs.video]}, found)
        end = torch.minimum(pairs.end, after - 1)
        own = torch.arange(len(first), device=first.device)
        positive = related_stretches(pairs, len(pairs.positive), first, after - 1)
        inner = BatchPairs(pairs.query, own, pairs.start - first, end - first, pairs.weight, positive)
        return Batch(batch.words, clips, inner)


def keep_relevant(pairs: BatchPairs, least: float) -> BatchPairs:
    """The pairs of at least this weight, or all if there is none."""
    kept = pairs.weight >= least
    kept = kept | ~kept.any()
    names = ("query", "video", "start", "end", "weight")
    return replace(pairs, times=None, **{name: getattr(pairs, name)[kept] for name in names})


def related_stretches(pairs: BatchPairs, queries: int, first: Tensor, last: Tensor) -> Tensor:
    """(queries, pairs): whether a query has a moment that shares a clip with clips first..last of the pair's video."""
    meets = (pairs.video[:, None] == pairs.video) & (pairs.start[:, None] <= last) & (pairs.end[:, None] >= first)
    found = torch.zeros(queries, len(first), dtype=torch.long, device=first.device)
    return found.index_add(0, pairs.query, meets.long()) > 0


def both_ways(scores: Tensor, related: Tensor) -> Tensor:
    """MIL-NCE of rows and of columns: ``-log(sum of related e^s / sum of all e^s)``; rows without any are left out.

    >>> round(both_ways(torch.zeros(2, 2), torch.eye(2) > 0).item(), 4)  # 2 log 2
    1.3863
    """
    total = scores.new_zeros(())
    for s, r in ((scores, related), (scores.T, related.T)):
        known = r.any(1)
        value = s.logsumexp(1) - s.masked_fill(~r, -torch.inf).logsumexp(1)
        total = total + value[known].mean()
    return total


register("spr", SprConfig, Spr, "SPR: segments retrieved from the corpus, joined to proposals, refined by ReLoCLNet")
