"""QD-DETR's public weights (``qd_detr/model.py``, ``QDDETR``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.models.public.moment_detr import (
    SET_OPTIONS,
    options_of,
    take_encoder,
    take_feed,
    take_inputs,
    take_layers,
)
from momentseek.models.public.weights import PublicWeights, State, Translation, register_public
from momentseek.models.zoo.qd_detr import QdDetrConfig

AMONG = {
    "query": "sa_qcontent_proj", "query_place": "sa_qpos_proj", "key": "sa_kcontent_proj", "key_place": "sa_kpos_proj",
    "value": "sa_v_proj", "out": "self_attn.out_proj",
}  # fmt: skip
ACROSS = {
    "query": "ca_qcontent_proj", "query_place": "ca_qpos_proj", "key": "ca_kcontent_proj", "key_place": "ca_kpos_proj",
    "value": "ca_v_proj", "sine": "ca_qpos_sine_proj", "out": "cross_attn.out_proj",
}  # fmt: skip
HEADS_OF_ANCHORS = {
    "scale": "query_scale", "place": "ref_point_head", "move": "bbox_embed", "width": "ref_anchor_head",
}  # fmt: skip


def options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that the weights do not tell, from the options of a public training run."""
    found = options_of(SET_OPTIONS)(given)
    if given.get("contrastive_align_loss"):
        found["align"] = given.get("contrastive_align_loss_coef", 0.0)
    return found


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; shapes do not show heads, endpoints, positions of words, or the columns of audio."""
    state, settings, dims, assumed = take_inputs(weights, asked)
    for ours, theirs in (("words_into_clips", "t2v_encoder"), ("encoder", "encoder")):
        layers, settings["encoder_layers"] = take_encoder(weights, ours, f"transformer.{theirs}")
        state |= layers
    settings["decoder_layers"] = weights.count("transformer.decoder.layers.{}.linear1.weight")
    for number in range(settings["decoder_layers"]):
        state |= _take_decoder_layer(weights, f"decoder.layers.{number}", f"transformer.decoder.layers.{number}")
    state |= weights.take_layer("decoder.norm", "transformer.decoder.norm")
    for ours, theirs in HEADS_OF_ANCHORS.items():
        state |= take_layers(weights, f"decoder.{ours}", f"transformer.decoder.{theirs}")
    state |= {"whole": weights.take("global_rep_token"), "whole_place": weights.take("global_rep_pos")}
    state |= weights.take_layer("anchors", "query_embed", "weight") | weights.take_layer("label", "class_embed")
    state |= take_layers(weights, "span", "span_embed")
    state |= weights.take_layer("salient_clip", "saliency_proj1") | weights.take_layer(
        "salient_whole", "saliency_proj2"
    )
    settings["feedforward"] = weights.shape("transformer.encoder.layers.0.linear1.weight", 2)[0]
    settings["queries"] = weights.shape("query_embed.weight", 2)[0]
    weights.skip("contrastive_align_projection_*")  # the contrast sees no text, so that it is a constant
    return Translation(settings, dims, state, assumed)


def _take_decoder_layer(weights: PublicWeights, ours: str, theirs: str) -> State:
    state = take_feed(weights, ours, theirs, 3)
    for part, names in (("among", AMONG), ("across", ACROSS)):
        for name, public in names.items():
            if f"{theirs}.{public}.weight" in weights:
                state |= weights.take_layer(f"{ours}.{part}.{name}", f"{theirs}.{public}")
    return state


register_public(
    "qd_detr",
    translate,
    marks=("global_rep_token", "transformer.t2v_encoder.layers.0.linear1.weight"),
    source="wjun0830/QD-DETR, qd_detr/model.py: QDDETR",
    settings=QdDetrConfig.official,
    training={"task": "SVMR"},
    options=options,
)
