"""`scores`: a weighted sum of the streams' scores, each brought to the range from 0 to 1.

Ranks forget how much better the first is than the second; scores know (Bruch, Gai and Ingber, TOIS 2023, on convex
combination against reciprocal ranks). With ``s`` a stream's score of a moment and ``b`` its best,

    value = 0.099 · Σ weight · sureness · exp(-(b - s) / unit)  /  Σ weight of all streams

``unit`` does not depend on how many moments are asked for, as the lowest score found would: then a second page could
contradict the first. For pictures it is 2 spreads of the query's scores over the library's clips; for speech and names,
whose scores begin at 0, half of the best. Within a stream a lower rank never counts more: where scores do not fall with
the ranks (speech fuses words, which weigh as much as they are rare, with cosines of meaning), neighbours are levelled
to their mean until they do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from momentseek.search.fusion.candidate import WEIGHTS, Candidate
from momentseek.search.fusion.registry import TIER, register

ROOM = 0.99 * TIER / sum(WEIGHTS.values())


@register("scores")
def scores(candidates: Sequence[Candidate], units: Mapping[str, float]) -> list[float]:
    """By how far below its stream's best each score lies.

    >>> first, second, third = (Candidate(1, start, start + 5.0, start) for start in (0.0, 10.0, 20.0))
    >>> for rank, (one, score) in enumerate([(first, 0.40), (second, 0.39), (third, 0.30)], 1):
    ...     one.stand("vision", rank, score, "strong")
    >>> [round(value / ROOM, 3) for value in scores([first, second, third], {"vision": 0.1})]
    [1.0, 0.905, 0.368]
    """
    values = [0.0] * len(candidates)
    for stream in WEIGHTS:
        seen = [i for i, c in enumerate(candidates) if stream in c.standings]
        seen.sort(key=lambda i: candidates[i].standings[stream].rank)
        level = falling([candidates[i].standings[stream].score for i in seen])
        for i, score in zip(seen, level, strict=True):
            unit = units.get(stream, abs(level[0]) / 2) or 1.0
            values[i] += ROOM * candidates[i].counts(stream) * math.exp((score - level[0]) / unit)
    return values


def falling(values: Sequence[float]) -> list[float]:
    """The nearest values (least squares) that never rise: neighbours that do are pooled (Ayer et al. 1955).

    >>> falling([7.0, 1.0, 3.0, 0.5])
    [7.0, 2.0, 2.0, 0.5]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] < mean:
            other, many = pools.pop()
            mean, size = (mean * size + other * many) / (size + many), size + many
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]
