"""Public weights that do not fit are refused in one sentence; those that do become a model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.public.loading import load_public


def tan2d_weights(hidden: int = 4, kernel: int = 3) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    shapes = {
        "frame_layer.vis_conv": (hidden, 5, 1),
        "fusion_layer.tex_linear": (hidden, hidden),
        "fusion_layer.vis_conv": (hidden, hidden, 1, 1),
        "map_layer.convs.0": (hidden, hidden, kernel, kernel),
        "pred_layer": (1, hidden, 1, 1),
    }
    weights = {f"{name}.weight": torch.randn(shape, generator=g) for name, shape in shapes.items()}
    weights |= {f"{name}.bias": torch.randn(shape[0], generator=g) for name, shape in shapes.items()}
    text = "fusion_layer.textual_encoder"
    parts = {"weight_ih_l0": (4 * hidden, 3), "weight_hh_l0": (4 * hidden, hidden), "bias_ih_l0": (4 * hidden,)}
    parts["bias_hh_l0"] = parts["bias_ih_l0"]
    return weights | {f"{text}.{part}": torch.randn(shape, generator=g) for part, shape in parts.items()}


def test_shapes_tell_the_settings() -> None:
    loaded = load_public("tan2d", tan2d_weights(), {"max_clips": 8, "stride": 2})
    config = loaded.model.config
    assert (config.hidden, config.max_clips, loaded.model.dims.query, loaded.model.dims.video) == (4, 8, 3, 5)
    assert loaded.assumed == {"longest": 8}
    theirs = tan2d_weights()["fusion_layer.vis_conv.weight"]
    assert torch.equal(loaded.model.state_dict()["map_in.weight"], theirs[..., 0, 0])


def without(name: str) -> dict[str, Tensor]:
    return {n: t for n, t in tan2d_weights().items() if n != name}


def changed(name: str, tensor: Tensor) -> dict[str, Tensor]:
    return tan2d_weights() | {name: tensor}


CASES: dict[str, tuple[dict[str, Tensor], dict[str, Any], str]] = {
    "missing": (without("pred_layer.bias"), {}, "the weights lack 'pred_layer.bias'"),
    "extra": (changed("neck.weight", torch.ones(1)), {}, "the weights have 'neck.weight', which tan2d does not know"),
    "another model": ({"featpool.conv.weight": torch.ones(1)}, {}, "weights lack 'frame_layer.vis_conv.weight', so"),
    "shape": (
        changed("fusion_layer.tex_linear.weight", torch.ones(4, 9)), {},
        r"the weights have \(4, 9\) for text_in.weight, which is \(4, 4\) with these settings",
    ),
    "axes": (changed("frame_layer.vis_conv.weight", torch.ones(4)), {}, "vis_conv.weight' has 1 axes, not 3"),
    "not finite": (changed("pred_layer.bias", torch.tensor([torch.nan])), {}, "'pred_layer.bias' holds numbers that"),
    "contradiction": (tan2d_weights(), {"hidden": 8}, "hidden is 4 by the weights, not 8; leave it out"),
    "unknown setting": (tan2d_weights(), {"hiden": 8}, "model tan2d has no setting 'hiden'; did you mean 'hidden'?"),
    "absurd clips": (tan2d_weights(), {"max_clips": 1 << 30}, "max_clips is 1,073,741,824, and at most 8,192 fits"),
    "even kernel": (tan2d_weights(kernel=2), {}, "kernel must be odd"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit(case: str) -> None:
    weights, settings, message = CASES[case]
    with pytest.raises(MomentseekError, match=message):
        load_public("tan2d", weights, settings)


def test_weights_of_another_model_are_recognised() -> None:
    with pytest.raises(MomentseekError, match=r"^these are weights of tan2d, not of mmn; import them as that$"):
        load_public("mmn", tan2d_weights())


def test_models_without_public_weights() -> None:
    with pytest.raises(MomentseekError, match=r"^no public weights of bet are known; models with public weights are "):
        load_public("bet", {})
    with pytest.raises(MomentseekError, match=r"^there is no model 'tan3d'; models with public weights are "):
        load_public("tan3d", {})
