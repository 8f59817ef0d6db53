"""Losses over lists: compare the listed moments of a query with each other and with all unlisted spans of the batch.

TVR-Ranking's training lists are the moments most similar to a query in the whole corpus, so a moment that is not listed
is known to be less similar than each that is. With z the scores of spans, y the similarities, t = softmax(y / T) over
the query's listed moments, and N the sampled spans of the batch that overlap none of them by 0.7 or more:

.. math:: L = -\\sum_i t_i \\Bigl[ z_i - \\log\\Bigl( \\sum_j e^{z_j} + \\sum_{w \\in N} e^{z_w} \\Bigr) \\Bigr]
          \\quad\\text{(ListNet, Cao et al. 2007)}

If the similarities y differ much, t has all its weight on the first of a list, and ListNet alone pushes the others down
with the unlisted. So each listed moment is also compared with the unlisted alone, ``y_i log(1 + sum_N e^z_w / e^z_i)``.

N is a sample: the listed moments of the batch, four copies of each with shifted edges, and 16 random spans per video.
So scoring a batch is one matrix product of queries and spans, and a step can have hundreds of queries. All spans of a
video are compared only for some pairs, in ``span_divergence``.

A model needs to give unnormalised scores of the sampled spans for all queries of a batch, so that scores of different
videos are comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from momentseek.models.batch import BatchPairs
from momentseek.models.layers.spans import cell, overlaps
from momentseek.models.model import above_nothing, at_least, one_of

NEAR_OVERLAP = 0.7
"""A span whose IoU with a listed moment is at least this is not unlisted."""
SHIFTED_COPIES = 4
"""Number of copies of each listed moment with shifted edges."""
SHIFT = 0.6
"""Standard deviation by which an edge is shifted, as a share of the moment's length."""
RANDOM_SPANS = 16
"""Number of random spans per video."""
COMPARED_PAIRS = 256
"""Maximum number of pairs per step whose videos' spans are all compared."""
SPAN_TEMPERATURE = 0.1
"""Divides overlaps in the target of ``span_divergence``."""


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

    list_span_weight: float = 1.5
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
class SpanSample:
    """The spans of a batch's videos that the list loss compares: first the distinct listed moments, then others."""

    pairs: BatchPairs
    video: Tensor
    """(spans,)."""
    first: Tensor
    """(spans,): the first clip."""
    last: Tensor
    """(spans,): the last clip, included."""
    place: Tensor
    """(pairs,): the span of each pair's moment."""
    compared: Tensor
    """Pairs whose videos' spans are all compared."""

    def listed_scores(self, scores: Tensor) -> ListedScores:
        """From the scores (queries, spans), those of the listed moments and the sum over unlisted spans."""
        pairs, count = self.pairs, int(self.place.max()) + 1
        common = torch.minimum(self.last[:, None], self.last[:count]) - torch.maximum(
            self.first[:, None], self.first[:count]
        )
        common = (common + 1).clamp(min=0) * (self.video[:, None] == self.video[:count])
        length = self.last - self.first + 1
        near = common >= NEAR_OVERLAP * (length[:, None] + length[:count] - common)
        listed = torch.zeros(len(scores), count, device=scores.device)
        listed[pairs.query, self.place] = 1.0
        unlisted = _finite_logsumexp(scores.masked_fill(listed @ near.T.to(listed.dtype) > 0, -torch.inf))
        return ListedScores(scores[pairs.query, self.place], pairs.weight, pairs.query, unlisted)

    def video_sums(self, scores: Tensor, videos: int) -> Tensor:
        """(queries, spans): logsumexp of the scores (queries, spans) of all sampled spans of each span's video."""
        highest = scores.detach().amax(1, keepdim=True)
        sums = scores.new_zeros(len(scores), videos).index_add(1, self.video, (scores - highest).exp())
        return (sums.clamp(min=1e-38).log() + highest)[:, self.video]


def sample_spans(pairs: BatchPairs, mask: Tensor, shortest: int, longest: int, rng: torch.Generator) -> SpanSample:
    """The listed moments of a batch, each as its nearest span, shifted copies of them, and random spans of its videos.

    ``mask`` is (videos, clips).
    """
    counts, device = mask.sum(1), mask.device

    def draw(size: int, *, normal: bool = False) -> Tensor:
        return (torch.randn if normal else torch.rand)(size, generator=rng).to(device)

    def nearest(video: Tensor, first: Tensor, last: Tensor) -> Tensor:
        first, last = torch.minimum(first, last).clamp(min=0), torch.maximum(first, last)
        first, column = cell(torch.minimum(first, counts[video] - 1), last, counts[video], shortest, longest)
        return torch.stack([video, first, torch.minimum(first + column + shortest, counts[video]) - 1])

    video, first, last = nearest(pairs.video, pairs.start, pairs.end)
    clips = mask.shape[1]
    codes, place = torch.unique((video * clips + first) * clips + last, return_inverse=True)
    listed = torch.stack([codes // clips**2, codes // clips % clips, codes % clips])
    video, first, last = listed.repeat(1, SHIFTED_COPIES)
    spread = SHIFT * (last - first + 1)
    shifted = [(edge + spread * draw(len(edge), normal=True)).round().to(edge.dtype) for edge in (first, last)]
    everywhere = torch.arange(len(mask), device=device).repeat_interleave(RANDOM_SPANS)
    begin = (draw(len(everywhere)) * counts[everywhere]).long()
    length = (draw(len(everywhere)) ** 2 * longest).long()  # short spans more often
    others = [nearest(video, *shifted), nearest(everywhere, begin, begin + length)]
    compared = torch.randperm(len(place), generator=rng)[:COMPARED_PAIRS].to(device)
    video, first, last = torch.cat([listed, *others], 1)
    return SpanSample(pairs, video, first, last, place, compared)


def span_divergence(grid: Tensor, start: Tensor, end: Tensor, shortest: int) -> Tensor:
    """(n,): ``KL(softmax(IoU / 0.1) || softmax(z))`` over the spans of row i of ``grid``, for clips start..end.

    ``grid`` (n, clips, lengths) has z of every span, and minus infinity past the last clip.
    """
    there, nothing = grid.isfinite().flatten(1), torch.finfo(grid.dtype).min  # minus infinity alone would give NaN
    overlap = overlaps(start, end, grid.shape[1], shortest, shortest + grid.shape[2] - 1).flatten(1)
    goal = (
        (overlap.to(grid.dtype) / SPAN_TEMPERATURE).masked_fill(~there, nothing).log_softmax(1).masked_fill(~there, 0.0)
    )
    own = grid.flatten(1).masked_fill(~there, nothing).log_softmax(1).masked_fill(~there, 0.0)
    return (goal.exp() * there * (goal - own)).sum(1)


def list_terms(
    settings: ListSettings, spans: SpanSample, scores: Tensor, divergence: Tensor, match: Tensor, epoch: int
) -> dict[str, Tensor]:
    """The terms of the loss: the list loss on spans, their divergence from overlaps, the list loss on videos.

    ``scores`` (queries, spans) are those of the sampled spans, and ``match`` (queries, videos) those by which videos
    are chosen before spans are searched.
    """
    late = settings.lambda_from is not None and epoch >= settings.lambda_from
    compare = LIST_LOSSES["lambda" if late else settings.list_loss]
    return {
        "list": compare(spans.listed_scores(scores), settings.temperature).mean(),
        "span": settings.list_span_weight * divergence.mean(),
        "scan": settings.scan_weight * compare(listed_videos(match, spans.pairs), settings.temperature).mean(),
    }


def _finite_logsumexp(rows: Tensor) -> Tensor:
    """``logsumexp`` of each row, without NaN in the gradient of a row that is all minus infinity."""
    empty = ~rows.isfinite().any(1)
    return torch.where(empty, -torch.inf, rows.masked_fill(empty[:, None], 0.0).logsumexp(1))
