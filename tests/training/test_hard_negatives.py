"""Hard negatives against equation 3, and what is drawn against its chances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.training.hard_negatives import NEVER, UNIT, HardNegatives, draw, probabilities


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(0.1, 20))
def test_chances_follow_the_equation(seed: int, sharpness: float) -> None:
    rng = np.random.default_rng(seed)
    scores, positive = rng.random((4, 6)), np.zeros((4, 6), bool)
    positive[np.arange(4), rng.integers(0, 6, 4)] = True
    positive[0, :2] = True
    related = rng.random((4, 6)) < 0.2
    ours = probabilities(scores, positive, related, sharpness)
    for q in range(4):
        aim = np.mean([scores[q, v] for v in range(6) if positive[q, v]])
        raw = [
            0.0 if positive[q, v] or related[q, v] else math.exp(-sharpness * (scores[q, v] - aim) ** 2)
            for v in range(6)
        ]
        assert ours[q] == pytest.approx([r / sum(raw) if sum(raw) else 0 for r in raw])


def test_a_pool_keeps_the_best_scored_only() -> None:
    scores = np.array([[0.9, 0.1, 0.5, 0.7, 0.3]])
    true = np.array([[True, False, False, False, False]])
    assert np.flatnonzero(probabilities(scores, true, true, pool=2)[0]).tolist() == [2, 3]


def test_draws_are_distinct_possible_and_as_likely_as_said() -> None:
    rng = np.random.default_rng(0)
    chances = np.array([0.7, 0.2, 0.1, 0.0])
    with np.errstate(divide="ignore"):
        logits = np.log(chances)
    firsts = np.concatenate(draw(np.tile(logits, (4000, 1)), 1, rng))
    assert np.bincount(firsts, minlength=4) / 4000 == pytest.approx(chances, abs=0.03)
    all_, none = draw(np.stack([logits, np.full(4, -np.inf)]), 9, rng)
    assert (all_.tolist(), none.tolist()) == ([0, 1, 2], [])


def test_a_sharp_draw_takes_what_scores_like_the_truth() -> None:
    scores = np.array([[0.5, 0.99, 0.52, 0.1]])
    true = np.array([[True, False, False, False]])
    assert probabilities(scores, true, true, sharpness=1e7)[0].tolist() == [0, 0, 1, 0]


def kept(scores: list[list[float]], never: list[tuple[int, int]]) -> np.ndarray:
    found = np.rint(np.array(scores) * UNIT).astype(np.uint16)
    for q, v in never:
        found[q, v] = NEVER
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
