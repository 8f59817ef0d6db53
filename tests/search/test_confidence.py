import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.search.confidence import LEVELS, MIN_CLIPS, Scale, combined_level, evidence

SCORES = st.lists(st.floats(-1, 1, width=32), min_size=MIN_CLIPS, max_size=60)


@given(SCORES, st.floats(-1, 1), st.floats(-1, 1))
def test_a_higher_score_is_never_less_sure(scores, one, other):
    scale = Scale.of(scores)
    low, high = sorted((one, other))
    assert scale.chance(low) >= scale.chance(high)
    assert LEVELS.index(scale.level(low)) <= LEVELS.index(scale.level(high))


@given(st.integers(MIN_CLIPS, 10**7), st.integers(MIN_CLIPS, 10**7), st.floats(0, 8))
def test_a_larger_library_makes_nothing_surer(one, other, score):
    small, large = sorted((one, other))
    assert Scale(0.0, 1.0, small).chance(score) <= Scale(0.0, 1.0, large).chance(score)


@given(SCORES, st.floats(0.1, 10), st.floats(-1, 1))
def test_units_do_not_matter(scores, factor, shift):
    values = np.array(scores)
    if np.ptp(np.quantile(values, (0.25, 0.75))) > 0.01:
        one, other = Scale.of(values), Scale.of(values * factor + shift)
        assert other.z(0.7 * factor + shift) == pytest.approx(one.z(0.7), rel=1e-6, abs=1e-6)


def test_a_quarter_of_relevant_clips_does_not_hide_them():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(0, 1, 800), rng.normal(9, 1, 200)])
    assert Scale.of(scores).level(9.0) == "strong"


def test_chances_are_those_of_normal_maxima():
    rng = np.random.default_rng(1)
    maxima = rng.standard_normal((4000, 100)).max(axis=1)
    scale = Scale(0.0, 1.0, 400)
    for score in (2.0, 2.5, 3.0, 3.5):
        assert scale.chance(score) == pytest.approx((maxima >= score).mean(), abs=0.02)


def test_tiny_libraries_are_never_sure():
    assert Scale.of([0.1, 0.9]).level(5.0) == "fair"
    assert Scale.of([]).level(-5.0) == "fair"


def test_equal_scores_everywhere_are_nothing_special():
    assert Scale.of([0.3] * 100).level(0.3) == "weak"


def test_streams_together():
    assert combined_level([]) == "weak"
    assert combined_level(["weak", "weak"]) == "weak"
    assert combined_level(["strong", "weak"]) == "strong"


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_evidence_lies_between_mean_and_maximum(scores):
    assert evidence(scores) <= max(scores) + 1e-9
    assert evidence(scores) >= min(scores) - 1e-9
