"""Moment-DETR's public weights (``moment_detr/model.py``, ``MomentDETR``), and what its family has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from momentseek.models.features.data import Dims
from momentseek.models.public.weights import (
    PublicWeights,
    State,
    Translation,
    register_public,
    take_positions,
    take_projection,
)
from momentseek.models.zoo.moment_detr import MomentDetrConfig

AUDIO_COLUMNS = 2048
"""Columns of PANN's audio features, which QD-DETR reads next to the pictures'."""
HEADS = 8
SHARED_OPTIONS = {
    "nheads": "heads", "dropout": "dropout", "input_dropout": "input_dropout", "use_txt_pos": "word_positions",
    "eos_coef": "background",
}  # fmt: skip
SET_OPTIONS = {
    **SHARED_OPTIONS, "max_windows": "windows", "aux_loss": "auxiliary", "max_v_l": "max_clips",
    "set_cost_span": "cost_span", "set_cost_giou": "cost_iou", "set_cost_class": "cost_label",
    "span_loss_coef": "span", "giou_loss_coef": "iou", "label_loss_coef": "label", "lw_saliency": "salient",
    "saliency_margin": "margin",
}  # fmt: skip
"""Options of the public programs (``opt.json``) and our settings."""


def options_of(names: Mapping[str, str]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function from the options of a public training run to settings that weights do not tell.

    >>> options_of({"nheads": "heads"})({"nheads": 4, "ctx_mode": "video_tef", "lr": 1e-4})
    {'heads': 4, 'endpoints': True}
    """

    def settings(options: Mapping[str, Any]) -> dict[str, Any]:
        found = {ours: options[theirs] for theirs, ours in names.items() if theirs in options}
        if "ctx_mode" in options:
            found["endpoints"] = "tef" in options["ctx_mode"]
        if options.get("a_feat_dir"):
            found["modalities"] = "video+subtitle"
        if options.get("no_norm_vfeat") is not None:
            found["normalise"] = not options["no_norm_vfeat"]
        if options.get("no_norm_tfeat") is not None:
            found["normalise_words"] = not options["no_norm_tfeat"]
        return found

    return settings


def take_inputs(weights: PublicWeights, asked: Mapping[str, Any]) -> tuple[State, dict[str, Any], Dims, dict[str, Any]]:
    """Projections and positions of words: state, settings, columns of the features, and assumed settings."""
    state: State = {}
    count = weights.count("input_vid_proj.{}.net.1.weight")
    for ours, theirs in (("word_in", "input_txt_proj"), ("clip_in", "input_vid_proj")):
        for number in range(count):
            state |= take_projection(weights, f"{ours}.{number}", f"{theirs}.{number}")
    if asked.get("word_positions"):
        state |= take_positions(weights, "word_places", "txt_position_embed")
    else:
        weights.skip("txt_position_embed.*")
    hidden, columns = weights.shape("input_vid_proj.0.net.1.weight", 2)
    tef = asked.get("endpoints", True)
    audio = None
    if asked.get("modalities") == "video+subtitle":  # audio stands in the place of subtitles
        pictures = sum(asked.get("streams") or ()) or columns - AUDIO_COLUMNS - 4 * tef
        audio = columns - pictures - 4 * tef
    seen = columns - 2 * tef if audio is None else pictures
    dims = Dims(weights.shape("input_txt_proj.0.net.1.weight", 2)[1], seen, audio)
    settings = {
        "hidden": hidden,
        "projections": count,
        "max_words": weights.shape("txt_position_embed.position_embeddings.weight", 2)[0],
    }
    return state, settings, dims, {"heads": HEADS, "endpoints": tef, "word_positions": False, "streams": ()}


def take_multi_head(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Attention with one matrix for queries, keys and values."""
    state = {f"{ours}.into.{part}": weights.take(f"{theirs}.in_proj_{part}") for part in ("weight", "bias")}
    return state | weights.take_layer(f"{ours}.out", f"{theirs}.out_proj")


def take_feed(weights: PublicWeights, ours: str, theirs: str, norms: int) -> State:
    """The feed-forward part and the norms of a layer, and the slope of its activation where that is learnt."""
    state = weights.take_layer(f"{ours}.feed.wide", f"{theirs}.linear1")
    state |= weights.take_layer(f"{ours}.feed.narrow", f"{theirs}.linear2")
    for number in range(norms):
        state |= weights.take_layer(f"{ours}.norms.{number}", f"{theirs}.norm{number + 1}")
    if f"{theirs}.activation.weight" in weights:
        state |= weights.take_layer(f"{ours}.feed.activation", f"{theirs}.activation", "weight")
    return state


def take_encoder(weights: PublicWeights, ours: str, theirs: str) -> tuple[State, int]:
    """The layers of an encoder, and how many there are."""
    state: State = {}
    count = weights.count(f"{theirs}.layers.{{}}.linear1.weight")
    for number in range(count):
        state |= take_multi_head(weights, f"{ours}.{number}.attention", f"{theirs}.layers.{number}.self_attn")
        state |= take_feed(weights, f"{ours}.{number}", f"{theirs}.layers.{number}", 2)
    return state, count


def take_layers(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Take over the weights of all layers (linear or convolution) of the perceptron that is called ``theirs`` there."""
    state: State = {}
    for number in range(weights.count(f"{theirs}.layers.{{}}.weight")):
        state |= weights.take_layer(f"{ours}.layers.{number}", f"{theirs}.layers.{number}")
    return state


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; shapes do not show heads, endpoints, positions of words, or the contrast's settings."""
    state, settings, dims, assumed = take_inputs(weights, asked)
    encoder, settings["encoder_layers"] = take_encoder(weights, "encoder", "transformer.encoder")
    state |= encoder
    settings["pre_norm"] = "transformer.encoder.norm.weight" in weights
    if settings["pre_norm"]:
        state |= weights.take_layer("encoder_norm", "transformer.encoder.norm")
    layers = "transformer.decoder.layers"
    settings["decoder_layers"] = weights.count(f"{layers}.{{}}.linear1.weight")
    for number in range(settings["decoder_layers"]):
        for ours, theirs in (("among", "self_attn"), ("across", "multihead_attn")):
            state |= take_multi_head(weights, f"decoder.{number}.{ours}", f"{layers}.{number}.{theirs}")
        state |= take_feed(weights, f"decoder.{number}", f"{layers}.{number}", 3)
    state |= weights.take_layer("decoder_norm", "transformer.decoder.norm")
    state |= weights.take_layer("learnt", "query_embed", "weight")
    state |= weights.take_layer("label", "class_embed") | weights.take_layer("salient", "saliency_proj")
    state |= take_layers(weights, "span", "span_embed")
    settings["feedforward"] = weights.shape("transformer.encoder.layers.0.linear1.weight", 2)[0]
    settings["queries"] = weights.shape("query_embed.weight", 2)[0]
    outputs = weights.shape("span_embed.layers.2.weight", 2)[0]
    settings["regress"] = "times" if outputs == 2 else "clips"
    if outputs > 2:
        settings["span_clips"] = outputs // 2
    if "contrastive_align_projection_query.weight" in weights:
        for ours, theirs in (("align_queries", "query"), ("align_words", "txt")):
            state |= weights.take_layer(ours, f"contrastive_align_projection_{theirs}")
        weights.skip("contrastive_align_projection_vid.*")
        settings["align_columns"] = weights.shape("contrastive_align_projection_query.weight", 2)[0]
    return Translation(settings, dims, state, assumed)


register_public(
    "moment_detr",
    translate,
    marks=("transformer.decoder.layers.0.multihead_attn.in_proj_weight", "saliency_proj.weight"),
    source="jayleicn/moment_detr, moment_detr/model.py: MomentDETR",
    settings=MomentDetrConfig.official,
    training={"task": "SVMR"},
    options=options_of({**SET_OPTIONS, "contrastive_align_loss_coef": "align", "temperature": "temperature"}),
)
