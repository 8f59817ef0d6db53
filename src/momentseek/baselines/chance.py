"""Chance: a random stretch of the video."""

from __future__ import annotations

import numpy as np

from momentseek.baselines.places import query_videos, rank_candidates
from momentseek.baselines.registry import DEFAULT_TOP, Baseline, register
from momentseek.moments import Judgements, Run


def chance(test: Judgements, *, top: int = DEFAULT_TOP, seed: int = 0) -> Run:
    """``top`` stretches per query and video, every ``0 <= start < end <= duration`` equally likely.

    The two smaller and larger of two uniform draws have that distribution; the order is random as well.

    >>> test = Judgements.from_groups(["q"], [1], ["a"], [2], [5], durations={"a": 30.0})
    >>> run = chance(test, top=3, seed=1)
    >>> len(run.start), bool((run.start < run.end).all() and run.end.max() <= 30)
    (3, True)
    """
    rng = np.random.default_rng(seed)
    where = query_videos(test)
    ends = np.sort(rng.random((len(where), top, 2)), axis=2)
    return rank_candidates(test, where, ends[:, :, 0], ends[:, :, 1], rng.random((len(where), top)), top)


register(
    Baseline(
        "chance",
        "random stretches of the video",
        learns=False,
        predictor=lambda _, test, settings: chance(test, top=settings.top, seed=settings.seed),
    )
)
