from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from momentseek.models.layers.spans import inside
from momentseek.models.zoo.reloclnet import frame_contrast


@given(st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=9), st.data())
def test_jensen_shannon_estimate_by_hand(curve: list[float], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(curve) - 1))
    end = data.draw(st.integers(start, len(curve) - 1))
    padding = data.draw(st.integers(0, 3))
    scores = torch.tensor([curve + [7.0] * padding])
    mask = torch.tensor([[True] * len(curve) + [False] * padding])
    value = frame_contrast(scores, inside(torch.tensor([start]), torch.tensor([end]), scores.shape[1]), mask).item()
    within = [math.log(2) - math.log1p(math.exp(-x)) for x in curve[start : end + 1]]
    without = [math.log1p(math.exp(x)) - math.log(2) for x in curve[:start] + curve[end + 1 :]]
    expected = (sum(without) / len(without) if without else 0.0) - sum(within) / len(within)
    assert value == pytest.approx(expected, rel=1e-4, abs=1e-4)
