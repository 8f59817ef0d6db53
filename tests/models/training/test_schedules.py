from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.models.training.config import TrainingSettings
from momentseek.models.training.optimisers import rate_factor

NAMES = ("constant", "linear", "cosine")


@given(st.sampled_from(NAMES), st.integers(0, 1000), st.integers(1, 1000), st.floats(0, 0.9))
def test_a_factor_lies_between_0_and_1(name: str, step: int, total: int, warmup: float) -> None:
    assert -1e-9 <= rate_factor(name, step, total, warmup) <= 1 + 1e-9


@given(st.integers(0, 999), st.floats(0.01, 0.5))
def test_linear_is_bert_adams_schedule(step: int, warmup: float) -> None:
    done = step / 1000
    by_hand = done / warmup if done < warmup else max((done - 1) / (warmup - 1), 0)
    assert rate_factor("linear", step, 1000, warmup) == pytest.approx(by_hand)


@given(st.integers(0, 1000))
def test_cosine_is_half_a_wave(step: int) -> None:
    assert rate_factor("cosine", step, 1000) == pytest.approx((1 + math.cos(math.pi * step / 1000)) / 2)


@pytest.mark.parametrize("name", NAMES)
def test_warming_up_begins_at_nothing_and_reaches_everything(name: str) -> None:
    assert [rate_factor(name, s, 100, 0.1) for s in (0, 5, 10)] == pytest.approx([0, 0.5, 1])


@given(st.lists(st.floats(0.1, 300), max_size=5), st.floats(0, 400))
def test_each_milestone_that_is_reached_lowers_the_rate(milestones: list[float], epoch: float) -> None:
    factor = 1.0
    for milestone in milestones:
        factor *= 0.1 if milestone <= epoch else 1.0
    assert TrainingSettings(milestones=tuple(milestones)).milestone_factor(epoch) == pytest.approx(factor)


def test_milestones_are_epochs() -> None:
    with pytest.raises(
        MomentseekError, match=r"training: milestones are epochs above 0, such as \[8, 13\], not \(0,\)"
    ):
        TrainingSettings(milestones=(0,))
