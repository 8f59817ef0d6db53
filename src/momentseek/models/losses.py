"""Losses that several models share; ``weighted_mean`` averages their values per pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import BatchPairs


@dataclass(frozen=True)
class Negatives:
    """The schedule of hard negatives: from epoch ``hard_from`` on, draw from the ``pool`` best-scored ones."""

    hard_from: int | None = 20
    """First epoch, counted from 0, with hard negatives; None for never."""
    pool: int = 20

    def at(self, epoch: int) -> int | None:
        """The number of best-scored negatives to draw from in an epoch; None for all.

        >>> Negatives(hard_from=2, pool=5).at(1), Negatives(hard_from=2, pool=5).at(2), Negatives(None).at(99)
        (None, 5, None)
        """
        return self.pool if self.hard_from is not None and epoch >= self.hard_from else None


def draw_negatives(scores: Tensor, allowed: Tensor, pool: int | None, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw one column of each row, uniformly among the allowed ones or the ``pool`` best-scored of them.

    Returns the columns (rows,) and whether a row has an allowed column (rows,); without one, the column is 0.

    >>> scores = torch.tensor([[9.0, 1.0, 5.0], [1.0, 2.0, 3.0]])
    >>> allowed = torch.tensor([[False, True, True], [False, False, False]])
    >>> [t.tolist() for t in draw_negatives(scores, allowed, 1, torch.Generator())]
    [[2, 0], [True, False]]
    """
    if not scores.shape[1]:
        nothing = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
        return nothing, nothing.bool()
    if pool is not None and pool < scores.shape[1]:
        best = scores.detach().masked_fill(~allowed, -torch.inf).topk(pool, dim=1).indices
        allowed = allowed & torch.zeros_like(allowed).scatter_(1, best, True)
    lots = torch.rand(scores.shape, generator=rng, device=rng.device).to(scores.device)
    found = allowed.any(1)
    return torch.where(found, lots.masked_fill(~allowed, -1.0).argmax(1), 0), found


@dataclass(frozen=True, eq=False)
class RelatedMasks:
    """Which videos and queries of a batch are related to each pair."""

    videos: Tensor
    """(pairs, videos), True if the video answers the pair's query."""
    queries: Tensor
    """(pairs, queries), True if the pair's video answers the query."""


def related_masks(pairs: BatchPairs, *, masked: bool = True) -> RelatedMasks:
    """Masks of what is related to each pair: all relations of the training set, or (unmasked) only the pair itself."""
    queries, videos = pairs.positive.shape
    own_video = pairs.video[:, None] == torch.arange(videos, device=pairs.video.device)
    own_query = pairs.query[:, None] == torch.arange(queries, device=pairs.query.device)
    if not masked:
        return RelatedMasks(own_video, own_query)
    return RelatedMasks(own_video | pairs.positive[pairs.query], own_query | pairs.positive.T[pairs.video])


def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """``max(0, margin + negative - positive)``.

    >>> hinge(torch.tensor([1.0, 1.0]), torch.tensor([0.5, 1.5]), 0.25).tolist()
    [0.0, 0.75]
    """
    return (margin + negative - positive).relu()


def ranking_hinge(
    scores: Tensor, pairs: BatchPairs, known: RelatedMasks, margin: float, pool: int | None, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Two hinge losses per pair (q, v) from ``scores`` (queries, videos): for a wrong video and for a wrong query.

    ``max(0, D + s(v'|q) - s(v|q))`` and ``max(0, D + s(v|q') - s(v|q))``, with one v' and one q' drawn from those that
    are not related by ``known``; 0 if the batch has none.
    """
    own = scores[pairs.query, pairs.video]
    values = []
    for rows, taken in ((scores[pairs.query], known.videos), (scores.T[pairs.video], known.queries)):
        column, found = draw_negatives(rows, ~taken, pool, rng)
        negative = rows.gather(1, column[:, None]).squeeze(1) if rows.shape[1] else own
        values.append(torch.where(found, hinge(own, negative, margin), 0.0))
    return values[0], values[1]


WEIGHTINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda similarity: similarity.clamp(min=0.0),
    "exponential": lambda similarity: torch.exp(10.0 * (similarity - 0.7)),
    "none": torch.ones_like,
}
"""Weights of pairs by similarity: ``linear`` as in TVR-Ranking's paper, ``exponential`` as in code of March 2024."""


def pair_weights(similarity: Tensor, how: str) -> Tensor:
    """The weight of each pair in the loss, from the similarity of query and caption.

    >>> [round(w, 2) for w in pair_weights(torch.tensor([0.7, 0.9]), "exponential").tolist()]
    [1.0, 7.39]
    """
    if how not in WEIGHTINGS:
        raise MomentseekError(f"there is no weighting {how!r}; choose {', '.join(WEIGHTINGS)}")
    return WEIGHTINGS[how](similarity)


def weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    """The mean of the values multiplied by their weights; the weights are not normalised."""
    return (values * weight).mean()


def span_cross_entropy(start: Tensor, end: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """``-log P_start(first) - log P_end(last)`` per row, from log-probabilities (n, clips).

    >>> import torch
    >>> even = torch.full((1, 4), 0.25).log()
    >>> round(span_cross_entropy(even, even, torch.tensor([0]), torch.tensor([3])).item(), 4) # 2 log 4
    2.7726
    """
    return -(start.gather(1, first[:, None]) + end.gather(1, last[:, None])).squeeze(1)
