"""Mutual matching: a query finds its moment among others, and a moment its query (MMN; eq. 5 of CroCs).

For a pair of query q and moment m, with unit vectors f, a margin ψ and a temperature τ::

    log p(m|q) = (f_m·f_q - ψ)/τ - log[ exp((f_m·f_q - ψ)/τ) + Σ_{n in N_q} exp(f_n·f_q/τ) ]

and p(q|m) likewise over queries. Moments of a negative video, and those of the right video that overlap the truth too
little, are N_q; queries of other moments are the negatives of m, unless their own moment overlaps m. The loss is minus
the mean of both logarithms.
"""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.batch import BatchPairs


def mutual_matching(
    queries: Tensor, moments: Tensor, pairs: BatchPairs, iou: Tensor, negative: Tensor, held: Tensor | None = None, *,
    temperature: float = 0.1, margin: float = 0.4, negative_overlap: float = 0.5, positives: int = 1,
) -> Tensor:  # fmt: skip
    """The mutual matching loss between queries and moments.

    It takes ``queries`` (Q, d), ``moments`` (V, cells, d) and the pairs' overlaps ``iou`` (P, cells). ``negative``
    (Q, V) says which videos are negatives of which query, and ``held``, if other, which queries of which video;
    ``positives`` best cells count per pair.
    """
    best = iou.topk(positives, dim=1).indices
    found = moments[pairs.video[:, None], best]
    right = (torch.einsum("pd,pkd->pk", queries[pairs.query], found) - margin) / temperature
    to_moment = right - torch.logaddexp(right, _among_moments(queries, moments, pairs, iou, negative, temperature,
                                                              negative_overlap)[:, None])  # fmt: skip
    against = negative if held is None else held
    others = _among_queries(queries, found, best, pairs, iou, against, temperature, negative_overlap)
    to_query = right - torch.logaddexp(right, others)
    weight = pairs.weight[:, None].expand_as(right)
    return -((to_moment + to_query) * weight).sum() / weight.sum().clamp(min=1e-6)


def _among_moments(
    queries: Tensor, moments: Tensor, pairs: BatchPairs, iou: Tensor, negative: Tensor, temperature: float, low: float
) -> Tensor:
    """(P,): log of the sum over each pair's negative moments."""
    # queries without pairs are others' negatives only
    asking, place = pairs.query.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    cosine = torch.einsum("qd,vcd->qvc", queries[asking], moments) / temperature
    per_video = cosine.logsumexp(2).masked_fill(~negative[asking], -torch.inf)
    own = cosine[place, pairs.video].masked_fill(iou >= low, -torch.inf)
    # without any negative the sum is empty; the floor keeps gradients finite and adds nothing
    floor = torch.full_like(own[:, :1], -1e4)
    return torch.cat([per_video[place], own, floor], dim=1).logsumexp(1)


def _among_queries(
    queries: Tensor, found: Tensor, best: Tensor, pairs: BatchPairs, iou: Tensor, negative: Tensor, temperature: float,
    low: float,
) -> Tensor:  # fmt: skip
    """(P, positives): log of the sum over each moment's negative queries."""
    same = pairs.video[:, None] == pairs.video
    near = iou[:, best].permute(1, 2, 0) >= low  # [p, k, p']: the truth of pair p' overlaps moment k of pair p
    count = len(queries)
    shape = (*best.shape, count)
    target = pairs.query.expand(*best.shape, -1)
    here = same[:, None].expand_as(near)
    shares = torch.zeros(shape, dtype=torch.long, device=best.device).scatter_add(2, target, here.long()) > 0
    clash = torch.zeros(shape, dtype=torch.long, device=best.device).scatter_add(2, target, (here & near).long()) > 0
    allowed = torch.where(shares, ~clash, negative.T[pairs.video][:, None])
    cosine = torch.einsum("pkd,qd->pkq", found, queries) / temperature
    floor = torch.full_like(cosine[..., :1], -1e4)
    return torch.cat([cosine.masked_fill(~allowed, -torch.inf), floor], dim=2).logsumexp(2)
