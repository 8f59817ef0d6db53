"""XML's public weights (``baselines/crossmodal_moment_localization/model_xml.py``, ``XML``), and ReLoCLNet's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.public.weights import (
    LSTM_PARTS,
    PublicWeights,
    State,
    Translation,
    register_public,
    streams_of,
    take_attention,
    take_block,
    take_positions,
    take_projection,
)
from momentseek.models.zoo.xml import XMLConfig

XML_HEADS = 4
ENCODER_MARKS = {
    "self.query.weight": "transformer",
    "rnn.weight_ih_l0": "lstm",
    "conv.depthwise_conv.weight": "cnn",
}
"""What an encoder has, and of which kind it is."""


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate XML's weights; shapes do not show heads, modular queries or endpoints."""
    return translate_streams(weights, asked, ("query_encoder",), heads=XML_HEADS)


def translate_streams(
    weights: PublicWeights, asked: Mapping[str, Any], query_encoders: tuple[str, ...], *, heads: int
) -> Translation:
    """XML with these encoders of words, one after another; ReLoCLNet is one."""
    streams = streams_of(weights, "{}_query_linear.weight")
    if not streams:
        raise MomentseekError("the weights lack 'video_query_linear.weight'")
    encoder = _kind(weights, query_encoders[0])
    modular = bool(asked.get("modular", True))
    state: State = take_projection(weights, "word_projection", "query_input_proj")
    if encoder == "lstm" and not asked.get("lstm_positions"):
        weights.skip("query_pos_embed.*", "ctx_pos_embed.*")
    else:
        state |= take_positions(weights, "word_positions", "query_pos_embed")
        state |= take_positions(weights, "clip_positions", "ctx_pos_embed")
    for number, name in enumerate(query_encoders):
        state |= _take_encoder(weights, f"word_encoders.layers.{number}", name)
    if modular:
        state |= weights.take_layer("pooling.weight", "modular_vector_mapping", "weight")
    else:
        weights.skip("modular_vector_mapping.weight")
    more = 2 * bool(asked.get("endpoints"))
    columns: dict[str, int | None] = {"video": None, "subtitle": None}
    for theirs, ours in streams.items():
        columns[ours] = weights.shape(f"{theirs}_input_proj.net.1.weight", 2)[1] - more
        state |= take_projection(weights, f"clip_projections.{ours}", f"{theirs}_input_proj")
        state |= _take_encoder(weights, f"clip_first.{ours}.layers.0", f"{theirs}_encoder1")
        state |= _take_encoder(weights, f"clip_later.{ours}.layers.0", f"{theirs}_encoder2")
        if any(f"{theirs}_encoder3.{mark}" in weights for mark in ENCODER_MARKS):
            state |= _take_encoder(weights, f"clip_later.{ours}.layers.1", f"{theirs}_encoder3")
        if len(streams) == 2:
            state |= take_attention(weights, f"cross.{ours}.attention", f"{theirs}_cross_att")
            state |= weights.take_layer(f"cross.{ours}.norm", f"{theirs}_cross_layernorm")
        state |= weights.take_layer(f"span_queries.{ours}", f"{theirs}_query_linear")
    filters = "merged" if len(streams) == 2 else next(iter(streams))
    sides = [weights.take(f"{filters}_{side}_predictor.weight") for side in ("st", "ed")]
    state["boundaries_head.filters.weight"] = torch.cat(sides)
    words = weights.shape("query_input_proj.net.1.weight", 2)
    settings = {
        "hidden": words[0],
        "encoder": encoder,
        "query_layers": len(query_encoders),
        "kernel": sides[0].shape[-1],
        "max_words": weights.shape("query_pos_embed.position_embeddings.weight", 2)[0],
        "max_clips": weights.shape("ctx_pos_embed.position_embeddings.weight", 2)[0],
        "modalities": "+".join(streams.values()),
    }
    assumed = {"heads": heads, "modular": modular, "endpoints": bool(more)}
    return Translation(settings, Dims(words[1], **columns), state, assumed)


def _kind(weights: PublicWeights, name: str) -> str:
    for mark, kind in ENCODER_MARKS.items():
        if f"{name}.{mark}" in weights:
            return kind
    raise MomentseekError(f"the weights lack an encoder {name!r} of a kind that is known")


def _take_encoder(weights: PublicWeights, ours: str, theirs: str) -> State:
    kind = _kind(weights, theirs)
    if kind == "transformer":
        return take_block(weights, ours, theirs)
    if kind == "lstm":
        parts = [f"{part}{end}" for part in LSTM_PARTS for end in ("", "_reverse")]
        return weights.take_layer(f"{ours}.lstm", f"{theirs}.rnn", *parts)
    state = weights.take_layer(f"{ours}.depth", f"{theirs}.conv.depthwise_conv")
    state |= weights.take_layer(f"{ours}.point", f"{theirs}.conv.pointwise_conv")
    return state | weights.take_layer(f"{ours}.norm", f"{theirs}.layer_norm")


register_public(
    "xml",
    translate,
    marks=("query_input_proj.net.1.weight", "ctx_pos_embed.position_embeddings.weight"),
    source="jayleicn/TVRetrieval, baselines/crossmodal_moment_localization/model_xml.py: XML",
    settings={**XMLConfig.official, "shortest": 3, "longest": 16},
    training={"end_label": "official"},
)
