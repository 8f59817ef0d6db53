"""The max-margin loss over a whole batch, both ways (MEE: Miech et al., 2018, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.batch import BatchPairs
from momentseek.models.losses.hinge import hinge
from momentseek.models.losses.positives import RelatedMasks


def max_margin(
    scores: Tensor, pairs: BatchPairs, known: RelatedMasks, margin: float, *, true_pairs: bool = False
) -> Tensor:
    """One value per pair (q, v) from ``scores`` (queries, videos): the hinge's mean over all wrong videos and queries.

    The mean of ``mean_v' max(0, D + s(q, v') - s(q, v))`` and ``mean_q' max(0, D + s(q', v) - s(q, v))`` with v' and q'
    all that ``known`` does not hold for related; 0 where the batch has none. With ``true_pairs`` v and q themselves are
    among them, each a constant D, as in the public code.
    """
    own = scores[pairs.query, pairs.video][:, None]
    total = torch.zeros_like(own[:, 0])
    for rows, taken, place in (
        (scores[pairs.query], known.videos, pairs.video),
        (scores.T[pairs.video], known.queries, pairs.query),
    ):
        counted = ~taken
        if true_pairs:
            counted = counted.scatter(1, place[:, None], True)
        total = total + (hinge(own, rows, margin) * counted).sum(1) / counted.sum(1).clamp(min=1)
    return total / 2
