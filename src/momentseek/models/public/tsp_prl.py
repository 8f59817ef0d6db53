"""TSP-PRL's public weights (``model.py``, ``HRL``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from momentseek.models.features.data import Dims
from momentseek.models.public.weights import PublicWeights, State, Translation, register_public, take_layers
from momentseek.models.zoo.tsp_prl import BRANCHES, TspPrlConfig

KINDS = ("scale", "left_move", "right_move", "left_offset", "right_offset")
"""The public names of the five kinds of moves, in the root policy's order."""
LAYERS = {
    "sentence.linear": "sentence_fc", "whole": "gobal_fc", "local": "local_fc", "place": "location_fc",
    "root.policy": "global_policy", "root.value": "global_value", "guess.0": "iou_fc1", "guess.2": "iou_fc2",
    "guess.4": "iou_fc3",
}  # fmt: skip


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """The five leaf policies are one layer here, with a row for each of the most moves that a kind has."""
    hidden, columns = weights.shape("gobal_fc.weight", 2)
    state: State = take_layers(weights, LAYERS)
    join = weights.take_layer("join", "state_fc")
    local, whole, place = join["join.weight"].chunk(3, dim=1)  # their order; ours has the whole video first
    state |= join | {"join.weight": torch.cat([whole, local, place], 1)}
    for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        state[f"memory.{part}"] = weights.take(f"gru.{part}")
    for part in ("weight", "bias"):
        moves = [weights.take(f"{kind}_policy.{part}") for kind in KINDS]
        spare = [m.new_zeros(max(BRANCHES) - len(m), *m.shape[1:]) for m in moves]
        state[f"leaf.policy.{part}"] = torch.cat([x for pair in zip(moves, spare, strict=True) for x in pair])
        state[f"leaf.value.{part}"] = torch.cat([weights.take(f"{kind}_value.{part}") for kind in KINDS])
    seen = asked.get("seen") or TspPrlConfig.seen
    words = weights.shape("sentence_fc.weight", 2)[1]
    return Translation({"hidden": hidden}, Dims(words, columns // seen, None), state, {"seen": seen})


register_public(
    "tsp_prl",
    translate,
    marks=("gobal_fc.weight", "left_offset_policy.weight"),
    source="WuJie1010/TSP-PRL, model.py: HRL",
    settings={**TspPrlConfig.official, "normalise": False},
    training={"task": "SVMR"},
)
