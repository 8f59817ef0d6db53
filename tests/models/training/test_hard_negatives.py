"""Hard negatives against equation 3, and what is drawn against its chances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.models.training.negatives import NEVER_DRAWN, SCORE_SCALE, HardNegatives, draw, logits


def chances(scores: np.ndarray, aim: float, allowed: np.ndarray, sharpness: float) -> list[float]:
    """Equation 2 for one query (or 3 for one video), in a loop."""
    raw = [math.exp(-sharpness * (s - aim) ** 2) if a else 0.0 for s, a in zip(scores, allowed, strict=True)]
    return [r / sum(raw) if sum(raw) else 0.0 for r in raw]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.floats(0.1, 20))
def test_logits_follow_the_equation(seed: int, sharpness: float) -> None:
    rng = np.random.default_rng(seed)
    scores, aim, allowed = rng.random((4, 6)), rng.random(4), rng.random((4, 6)) < 0.7
    ours = np.exp(logits(scores, aim, allowed, sharpness))
    for q in range(4):
        total = ours[q].sum() or 1.0
        assert ours[q] / total == pytest.approx(chances(scores[q], aim[q], allowed[q], sharpness))


def test_a_pool_keeps_the_best_scored_only() -> None:
    scores = np.array([[0.9, 0.1, 0.5, 0.7, 0.3]])
    allowed = np.array([[False, True, True, True, True]])
    assert np.flatnonzero(np.isfinite(logits(scores, np.array([0.9]), allowed, pool=2)[0])).tolist() == [2, 3]


def test_both_directions_draw_as_often_as_the_equations_say() -> None:
    scores = np.array([[0.9, 0.2, 0.6, 0.75], [0.3, 0.5, 0.1, 0.45], [0.6, 0.4, 0.7, 0.2]])
    true = np.zeros((3, 4), bool)
    true[[0, 1, 2, 0], [0, 1, 2, 3]] = True
    query_aim, video_aim = np.array([(0.9 + 0.75) / 2, 0.5, 0.7]), np.array([0.9, 0.5, 0.7, 0.75])
    found = kept(scores.tolist(), [(0, 0), (1, 1), (2, 2), (0, 3)])
    hard = HardNegatives(found, query_aim, video_aim, videos=1, queries=1, sharpness=5.0)
    rng = np.random.default_rng(0)
    for q in range(3):
        drawn = hard.videos_of(np.full(4000, q), rng)
        assert drawn is not None
        assert np.bincount(drawn.videos, minlength=4) / 4000 == pytest.approx(
            chances(scores[q], query_aim[q], ~true[q], 5.0), abs=0.03
        )
    for v in range(4):
        drawn = hard.queries_of(np.full(4000, v), rng)
        assert drawn is not None
        assert np.bincount(drawn.queries, minlength=3) / 4000 == pytest.approx(
            chances(scores[:, v], video_aim[v], ~true[:, v], 5.0), abs=0.03
        )


def test_draws_are_distinct_possible_and_as_likely_as_said() -> None:
    rng = np.random.default_rng(0)
    chances = np.array([0.7, 0.2, 0.1, 0.0])
    with np.errstate(divide="ignore"):
        logits = np.log(chances)
    firsts = np.concatenate(draw(np.tile(logits, (4000, 1)), 1, rng))
    assert np.bincount(firsts, minlength=4) / 4000 == pytest.approx(chances, abs=0.03)
    all_, none = draw(np.stack([logits, np.full(4, -np.inf)]), 9, rng)
    assert (all_.tolist(), none.tolist()) == ([0, 1, 2], [])


def kept(scores: list[list[float]], never: list[tuple[int, int]]) -> np.ndarray:
    found = np.rint(np.array(scores) * SCORE_SCALE).astype(np.uint16)
    for q, v in never:
        found[q, v] = NEVER_DRAWN
    return found


def test_each_direction_is_drawn_by_its_own_aim() -> None:
    found = kept([[0.9, 0.2, 0.8], [0.3, 0.5, 0.1], [0.6, 0.4, 0.7]], [(0, 0), (1, 1), (2, 2)])
    hard = HardNegatives(found, np.array([0.85, 0.1, 0.7]), np.array([0.6, 0.5, 0.1]), videos=1, queries=1,
                         sharpness=1e6)  # fmt: skip
    rng = np.random.default_rng(0)
    queries, videos = hard.videos_of(np.array([0, 2]), rng)
    assert (queries.tolist(), videos.tolist()) == ([0, 2], [2, 0])
    queries, videos = hard.queries_of(np.array([0, 2]), rng)
    assert (queries.tolist(), videos.tolist()) == ([2, 1], [0, 2])


def test_a_direction_that_is_not_wanted_draws_nothing() -> None:
    found = kept([[0.9, 0.2], [0.3, 0.5]], [])
    aims = np.zeros(2)
    rng = np.random.default_rng(0)
    assert HardNegatives(found, aims, aims, videos=0, queries=1).videos_of(np.array([0]), rng) is None
    assert HardNegatives(found, aims, aims, videos=1, queries=0).queries_of(np.array([0]), rng) is None
