"""ExCL's public weights (TVRetrieval's ``baselines/excl/model.py``, ``EXCL``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.public.weights import PublicWeights, State, Translation, register_public, streams_of, take_lstm
from momentseek.models.zoo.excl import ExCLConfig


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights, without the biases of the last linear maps, which the softmax over clips cancels."""
    streams = streams_of(weights, "{}_encoder2.rnn.weight_ih_l0")
    if not streams:
        raise MomentseekError("the weights lack 'video_encoder2.rnn.weight_ih_l0'")
    state: State = take_lstm(weights, "words", "query_encoder.rnn")
    more = 2 * bool(asked.get("endpoints"))
    columns: dict[str, int | None] = {"video": None, "subtitle": None}
    for theirs, ours in streams.items():
        columns[ours] = weights.shape(f"{theirs}_encoder.rnn.weight_ih_l0", 2)[1] - more
        state |= take_lstm(weights, f"clips.{ours}", f"{theirs}_encoder.rnn")
        state |= take_lstm(weights, f"predictors.{ours}.first", f"{theirs}_encoder2.rnn")
        for side, end in (("start", "st"), ("end", "ed")):
            predictor = f"{theirs}_{end}_predictor"
            state |= weights.take_layer(f"predictors.{ours}.{side}.0", f"{predictor}.0")
            state |= weights.take_layer(f"predictors.{ours}.{side}.3", f"{predictor}.2", "weight")
            weights.skip(f"{predictor}.2.bias")
    hidden = 2 * weights.shape("query_encoder.rnn.weight_hh_l0", 2)[1]
    settings = {"hidden": hidden, "predictor": "tied-lstm", "modalities": "+".join(streams.values())}
    words = weights.shape("query_encoder.rnn.weight_ih_l0", 2)[1]
    return Translation(settings, Dims(words, **columns), state, {"endpoints": bool(more)})


register_public(
    "excl",
    translate,
    marks=("video_encoder.rnn.weight_ih_l0", "video_st_predictor.0.weight"),
    source="jayleicn/TVRetrieval, baselines/excl/model.py: EXCL",
    settings=ExCLConfig.official,
)
