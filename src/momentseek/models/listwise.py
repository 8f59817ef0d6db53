"""Losses over lists: compare the listed moments of a query with each other and with all unlisted spans of the batch.

TVR-Ranking's training lists are the moments most similar to a query in the whole corpus, so a moment that is not listed
is known to be less similar than each that is. With z the scores of spans, y the similarities, t = softmax(y / T) over
the query's listed moments, and N all spans of the batch that overlap none of them by 0.3 or more:

.. math:: L = -\\sum_i t_i \\Bigl[ z_i - \\log\\Bigl( \\sum_j e^{z_j} + \\sum_{w \\in N} e^{z_w} \\Bigr) \\Bigr]
          \\quad\\text{(ListNet, Cao et al. 2007)}

If the similarities y differ much, t has all its weight on the first of a list, and ListNet alone pushes the others down
with the unlisted. So each listed moment is also compared with the unlisted alone, ``y_i log(1 + sum_N e^z_w / e^z_i)``.

A model needs to give unnormalised scores of all spans of all videos for all queries of a batch, so that scores of
different videos are comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import softplus

from momentseek.models.batch import BatchPairs
from momentseek.models.layers.spans import cell, fits, overlaps
from momentseek.models.model import above_nothing, at_least, one_of

NEAR_OVERLAP = 0.3
"""A span whose IoU with a listed moment is at least this is not unlisted."""
SPAN_TEMPERATURE = 0.1
"""Divides overlaps in the target of ``span_divergence``."""
SMALLEST_SHARE = 1e-38
"""Replaces the sum of a video's unlisted spans if it has none, relative to 1 for its best span."""


@dataclass(frozen=True, kw_only=True)
class ListSettings:
    """Settings of the list loss."""

    list_loss: str = "both"
    """``listnet``, ``unlisted`` (each listed moment against the unlisted), ``both`` added, ``mil-nce``, ``bce`` or
    ``lambda``."""
    temperature: float = 0.1
    """Divisor of the similarities in the targets; a lower value gives more weight to the first of a list."""
    lambda_from: int | None = None
    """First epoch, counted from 0, that uses the ``lambda`` loss; None for never."""

    list_span_weight: float = 0.5
    """Weight of the divergence between spans' scores and their overlaps with the moment."""
    scan_weight: float = 0.2
    """Weight of the list loss on whole videos, whose scores choose the videos to search for spans."""
    mined: int = 0
    """Number of additional videos per step, which an earlier model (``lists``) ranks high for the step's queries."""

    def check(self) -> None:
        """Refuse settings that are out of range."""
        one_of(self, "list_loss", *LIST_LOSSES)
        above_nothing(self, "temperature")
        at_least(self, 0, "lambda_from", "list_span_weight", "scan_weight", "mined")


@dataclass(frozen=True, eq=False)
class ListedScores:
    """The scores that a list loss compares."""

    listed: Tensor
    """(pairs,): the score of each listed moment."""
    similarity: Tensor
    """(pairs,)."""
    query: Tensor
    """(pairs,): the query of each listed moment."""
    unlisted: Tensor
    """(queries,): logsumexp of all unlisted spans' scores."""

    def total(self) -> Tensor:
        """(queries,): logsumexp of all scores, listed or not."""
        return torch.logaddexp(log_sums(self.listed, self.query, len(self.unlisted)), self.unlisted)


def log_sums(values: Tensor, group: Tensor, count: int) -> Tensor:
    """(count,): logsumexp of the values of each group; minus infinity for an empty one.

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
    """(queries,): pairwise logistic losses weighted by the change of NDCG in an exchange (LambdaRank, Burges 2010).

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


def listnet_and_unlisted(scores: ListedScores, temperature: float) -> Tensor:
    """(queries,): ``listnet`` for the order of the list, and ``against_unlisted`` for all of it before the rest."""
    return listnet(scores, temperature) + against_unlisted(scores, temperature)


LIST_LOSSES: dict[str, Callable[[ListedScores, float], Tensor]] = {
    "listnet": listnet,
    "unlisted": against_unlisted,
    "both": listnet_and_unlisted,
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
        pairs = self.pairs
        first, column = cell(pairs.start, pairs.end, self.mask.sum(1)[pairs.video], self.shortest, self.longest)
        own = self.grid[pairs.query, pairs.video, first, column]
        return ListedScores(own, pairs.weight, pairs.query, self._log_sums[1].logsumexp(1))

    def span_divergence(self) -> Tensor:
        """(pairs,): ``KL(softmax(IoU / 0.1) || softmax(z))`` over the spans of each pair's video.

        With goal the first and n the number of a video's moments, ``sum goal z`` is one matrix product per video, and
        no pair's scores are copied.
        """
        video, place, overlap = self._moments
        there = self._there[video].flatten(1)
        goal = (overlap.flatten(1) / SPAN_TEMPERATURE).masked_fill(~there, -torch.inf).log_softmax(1)
        entropy = torch.where(there, goal.exp() * goal, 0.0).sum(1)
        number = torch.arange(len(video), device=video.device) - torch.searchsorted(video, video)
        goals = goal.new_zeros(len(self.mask), int(number.max()) + 1, goal.shape[1], dtype=self.grid.dtype)
        goals[video, number] = goal.exp().to(goals.dtype)
        earned = torch.einsum("qvc,vnc->qvn", self.grid.flatten(2), goals)
        query, own = self.pairs.query, self.pairs.video
        return entropy[place] - earned[query, own, number[place]] + self._log_sums[0][query, own]

    def video_sums(self) -> Tensor:
        """(queries, videos): logsumexp of the scores of all spans of a video."""
        return self._log_sums[0]

    @cached_property
    def _there(self) -> Tensor:
        """(videos, clips, lengths): the spans that fit their video."""
        return fits(self.mask, self.shortest, self.longest)

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """The video of each distinct moment in rising order, each pair's moment, and IoU of all spans with moments."""
        pairs, clips = self.pairs, self.grid.shape[2] + 1
        codes = (pairs.video * clips + pairs.start) * clips + pairs.end
        codes, place = torch.unique(codes, return_inverse=True)
        video, start, end = codes // clips**2, codes // clips % clips, codes % clips
        return video, place, overlaps(start, end, self.grid.shape[2], self.shortest, self.longest)

    @cached_property
    def _log_sums(self) -> tuple[Tensor, Tensor]:
        """(queries, videos): logsumexp of all spans' scores, and of the unlisted ones."""
        pairs, there = self.pairs, self._there
        _, place, overlap = self._moments
        codes, group = torch.unique(pairs.query * len(self.mask) + pairs.video, return_inverse=True)
        near = torch.zeros(len(codes), *there.shape[1:], dtype=torch.uint8, device=there.device)
        near.index_add_(0, group, (overlap >= NEAR_OVERLAP)[place].to(near.dtype))
        unlisted = there.repeat(len(self.grid), 1, 1, 1)
        unlisted[codes // len(self.mask), codes % len(self.mask)] &= near == 0
        highest = self.grid.detach().masked_fill(~there, -torch.inf).amax((2, 3), keepdim=True)
        shares = (self.grid - highest).exp()
        every = torch.einsum("qvc,vc->qv", shares.flatten(2), there.flatten(1).to(shares.dtype))
        others = (shares * unlisted).sum((2, 3))
        shift = highest[..., 0, 0]
        return every.log() + shift, others.clamp(min=SMALLEST_SHARE).log() + shift


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
