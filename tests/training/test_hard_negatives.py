"""Hard negatives against equation 3, and what is drawn against its chances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.training.hard_negatives import draw, probabilities


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
    chances = np.array([[0.7, 0.2, 0.1, 0.0]])
    firsts = np.zeros(4)
    for _ in range(4000):
        (one,) = draw(chances, np.array([0]), 1, rng)
        firsts[one[0]] += 1
    assert firsts / 4000 == pytest.approx(chances[0], abs=0.03)
    (all_,) = draw(chances, np.array([0]), 9, rng)
    assert all_.tolist() == [0, 1, 2]
