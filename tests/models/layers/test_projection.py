from __future__ import annotations

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import Positions, Projection, clip_width
from momentseek.models.model import ModelConfig


def test_projection_normalises_then_maps_then_cuts_at_zero() -> None:
    torch.manual_seed(0)
    layer, x = Projection(6, 4, 0.5).eval(), torch.randn(2, 3, 6)
    for row in range(2):
        for i in range(3):
            v = x[row, i]
            normal = (v - v.mean()) / (v.var(correction=0) + 1e-5).sqrt()
            expected = (layer.linear.weight @ normal + layer.linear.bias).clamp(min=0)
            torch.testing.assert_close(layer(x)[row, i], expected)


def test_positions_tell_places_apart() -> None:
    torch.manual_seed(0)
    layer = Positions(5, 8, 0.1).eval()
    same = torch.ones(1, 3, 8)
    out = layer(same)[0]
    assert not torch.allclose(out[0], out[1])
    expected = torch.nn.functional.layer_norm(1 + layer.place.weight[2], (8,))
    torch.testing.assert_close(out[2], expected)


def test_longer_than_the_model_is_refused() -> None:
    with pytest.raises(MomentseekError, match="a sequence of 6 is longer than the model's 5"):
        Positions(5, 8, 0.1)(torch.ones(1, 6, 8))


def test_missing_modality_is_named() -> None:
    with pytest.raises(MomentseekError, match="no subtitle features"):
        clip_width(Dims(4, 4, None), ModelConfig(), "subtitle")
