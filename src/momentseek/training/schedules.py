"""Learning-rate schedules: a factor between 0 and 1 by the share of steps done."""

from __future__ import annotations

import math


def rate_factor(schedule: str, step: int, total: int, warmup: float = 0.0) -> float:
    """The factor of step ``step`` (from 0) of ``total``.

    During the first ``warmup`` share it rises from 0 (so that the first step of BertAdam changes nothing, as in the
    public code), then stays (``constant``), falls in a straight line to 0 (``linear``) or as half a ``cosine`` wave.

    >>> [rate_factor("linear", s, 10, warmup=0.2) for s in (0, 1, 2, 6, 10)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    >>> [round(rate_factor("cosine", s, 4), 3) for s in range(5)]
    [1.0, 0.854, 0.5, 0.146, 0.0]
    """
    done = min(step / max(total, 1), 1.0)
    if done < warmup:
        return done / warmup
    left = 1 - (done - warmup) / (1 - warmup)
    if schedule == "constant":
        return 1.0
    if schedule == "linear":
        return left
    return 0.5 * (1 - math.cos(math.pi * left))
