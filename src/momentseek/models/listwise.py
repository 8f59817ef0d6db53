"""Losses over lists: every listed moment of a query against each other and against all unlisted spans of the batch.

TVR-Ranking's training lists are the moments most similar to a query in the whole corpus, so a moment that is not listed
is known to be less similar than each that is. With z the scores of spans, y the similarities, t = softmax(y / T) over
the query's listed moments, and N all spans of the batch that overlap none of them by 0.3 or more:

.. math:: L = -\\sum_i t_i \\Bigl[ z_i - \\log\\Bigl( \\sum_j e^{z_j} + \\sum_{w \\in N} e^{z_w} \\Bigr) \\Bigr]
          \\quad\\text{(ListNet, Cao et al. 2007)}

A model takes part by giving the scores of all spans of all videos for all queries of a batch, unnormalised, so that
scores of different videos can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from momentseek.models.batch import BatchPairs
from momentseek.models.layers.spans import cell, fits, overlaps
from momentseek.models.model import above_nothing, at_least, one_of

NEAR_OVERLAP = 0.3
"""A span that overlaps a listed moment by as much is neither listed nor unlisted."""
SPAN_TEMPERATURE = 0.1
"""Divides overlaps in the target of ``span_divergence``."""


@dataclass(frozen=True, kw_only=True)
class ListSettings:
    """Settings of the list loss."""

    list_loss: str = "listnet"
    """``listnet``, ``unlisted`` (each listed moment against the unlisted), ``mil-nce``, ``bce`` or ``lambda``."""
    temperature: float = 0.1
    """Divides similarities before they become targets: the lower, the more the first of a list counts."""
    lambda_from: int | None = None
    """First epoch, counted from 0, from which ``lambda`` takes over; None for never."""

    list_span_weight: float = 0.5
    """Weight of the divergence between spans' scores and their overlaps with the moment."""
    scan_weight: float = 0.2
    """Weight of the list loss on whole videos, by which these are chosen for the search of spans."""

    def check(self) -> None:
        """Refuse settings that mean nothing."""
        one_of(self, "list_loss", *LIST_LOSSES)
        above_nothing(self, "temperature")
        at_least(self, 0, "lambda_from", "list_span_weight", "scan_weight")


@dataclass(frozen=True, eq=False)
class ListedScores:
    """The scores that a list loss compares."""

    listed: Tensor
    """(pairs,): the score of each listed moment."""
    similarity: Tensor
    """(pairs,)."""
    query: Tensor
    """(pairs,): whose moment it is."""
    unlisted: Tensor
    """(queries,): logarithm of the summed exponentials of all unlisted spans' scores."""

    def total(self) -> Tensor:
        """(queries,): logarithm of the summed exponentials of all scores, listed or not."""
        return torch.logaddexp(log_sums(self.listed, self.query, len(self.unlisted)), self.unlisted)


def log_sums(values: Tensor, group: Tensor, count: int) -> Tensor:
    """(count,): logarithm of the summed exponentials of the values of each group; minus infinity for an empty one.

    >>> log_sums(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0, 0, 2]), 3).exp().tolist()
    [2.0, 0.0, 2.7182817459106445]
    """
    highest = torch.full((count,), -torch.inf, dtype=values.dtype, device=values.device)
    highest = highest.scatter_reduce(0, group, values.detach(), "amax")
    shift = torch.where(highest.isfinite(), highest, 0.0)
    sums = torch.zeros_like(shift).index_add(0, group, (values - shift[group]).exp())
    return torch.where(sums > 0, sums.clamp(min=1e-38).log() + shift, -torch.inf)


def targets(similarity: Tensor, query: Tensor, count: int, temperature: float) -> Tensor:
    """(pairs,): softmax of ``similarity / temperature`` over the listed moments of each query.

    >>> targets(torch.tensor([1.0, 1.0, 0.5]), torch.tensor([0, 0, 1]), 2, 0.5).tolist()
    [0.5, 0.5, 1.0]
    """
    logits = similarity / temperature
    return (logits - log_sums(logits, query, count)[query]).exp()


def listnet(scores: ListedScores, temperature: float) -> Tensor:
    """(queries,): cross-entropy between the targets and the softmax over all scores."""
    count = len(scores.unlisted)
    goal = targets(scores.similarity, scores.query, count, temperature)
    terms = goal * (scores.total()[scores.query] - scores.listed)
    return torch.zeros_like(scores.unlisted).index_add(0, scores.query, terms)


def against_unlisted(scores: ListedScores, temperature: float) -> Tensor:
    """(queries,): each listed moment against the unlisted ones alone, weighted by its similarity."""
    terms = scores.similarity * softplus(scores.unlisted[scores.query] - scores.listed)
    return _means(terms, scores)


def mil_nce_lists(scores: ListedScores, temperature: float) -> Tensor:
    """(queries,): the share of all listed moments together in the softmax (Miech et al. 2020)."""
    return scores.total() - log_sums(scores.listed, scores.query, len(scores.unlisted))


def graded_bce(scores: ListedScores, temperature: float) -> Tensor:
    """(queries,): logistic loss with the target similarity⁴ for listed moments, and 0 for all others together."""
    terms = softplus(scores.listed) - scores.similarity.clamp(min=0.0) ** 4 * scores.listed
    return _means(terms, scores) + softplus(scores.unlisted)


def lambda_rank(scores: ListedScores, temperature: float) -> Tensor:
    """(queries,): pairwise logistic losses weighted by how much NDCG an exchange would cost (Burges 2010).

    All unlisted spans count as one of gain 0, scored by the logarithm of their sum.
    """
    count, owner = len(scores.unlisted), scores.query
    goal = targets(scores.similarity, owner, count, temperature)
    values = torch.cat([scores.listed, scores.unlisted])
    gain = torch.cat([goal, torch.zeros_like(scores.unlisted)])
    group = torch.cat([owner, torch.arange(count, device=owner.device)])
    same = group[:, None] == group[None]
    rank = 1 + (same & (values.detach()[None] > values.detach()[:, None])).sum(1)
    discount = 1 / torch.log2(1.0 + rank)
    better = same & (gain[:, None] > gain[None])
    first, second = better.nonzero(as_tuple=True)
    weight = (gain[first] - gain[second]) * (discount[first] - discount[second]).abs()
    terms = weight * softplus(values[second] - values[first])
    return torch.zeros_like(scores.unlisted).index_add(0, group[first], terms)


LIST_LOSSES: dict[str, Callable[[ListedScores, float], Tensor]] = {
    "listnet": listnet,
    "unlisted": against_unlisted,
    "mil-nce": mil_nce_lists,
    "bce": graded_bce,
    "lambda": lambda_rank,
}


def _means(terms: Tensor, scores: ListedScores) -> Tensor:
    """(queries,): the mean of the terms of each query's listed moments."""
    zeros = torch.zeros_like(scores.unlisted)
    counts = zeros.index_add(0, scores.query, torch.ones_like(terms))
    return zeros.index_add(0, scores.query, terms) / counts.clamp(min=1)


def listed_videos(match: Tensor, pairs: BatchPairs) -> ListedScores:
    """The scores of videos (queries, videos), those of listed moments against all others."""
    known = torch.zeros_like(match, dtype=torch.bool)
    known[pairs.query, pairs.video] = True
    others = _finite_logsumexp(match.masked_fill(known, -torch.inf))
    return ListedScores(match[pairs.query, pairs.video], pairs.weight, pairs.query, others)


@dataclass(frozen=True, eq=False)
class SpanScores:
    """Scores of all spans of all videos for all queries of a batch, (queries, videos, clips, lengths), and the pairs.

    Spans that do not fit their video may have any score.
    """

    grid: Tensor
    mask: Tensor
    """(videos, clips)."""
    pairs: BatchPairs
    shortest: int
    longest: int

    def listed_scores(self) -> ListedScores:
        """Scores of the listed moments, each as its nearest span, and of all unlisted spans."""
        pairs, grid = self.pairs, self.grid
        there = fits(self.mask, self.shortest, self.longest)
        first, column = cell(pairs.start, pairs.end, self.mask.sum(1)[pairs.video], self.shortest, self.longest)
        own = grid[pairs.query, pairs.video, first, column]
        sums = grid.masked_fill(~there, -torch.inf).flatten(2).logsumexp(2)
        codes, group = torch.unique(pairs.query * len(self.mask) + pairs.video, return_inverse=True)
        query, video = codes // len(self.mask), codes % len(self.mask)
        near = torch.zeros(len(codes), *there.shape[1:], device=grid.device)
        near = near.index_add(0, group, (self.pair_overlaps() >= NEAR_OVERLAP).to(near.dtype)) > 0
        outside = grid[query, video].masked_fill(near | ~there[video], -torch.inf).flatten(1)
        sums = sums.index_put((query, video), _finite_logsumexp(outside))
        return ListedScores(own, pairs.weight, pairs.query, sums.logsumexp(1))

    def pair_overlaps(self) -> Tensor:
        """(pairs, clips, lengths): IoU of every span of the pair's video with its moment."""
        return overlaps(self.pairs.start, self.pairs.end, self.grid.shape[2], self.shortest, self.longest)

    def span_divergence(self) -> Tensor:
        """(pairs,): ``KL(softmax(IoU / 0.1) || softmax(z))`` over the spans of each pair's video."""
        there = fits(self.mask, self.shortest, self.longest)[self.pairs.video].flatten(1)
        goal = (self.pair_overlaps().flatten(1) / SPAN_TEMPERATURE).masked_fill(~there, -torch.inf).log_softmax(1)
        own = self.grid[self.pairs.query, self.pairs.video].flatten(1).masked_fill(~there, -torch.inf).log_softmax(1)
        return torch.where(there, goal.exp() * (goal - own), 0.0).sum(1)


def list_terms(settings: ListSettings, spans: SpanScores, match: Tensor, epoch: int) -> dict[str, Tensor]:
    """The terms of the loss: the list loss on spans, their divergence from overlaps, the list loss on videos.

    ``match`` (queries, videos) are the scores by which videos are chosen before spans are searched.
    """
    late = settings.lambda_from is not None and epoch >= settings.lambda_from
    compare = LIST_LOSSES["lambda" if late else settings.list_loss]
    return {
        "list": compare(spans.listed_scores(), settings.temperature).mean(),
        "span": settings.list_span_weight * spans.span_divergence().mean(),
        "scan": settings.scan_weight * compare(listed_videos(match, spans.pairs), settings.temperature).mean(),
    }


def _finite_logsumexp(rows: Tensor) -> Tensor:
    """``logsumexp`` of each row, without NaN in the gradient of a row that is all minus infinity."""
    empty = ~rows.isfinite().any(1)
    return torch.where(empty, -torch.inf, rows.masked_fill(empty[:, None], 0.0).logsumexp(1))
