from __future__ import annotations

import math

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.losses import pair_weights, weighted_mean


def test_weights_by_name() -> None:
    similarity = torch.tensor([-0.2, 0.0, 0.55, 1.0])
    assert pair_weights(similarity, "linear").tolist() == pytest.approx([0.0, 0.0, 0.55, 1.0])
    assert pair_weights(similarity, "none").tolist() == [1.0] * 4
    exponential = [math.exp(10 * (s - 0.7)) for s in (-0.2, 0.0, 0.55, 1.0)]
    assert pair_weights(similarity, "exponential").tolist() == pytest.approx(exponential)


def test_a_weighted_mean_divides_by_the_number_of_pairs() -> None:
    assert weighted_mean(torch.tensor([2.0, 4.0]), torch.tensor([0.5, 0.0])).item() == 0.5


def test_unknown_weighting_is_named() -> None:
    with pytest.raises(MomentseekError, match="no weighting 'cubic'; choose linear, exponential, none"):
        pair_weights(torch.ones(1), "cubic")
