"""MIL-NCE: contrast with the whole batch, with several positives (ReLoCLNet's VideoCL)."""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.batch import BatchPairs
from momentseek.models.losses.positives import RelatedMasks


def mil_nce(scores: Tensor, pairs: BatchPairs, known: RelatedMasks, *, pair_once: bool = True) -> Tensor:
    """``-log(sum_P e^s / (sum_P e^s + sum_N e^s))`` for each pair (q, v), from ``scores`` (queries, videos).

    P are the videos related to q (with the positive-pair mask all of them, else only v); N are the unrelated videos
    with q, and the unrelated queries with v (Miech et al. 2020, equation 1, as TVR-Ranking, appendix C.1 uses it).

    The public code counts the pair itself twice in the denominator, once by its row and once by its column
    (``pair_once=False``).
    """
    rows, columns = scores[pairs.query], scores.T[pairs.video]
    positive = rows.masked_fill(~known.videos, -torch.inf)
    related = known.queries
    if not pair_once:
        related = related & (torch.arange(len(scores), device=scores.device) != pairs.query[:, None])
    negative = columns.masked_fill(related, -torch.inf)
    return torch.cat([rows, negative], 1).logsumexp(1) - positive.logsumexp(1)
