"""Models that score a moment by minus its squared distance from the query, and search a corpus by that alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from momentseek.models.batch import Batch, Encodings, Words, take_rows
from momentseek.models.layers import Dropout
from momentseek.models.layers.recurrent import Recurrent
from momentseek.models.layers.windows import cell, fits, overlaps
from momentseek.models.losses import draw_negatives, hinge, pair_weights, related_masks, weighted_mean
from momentseek.models.model import CorpusModel, Dims, ModelConfig

MAX_SPAN_SCORES = 1 << 23
"""Scores of spans held at a time while matching: 32 MB."""


@dataclass(frozen=True, kw_only=True)
class DistanceConfig(ModelConfig):
    """Settings of models trained by the ranking loss of MCN (Hendricks et al., ICCV 2017)."""

    alpha: float = 0.0
    """A moment's distance ranks it in the whole corpus; a first stage's score may be added."""
    margin: float = 0.1
    intra_weight: float = 0.5
    """Weight of the loss against another moment of the same video."""
    inter_weight: float = 0.2
    """Weight of the loss against the same place in another video."""
    intra_overlap: float = 0.5
    """Moments that overlap the right one by this IoU or more are not called wrong."""
    weighting: str = "linear"
    """How the similarity of query and caption weighs a pair: ``linear``, ``exponential`` or ``none``."""
    positive_mask: bool = True
    """Use no video as a negative that the training set says is related to the query."""


class DistanceModel(CorpusModel):
    """What MCN, CAL and the endpoint-only model share; each says how far its moments are from a query.

    The query is the last state of an LSTM over its words, mapped into each of ``spaces`` (TVR, section 5.2: one space
    per modality, predictions averaged).
    """

    config: DistanceConfig

    def __init__(self, config: DistanceConfig, dims: Dims, spaces: tuple[str, ...]) -> None:
        super().__init__(config, dims)
        self.spaces = spaces
        self.words = Recurrent(dims.query, config.hidden, both_ways=False)
        self.dropout = Dropout(config.dropout)
        self.query = nn.ModuleDict({name: nn.Linear(config.hidden, config.hidden) for name in spaces})

    @abstractmethod
    def distances(self, queries: Encodings, videos: Encodings, *, crossed: bool) -> Tensor:
        """Squared distance of every span, averaged over the spaces, by first clip and length.

        Of query i and video i, (n, clips, lengths), or ``crossed`` of every query and every video, (queries, videos,
        clips, lengths). What is said of spans that leave the video does not matter.
        """

    def encode_words(self, words: Words) -> Encodings:
        _, last = self.words(words.features, words.mask)
        last = self.dropout(last)
        return {name: self.query[name](last) for name in self.spaces}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The score of the video's best moment."""
        counted = len(next(iter(queries.values())))
        there = self._there(videos)
        step = max(1, MAX_SPAN_SCORES // max(1, there.numel()))
        blocks = []
        for first in range(0, counted, step):
            block = {name: part[first : first + step] for name, part in queries.items()}
            far = self.distances(block, videos, crossed=True).masked_fill(~there, torch.inf)
            blocks.append(-far.flatten(2).min(2).values)
        return torch.cat(blocks) if blocks else there.new_zeros((0, len(there)), dtype=torch.float32)

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        scores = -self.distances(queries, videos, crossed=False)
        return scores.masked_fill(~self._there(videos), -torch.inf)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """``max(0, d(right) - d(wrong) + margin)`` with a wrong moment of the same video, and one of a wrong video.

        The first is any that overlaps the right one little enough, the second lies where the right one does.
        """
        c, pairs = self.config, batch.pairs
        queries = take_rows(self.encode_words(batch.words), pairs.query)
        videos = self.encode_clips(batch.clips)
        weight = pair_weights(pairs.weight, c.weighting)
        counts = batch.clips.mask.sum(1)

        own = self.distances(queries, take_rows(videos, pairs.video), crossed=False)
        first, column = cell(pairs.start, pairs.end, counts[pairs.video], c.shortest, c.longest)
        each = torch.arange(len(own), device=own.device)
        right = own[each, first, column]
        apart = overlaps(pairs.start, pairs.end, own.shape[1], c.shortest, c.longest) < c.intra_overlap
        allowed = (apart & fits(batch.clips.mask[pairs.video], c.shortest, c.longest)).flatten(1)
        flat = own.flatten(1)
        chosen, found = draw_negatives(flat, allowed, None, rng)
        intra = torch.where(found, hinge(-right, -flat[each, chosen], c.margin), 0.0)

        wrong = ~related_masks(pairs, masked=c.positive_mask).videos
        video, found = draw_negatives(wrong.float(), wrong, None, rng)
        first, column = cell(pairs.start, pairs.end, counts[video], c.shortest, c.longest)
        other = self.distances(queries, take_rows(videos, video), crossed=False)[each, first, column]
        inter = torch.where(found, hinge(-right, -other, c.margin), 0.0)
        return {
            "intra": c.intra_weight * weighted_mean(intra, weight),
            "inter": c.inter_weight * weighted_mean(inter, weight),
        }

    def _there(self, videos: Encodings) -> Tensor:
        return fits(videos["mask"], self.config.shortest, self.config.longest)


def dots(queries: Tensor, videos: Tensor, *, crossed: bool) -> Tensor:
    """Inner products of (n, d) with (n, ..., d): (n, ...); crossed, of (q, d) with (v, ..., d): (q, v, ...).

    >>> dots(torch.ones(2, 3), torch.ones(2, 5, 3), crossed=False).shape
    torch.Size([2, 5])
    >>> dots(torch.ones(2, 3), torch.ones(4, 5, 3), crossed=True).shape
    torch.Size([2, 4, 5])
    """
    return torch.einsum("qd,v...d->qv..." if crossed else "nd,n...d->n...", queries, videos)


def squares(queries: Tensor, *, crossed: bool, axes: int) -> Tensor:
    """Squared lengths of queries, shaped to be added to ``axes`` axes of each video's."""
    return queries.square().sum(-1).reshape(len(queries), *(1,) * (axes + crossed))
