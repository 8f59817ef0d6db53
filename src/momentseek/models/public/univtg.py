"""UniVTG's public weights (``model/univtg.py``, ``Model``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.models.public.moment_detr import SHARED_OPTIONS, options_of, take_encoder, take_inputs, take_layers
from momentseek.models.public.weights import PublicWeights, Translation, register_public
from momentseek.models.zoo.univtg import UniVtgConfig

OPTIONS = {
    **SHARED_OPTIONS, "droppath": "drop_path", "b_loss_coef": "ends", "g_loss_coef": "iou",
    "f_loss_coef": "label", "s_loss_intra_coef": "intra", "s_loss_inter_coef": "inter",
}  # fmt: skip
UNCUT_WORDS = 512
"""More words than any encoder of text gives."""


def options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that the weights do not tell, from the options of a public training run."""
    found = options_of(OPTIONS)(given)
    if "clip_length" in given:
        found["clip_seconds"] = float(given["clip_length"])
    if "eval_mode" in given:
        found["rating"] = "both" if given["eval_mode"] == "add" else "near"
    if given.get("round_multiple", -1) > 0:  # whether to round; to multiples of a clip
        found["round_to"] = float(given.get("clip_length", UniVtgConfig.clip_seconds))
    return found


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; shapes do not show heads, endpoints or positions of words, and nothing is cut."""
    state, settings, dims, assumed = take_inputs(weights, asked)
    assumed["max_clips"] = UniVtgConfig.official["max_clips"]
    if not asked.get("word_positions"):
        del settings["max_words"]
        assumed["max_words"] = UNCUT_WORDS
    encoder, settings["encoder_layers"] = take_encoder(weights, "encoder", "transformer.encoder")
    state |= encoder
    state |= weights.take_layer("kind", "token_type_embeddings", "weight")
    state |= {"pool.weight": weights.take("weightedpool.weight").T}
    state |= take_layers(weights, "label", "class_embed") | take_layers(weights, "ends", "span_embed")
    settings["feedforward"] = weights.shape("transformer.encoder.layers.0.linear1.weight", 2)[0]
    return Translation(settings, dims, state, assumed)


register_public(
    "univtg",
    translate,
    marks=("token_type_embeddings.weight", "weightedpool.weight"),
    source="showlab/UniVTG, model/univtg.py: Model",
    settings=UniVtgConfig.official,
    training={"task": "SVMR", "nms": 0.7},
    options=options,
)
