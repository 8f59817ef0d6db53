"""Mutual matching: a query finds its moment among others, and a moment its query (MMN; eq. 5 of CroCs).

For a pair of query q and moment m, with unit vectors f, a margin ψ and a temperature τ::

    log p(m|q) = (f_m·f_q - ψ)/τ - log[ exp((f_m·f_q - ψ)/τ) + Σ_{n in N_q} exp(f_n·f_q/τ) ]

and p(q|m) likewise over queries. Moments of a negative video, and those of the right video that overlap the truth too
little, are N_q; queries of other moments are the negatives of m, unless their own moment overlaps the pair's. The loss
is minus the mean of both logarithms.
"""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.batch import BatchPairs
from momentseek.models.moment_map.targets import overlap_of_moments


def mutual_matching(
    queries: Tensor, moments: Tensor, pairs: BatchPairs, iou: Tensor, negative: Tensor, held: Tensor | None = None, *,
    temperature: float = 0.1, margin: float = 0.4, negative_overlap: float = 0.5, query_overlap: float = 0.5,
    positives: int = 1, count_near: bool = False, to_moments: bool = True,
) -> Tensor:  # fmt: skip
    """The mutual matching loss between queries and moments.

    It takes ``queries`` (Q, d), ``moments`` (V, cells, d) and the pairs' overlaps ``iou`` (P, cells). ``negative``
    (Q, V) says which videos are negatives of which query, and ``held``, if other, which queries of which video;
    ``positives`` best cells count per pair. With ``count_near``, each cell of the right video that overlaps the truth
    too much to be a negative adds exp(0) to the sum over moments, as in MMN's public code. Without ``to_moments`` only
    a moment finds its query (G2L).
    """
    best = iou.topk(positives, dim=1).indices
    found = moments[pairs.video[:, None], best]
    right = (torch.einsum("pd,pkd->pk", queries[pairs.query], found) - margin) / temperature
    to_moment = torch.zeros_like(right)
    if to_moments:
        near = 0.0 if count_near else -torch.inf
        among = _among_moments(queries, moments, pairs, iou, negative, temperature, negative_overlap, near)
        to_moment = right - torch.logaddexp(right, among[:, None])
    others = _among_queries(queries, found, pairs, negative if held is None else held, temperature, query_overlap)
    to_query = right - torch.logaddexp(right, others)
    weight = pairs.weight[:, None].expand_as(right)
    return -((to_moment + to_query) * weight).sum() / weight.sum().clamp(min=1e-6)


def _among_moments(
    queries: Tensor, moments: Tensor, pairs: BatchPairs, iou: Tensor, negative: Tensor, temperature: float, low: float,
    near: float,
) -> Tensor:  # fmt: skip
    """(P,): log of the sum over each pair's negative moments; ``near`` stands for those that overlap the truth."""
    # queries without pairs are others' negatives only
    asking, place = pairs.query.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    cosine = torch.einsum("qd,vcd->qvc", queries[asking], moments) / temperature
    per_video = cosine.logsumexp(2).masked_fill(~negative[asking], -torch.inf)
    own = cosine[place, pairs.video].masked_fill(iou >= low, near)
    # without any negative the sum is empty; the floor keeps gradients finite and adds nothing
    floor = torch.full_like(own[:, :1], -1e4)
    return torch.cat([per_video[place], own, floor], dim=1).logsumexp(1)


def _among_queries(
    queries: Tensor, found: Tensor, pairs: BatchPairs, negative: Tensor, temperature: float, low: float
) -> Tensor:
    """(P, positives): log of the sum over each moment's negative queries; the pair's own is none of them."""
    assert pairs.times is not None, "whether two moments overlap is told by their times"
    shape = (len(pairs.query), len(queries))
    same = pairs.video[:, None] == pairs.video
    near = same & (overlap_of_moments(pairs.times, pairs.times) >= low)
    shares, clash = (
        torch.zeros(shape, dtype=torch.long, device=same.device).scatter_add(1, pairs.query.expand_as(x), x.long()) > 0
        for x in (same, near)
    )
    allowed = torch.where(shares, ~clash, negative.T[pairs.video])
    allowed[torch.arange(shape[0], device=same.device), pairs.query] = False
    cosine = torch.einsum("pkd,qd->pkq", found, queries) / temperature
    floor = torch.full_like(cosine[..., :1], -1e4)
    return torch.cat([cosine.masked_fill(~allowed[:, None], -torch.inf), floor], dim=2).logsumexp(2)
