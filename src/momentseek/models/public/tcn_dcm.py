"""TCN-DCM's public weights (``framework/modeling/models/tcn_DCM.py``, ``TCN_DCM``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.models.features.data import Dims
from momentseek.models.public.weights import PublicWeights, State, Translation, register_public, take_layers
from momentseek.models.zoo.tcn_dcm import TcnDcmConfig

SAMPLED_CLIPS = 256
"""Number of rows to which the public code resamples every video, before it averages them to the map's clips."""
LAYERS = {
    "clips.linear": "featpool.conv", "content": "TCN.conv", "location": "TCN.conv_pos", "query_in": "TCN.Q",
    "content_in": "TCN.M", "attention.asked": "TCN.BD_Adjust_Att.fc_qry", "attention.key": "TCN.BD_Adjust_Att.fc_key",
    "attention.value": "TCN.BD_Adjust_Att.fc_value", "fuse": "TCN.fc", "skip": "TCN.conv_res",
}  # fmt: skip


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; assumes 16 clips, as in both of the authors' scripts, and 4 heads."""
    hidden, columns, _ = weights.shape("featpool.conv.weight", 3)
    state: State = take_layers(weights, LAYERS)
    text_layers = weights.count("query.lstm.weight_ih_l{}")
    for layer in range(text_layers):
        parts = [f"{part}_l{layer}" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        state |= weights.take_layer("sentence.lstm", "query.lstm", *parts)
    map_layers = 0
    while f"TCN.conv2d_{map_layers + 1}.weight" in weights:
        state |= weights.take_layer(f"layers.{map_layers}", f"TCN.conv2d_{map_layers + 1}")
        map_layers += 1
    state["score.weight"] = weights.take("TCN.pred_weight")
    settings = {
        "hidden": hidden,
        "text_layers": text_layers,
        "map_layers": map_layers,
        "kernel": weights.shape("TCN.conv2d_1.weight", 4)[2],
    }
    clips = asked.get("max_clips") or 16
    assumed = {"max_clips": clips, "longest": clips, "stride": max(1, SAMPLED_CLIPS // clips), "heads": 4}
    words = weights.shape("query.lstm.weight_ih_l0", 2)[1]
    return Translation(settings, Dims(words, columns, None), state, assumed)


register_public(
    "tcn_dcm",
    translate,
    marks=("TCN.pred_weight", "TCN.BD_Adjust_Att.fc_value.weight"),
    source="Xun-Yang/Causal_Video_Moment_Retrieval, framework/modeling/models/tcn_DCM.py: TCN_DCM",
    settings=TcnDcmConfig.official,
    training={"task": "SVMR", "nms": 0.45},
)
