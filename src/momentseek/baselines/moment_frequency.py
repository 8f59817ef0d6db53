"""Moment frequency: the places where training moments lie most often."""

from __future__ import annotations

import numpy as np

from momentseek.baselines.places import query_videos, rank_candidates, training_locations
from momentseek.baselines.registry import DEFAULT_TOP, Baseline, register
from momentseek.moments import Judgements, Run

DEFAULT_BINS = 20


def moment_frequency(train: Judgements, test: Judgements, *, bins: int = DEFAULT_BINS, top: int = DEFAULT_TOP) -> Run:
    """The most frequent moments of the training set, the same for every query.

    DiDeMo's prior (Hendricks et al. 2017, §4.1) counts its six five-second chunks; here every video is cut into
    ``bins`` equal parts, and a training moment counts for the parts its start and end are nearest to (at least one
    part). The score is the share of training moments there; of equally frequent ones the earlier and shorter is first.

    >>> at = dict(durations={"a": 10.0})
    >>> train = Judgements.from_groups("xyz", [1] * 3, ["a"] * 3, [0, 0.1, 5], [2, 2.1, 10], **at)
    >>> run = moment_frequency(train, Judgements.from_groups(["q"], [1], ["a"], [2], [5], **at), bins=10)
    >>> run.moments("q"), run.score.round(2).tolist()
    ([Moment(video='a', start=0.0, end=2.0), Moment(video='a', start=5.0, end=10.0)], [0.67, 0.33])
    """
    shares = training_locations(train)
    first = np.minimum(np.rint(shares[:, 0] * bins), bins - 1)
    last = np.maximum(np.rint(shares[:, 1] * bins), first + 1)
    spans, counts = np.unique(np.column_stack([first, last]), axis=0, return_counts=True)
    best = np.argsort(-counts, kind="stable")[:top]
    where = query_videos(test)
    start, end, score = (
        np.tile(column, (len(where), 1))
        for column in (spans[best, 0] / bins, spans[best, 1] / bins, counts[best] / len(shares))
    )
    return rank_candidates(test, where, start, end, score, top)


register(
    Baseline(
        "moment-frequency",
        "the most frequent training locations",
        learns=True,
        predictor=lambda train, test, settings: moment_frequency(train, test, top=settings.top),
    )
)
