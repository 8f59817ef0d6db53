"""2D-TAN's public weights (``lib/models/tan.py``, ``TAN``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import growth
from momentseek.models.public.weights import PublicWeights, Translation, register_public

SAMPLED_CLIPS = 256
"""Number of rows to which the public code resamples every video, before it averages them to the map's clips."""


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; a pooled map is taken to have 64 clips for kernels of 9, as the authors use, else 16."""
    hidden, columns, _ = weights.shape("frame_layer.vis_conv.weight", 3)
    text = "fusion_layer.textual_encoder"
    text_layers = weights.count(f"{text}.weight_ih_l{{}}")
    if not text_layers:
        raise MomentseekError(f"the weights lack {text + '.weight_ih_l0'!r}")
    state: dict[str, Tensor] = {}
    for layer in range(text_layers):
        parts = [f"{part}_l{layer}" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        state |= weights.take_layer("sentence.lstm", text, *parts)
    words = weights.shape(f"{text}.weight_ih_l0", 2)[1]
    state |= weights.take_layer("clips.linear", "frame_layer.vis_conv")
    state |= weights.take_layer("text_in", "fusion_layer.tex_linear")
    state |= weights.take_layer("map_in", "fusion_layer.vis_conv")
    state |= weights.take_layer("score", "pred_layer")
    map_layers = weights.count("map_layer.convs.{}.weight")
    for layer in range(map_layers):
        state |= weights.take_layer(f"neighbours.convolutions.{layer}", f"map_layer.convs.{layer}")
    settings = {
        "hidden": hidden,
        "text_layers": text_layers,
        "map_layers": map_layers,
        "kernel": weights.shape("map_layer.convs.0.weight", 4)[2],
    }
    stacked = _stack(weights)
    for number, name in enumerate(stacked):
        state |= weights.take_layer(f"stack.layers.{number}", name)
    moments = "convolution" if stacked else "pool"
    clips = asked.get("max_clips") or (_clips_of(len(stacked)) if stacked else 64 if settings["kernel"] == 9 else 16)
    assumed = {"max_clips": clips, "longest": clips, "stride": max(1, SAMPLED_CLIPS // clips)}
    return Translation({**settings, "moments": moments}, Dims(words, columns, None), state, assumed)


def _clips_of(lengths: int) -> int:
    """The clips of a map whose candidates have this many different lengths.

    >>> _clips_of(16), _clips_of(32), _clips_of(40)
    (16, 64, 128)
    """
    clips = 1
    while 1 + len(growth(clips)) < lengths:
        clips += 1
    return clips


def _stack(weights: PublicWeights) -> list[str]:
    """The convolutions that make a map's features, scale by scale."""
    names: list[str] = []
    scale = 0
    while count := weights.count(f"prop_layer.layers.{scale}.{{}}.weight"):
        names += [f"prop_layer.layers.{scale}.{i}" for i in range(count)]
        scale += 1
    return names


register_public(
    "tan2d",
    translate,
    marks=("frame_layer.vis_conv.weight", "fusion_layer.tex_linear.weight"),
    source="microsoft/2D-TAN, lib/models/tan.py: TAN",
    settings={"padding": "first", "fit": "rounded"},
    training={"task": "SVMR", "nms": 0.5},
)
