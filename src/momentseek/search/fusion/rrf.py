"""`rrf`, the default: reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).

A moment's score is the sum over the streams of

    weight · sureness / (60 + rank)

Ranks are used because the streams' scores have no common unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from momentseek.search.fusion.candidate import Candidate
from momentseek.search.fusion.registry import register

K = 60


@register("rrf")
def rrf(candidates: Sequence[Candidate], units: Mapping[str, float]) -> list[float]:
    """By ranks alone.

    >>> one = Candidate(1, 0.0, 5.0, 2.0)
    >>> one.stand("vision", 1, 0.3, "strong")
    >>> [round(value, 4) for value in rrf([one], {})]
    [0.0164]
    """
    return [
        sum(c.counts(name) / (K + standing.rank) for name, standing in sorted(c.standings.items())) for c in candidates
    ]
