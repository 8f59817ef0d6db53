"""MMN's public weights (``mmn/modeling/mmn/mmn.py``, ``MMN``); CroCs' and G2L's have the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from momentseek.models.features.data import Dims
from momentseek.models.layers.bert import tower_state
from momentseek.models.public.weights import NORM_PARTS, PublicWeights, Translation, register_public
from momentseek.models.tower_files import find_tower, read_tower_sizes

MARKS = ("featpool.conv.weight", "proposal_conv.conv1x1_contrastive.weight", "text_encoder.fc_out2.weight")
TRAINING = {"task": "SVMR", "nms": 0.5}
SETTINGS = {"padding": "first", "fit": "rounded", "text": "mean", "norm": True, "follow": "official"}

BERT = "text_encoder.bert."
UNUSED = ("mha.*", "conv1d.*", "linear[12].*", "norm[123].*")
"""Layers of G2L's public network that nothing reads."""
STRIDES, POWERS = {16: 2, 64: 4, 128: 2}, {128: 0.3}
"""Rows per clip and exponents of the matching score that the authors use for maps of each number of clips."""


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; shapes do not show the map's clips: 64 for kernels of 9, as the authors use, else 16.

    The language model is left out, as its output are the words' features, unless ``tower`` names its folder.
    """
    hidden, columns, _ = weights.shape("featpool.conv.weight", 3)
    space, words = weights.shape("text_encoder.fc_out2.weight", 2)
    state: dict[str, Tensor] = {}
    state |= weights.take_layer("clips.linear", "featpool.conv")
    state |= weights.take_layer("text_norm", "text_encoder.layernorm")
    state |= weights.take_layer("text_match", "text_encoder.fc_out2")
    state |= weights.take_layer("text_overlap", "text_encoder.fc_out1")
    state |= weights.take_layer("moment_match", "proposal_conv.conv1x1_contrastive")
    state |= weights.take_layer("moment_overlap", "proposal_conv.conv1x1_iou")
    layers = weights.count("proposal_conv.convs.{}.weight")
    for layer in range(layers):
        state |= weights.take_layer(f"neighbours.convolutions.{layer}", f"proposal_conv.convs.{layer}")
        state |= weights.take_layer(f"neighbours.norms.{layer}", f"proposal_conv.bn.{layer}", *NORM_PARTS)
    if asked.get("tower"):
        folder = find_tower(asked["tower"])
        assert folder is not None, "a tower was asked for"
        bert = {name.removeprefix(BERT): weights.take(name) for name in weights.leftovers() if name.startswith(BERT)}
        state |= {f"tower.{name}": tensor for name, tensor in tower_state(bert, read_tower_sizes(folder))[0].items()}
    weights.skip(f"{BERT}*", *UNUSED)
    settings = {
        "hidden": hidden,
        "space": space,
        "map_layers": layers,
        "kernel": weights.shape("proposal_conv.convs.0.weight", 4)[2],
    }
    clips = asked.get("max_clips") or (64 if settings["kernel"] == 9 else 16)
    assumed = {"max_clips": clips, "longest": clips, "stride": STRIDES.get(clips, 1), "power": POWERS.get(clips, 0.5)}
    return Translation(settings, Dims(words, columns, None), state, assumed)


register_public(
    "mmn",
    translate,
    marks=MARKS,
    source="MCG-NJU/MMN, mmn/modeling/mmn/mmn.py: MMN",
    settings=SETTINGS,
    training=TRAINING,
)
register_public(
    "crocs", translate, marks=MARKS, source="CroCs, whose network is MMN's", settings=SETTINGS, training=TRAINING
)
register_public(
    "g2l", translate, marks=MARKS, source="lihxxxxx/G2L, g2l/modeling/g2l/g2l.py: G2L, whose network is MMN's",
    settings=SETTINGS, training=TRAINING,
)  # fmt: skip
