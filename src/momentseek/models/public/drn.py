"""DRN's public weights (``model/main_model.py``, ``mainModel``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from momentseek.models.features.data import Dims
from momentseek.models.public.weights import (
    PublicWeights,
    State,
    Translation,
    register_public,
    take_layers,
    take_lstm,
    take_normalised,
)
from momentseek.models.zoo.drn import DrnConfig

LEVELS = 3
HEAD = "fcos.head"


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights, without word embeddings, the unused centre-ness and a bias that cancels out.

    Shapes do not show the rows of a segment, nor whether the grading head was trained, which is assumed.
    """
    state: State = take_lstm(weights, "query.words", "query_encoder.biLSTM")
    layers = {
        "query.shared": "query_encoder.qInput", "clips.linear": "prop_fc", "place_in": "position_transform",
        "score": f"{HEAD}.cls_logits", "distance": f"{HEAD}.bbox_pred", "grade.2": f"{HEAD}.iou_scores.3",
    }  # fmt: skip
    for n in range(LEVELS):
        layers |= {f"query.levels.{n}": f"query_encoder.qInput{n}", f"query.out.{n}": f"qInput{n}"}
        state |= take_normalised(weights, f"levels.{n}", f"backbone_net.forward_conv{n}")
        state |= take_normalised(weights, f"lateral.{n}", f"fpn.fpn_inner{n + 1}")
        state |= take_normalised(weights, f"smooth.{n}", f"fpn.fpn_layer{n + 1}")
    state |= take_layers(weights, layers) | weights.take_layer(
        "query.score", "query_encoder.cmd_inter2logits", "weight"
    )
    for ours, theirs in (("score_tower", "cls_tower"), ("distance_tower", "bbox_tower"), ("grade.0", "mix_fc"),
                         ("grade.1", "iou_scores")):  # fmt: skip
        state |= take_normalised(weights, ours, f"{HEAD}.{theirs}")
    state["scales"] = torch.cat([weights.take(f"{HEAD}.scales.{n}.scale").reshape(1) for n in range(LEVELS)])
    state["graded"] = torch.ones(())
    weights.skip("query_encoder.embedding.weight", "query_encoder.cmd_inter2logits.bias", f"{HEAD}.centerness.*")
    wide, columns = weights.shape("prop_fc.weight", 2)
    words = weights.shape("query_encoder.biLSTM.weight_ih_l0", 2)[1]
    settings = {"hidden": weights.shape("query_encoder.qInput.weight", 2)[0], "wide": wide}
    return Translation(settings, Dims(words, columns, None), state, {"max_clips": 32, "stride": 4})


register_public(
    "drn",
    translate,
    marks=("query_encoder.biLSTM.weight_ih_l0", f"{HEAD}.cls_logits.weight"),
    source="Alvin-Zeng/DRN, model/main_model.py: mainModel",
    settings={**DrnConfig.official, "normalise": False},
    training={"task": "SVMR", "nms": 0.45},
)
