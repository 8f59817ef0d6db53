"""Bias-based: guesses drawn from where training moments lie, the likeliest first."""

from __future__ import annotations

import numpy as np

from momentseek.baselines.places import query_videos, rank_candidates, training_locations
from momentseek.baselines.registry import DEFAULT_SAMPLES, DEFAULT_TOP, Baseline, register
from momentseek.errors import MomentseekError
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import FloatArray
from momentseek.moments.density import kernel_sums

BANDWIDTHS = {"Charades": 0.008, "ActivityNet": 0.0013}
"""Kernel bandwidths that, with 100 samples, give the paper's figures on each dataset (docs/baselines.md)."""
MAX_DRAWING_ROUNDS = 1000


def bias_based(
    train: Judgements,
    test: Judgements,
    *,
    bandwidth: float | None = None,
    samples: int = DEFAULT_SAMPLES,
    top: int = DEFAULT_TOP,
    seed: int = 0,
) -> Run:
    r"""Per query (and video) ``samples`` draws from a density of training locations, ranked by that density.

    .. math:: (s, e) \sim \frac{1}{N} \sum_j \mathcal{N}\big((s_j, e_j),\, h^2 I\big)

    Lan et al., debiased grounding, §5.1, fit a Gaussian density and draw "several" locations from it; a hundred,
    ranked by density, is the reading that gives their figures. A draw that reaches beyond the video is ranked as drawn
    and then clipped to it; one that would be empty is drawn again. The score is the density.

    >>> at = dict(durations={"a": 10.0})
    >>> train = Judgements.from_groups("xyz", [1] * 3, ["a"] * 3, [1, 1, 5], [3, 3, 9], **at)
    >>> run = bias_based(train, Judgements.from_groups(["q"], [1], ["a"], [2], [5], **at), bandwidth=0.001, top=1)
    >>> run.start.round(1).tolist(), run.end.round(1).tolist()
    ([1.0], [3.0])
    """
    if samples < 1:
        raise MomentseekError(f"too few samples to rank ({samples}); draw at least one (`samples`)")
    known = training_locations(train)
    width = default_bandwidth(train) if bandwidth is None else bandwidth
    where = query_videos(test)
    drawn = _draw(known, len(where) * samples, width, np.random.default_rng(seed))
    density = kernel_sums(known, drawn, width, radius=5.0) / (2 * np.pi * width**2 * len(known))
    within = np.clip(drawn, 0, 1)
    start, end, score = (x.reshape(len(where), samples) for x in (within[:, 0], within[:, 1], density))
    return rank_candidates(test, where, start, end, score, top)


def default_bandwidth(train: Judgements) -> float:
    """ActivityNet's bandwidth for ActivityNet's videos (``v_…``), Charades' for all others.

    >>> default_bandwidth(Judgements.from_rows([("q", "v_QOlSCBRmfWY", 0, 5, 1)]))
    0.0013
    """
    return BANDWIDTHS["ActivityNet" if all(v.startswith("v_") for v in train.videos) else "Charades"]


def _draw(known: FloatArray, count: int, width: float, rng: np.random.Generator) -> FloatArray:
    """``count`` draws that overlap the video: a training location each, moved by Gaussian noise."""
    found = np.empty((0, 2))
    for _ in range(MAX_DRAWING_ROUNDS):
        missing = count - len(found)
        if not missing:
            return found
        some = known[rng.integers(len(known), size=missing)] + width * rng.standard_normal((missing, 2))
        within = np.clip(some, 0, 1)
        found = np.concatenate([found, some[within[:, 0] < within[:, 1]]])
    raise MomentseekError(
        f"a density of bandwidth {width:g} has hardly any moments within a video; choose a smaller `bandwidth`"
    )


register(
    Baseline(
        "bias-based",
        "draws from the density of training locations, densest first",
        learns=True,
        predictor=lambda train, test, settings: bias_based(
            train,
            test,
            bandwidth=settings.bandwidth,
            samples=settings.samples,
            top=settings.top,
            seed=settings.seed,
        ),
    )
)
