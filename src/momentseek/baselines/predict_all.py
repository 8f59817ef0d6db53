"""PredictAll: the whole video is the answer to every query."""

from __future__ import annotations

import numpy as np

from momentseek.baselines.places import query_videos, rank_candidates
from momentseek.baselines.registry import DEFAULT_TOP, Baseline, register
from momentseek.moments import Judgements, Run


def predict_all(test: Judgements, *, top: int = DEFAULT_TOP) -> Run:
    """The whole video, one prediction per query and video (Lan et al., debiased grounding, §5.1).

    What it scores is what long moments give away: on ActivityNet-CD's test-iid a dR@1 of 20 % at IoU 0.5.

    >>> test = Judgements.from_groups(["q"], [1], ["a"], [2], [5], durations={"a": 30.0})
    >>> predict_all(test).moments("q")
    [Moment(video='a', start=0.0, end=30.0)]
    """
    where = query_videos(test)
    whole = np.ones((len(where), 1))
    return rank_candidates(test, where, 0 * whole, whole, whole, top)


register(
    Baseline(
        "predict-all",
        "the whole video",
        learns=False,
        predictor=lambda _, test, settings: predict_all(test, top=settings.top),
    )
)
