"""The hinge loss that ranks videos for queries and queries for videos (TVR, section 4.4)."""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.batch import BatchPairs
from momentseek.models.losses.negatives import draw_negatives
from momentseek.models.losses.positives import RelatedMasks


def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """``max(0, margin + negative - positive)``.

    >>> hinge(torch.tensor([1.0, 1.0]), torch.tensor([0.5, 1.5]), 0.25).tolist()
    [0.0, 0.75]
    """
    return (margin + negative - positive).relu()


def ranking_hinge(
    scores: Tensor, pairs: BatchPairs, known: RelatedMasks, margin: float, pool: int | None, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Two values per pair (q, v) from ``scores`` (queries, videos): against a wrong video, and against a wrong query.

    ``max(0, D + s(v'|q) - s(v|q))`` and ``max(0, D + s(v|q') - s(v|q))`` with one v' and one q' drawn from what
    ``known`` does not hold for related; 0 where the batch has no such.
    """
    own = scores[pairs.query, pairs.video]
    values = []
    for rows, taken in ((scores[pairs.query], known.videos), (scores.T[pairs.video], known.queries)):
        column, found = draw_negatives(rows, ~taken, pool, rng)
        negative = rows.gather(1, column[:, None]).squeeze(1) if rows.shape[1] else own
        values.append(torch.where(found, hinge(own, negative, margin), 0.0))
    return values[0], values[1]
