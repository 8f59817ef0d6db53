"""MS-SL's public weights (``method/model.py``, ``MS_SL_Net``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.models.features.data import Dims
from momentseek.models.public.weights import (
    PublicWeights,
    State,
    Translation,
    register_public,
    take_block,
    take_layers,
    take_positions,
    take_projection,
)
from momentseek.models.zoo.ms_sl import MsSlConfig

BRANCHES = {"words": "query", "parts": "clip", "frames": "frame"}


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; assumes 4 heads and 32 parts, as the authors use.

    Places beyond the parts, which the public table of the clip branch has, are read by nothing and left out.
    """
    state: State = take_layers(
        weights, {"pool": "modular_vector_mapping", "key": "mapping_linear.0", "value": "mapping_linear.1"}
    )
    for ours, theirs in BRANCHES.items():
        state |= take_projection(weights, f"{ours}.projection", f"{theirs}_input_proj")
        state |= take_positions(weights, f"{ours}.positions", f"{theirs}_pos_embed")
        state |= take_block(weights, f"{ours}.block", f"{theirs}_encoder")
    places = "parts.positions.place.weight"
    parts = asked.get("parts") or min(MsSlConfig.parts, len(state[places]))
    state[places] = state[places][:parts]
    hidden, words = weights.shape("query_input_proj.net.1.weight", 2)
    settings = {
        "hidden": hidden,
        "max_words": weights.shape("query_pos_embed.position_embeddings.weight", 2)[0],
        "max_clips": weights.shape("frame_pos_embed.position_embeddings.weight", 2)[0],
    }
    columns = weights.shape("clip_input_proj.net.1.weight", 2)[1]
    return Translation(settings, Dims(words, columns, None), state, {"heads": 4, "parts": parts})


register_public(
    "ms_sl",
    translate,
    marks=("query_input_proj.net.1.weight", "mapping_linear.0.weight"),
    source="HuiGuanLab/ms-sl, method/model.py: MS_SL_Net",
    settings=MsSlConfig.official,
    training={"task": "VR"},
)
