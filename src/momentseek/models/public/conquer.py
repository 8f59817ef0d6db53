"""CONQUER's public weights (``model/conquer.py``, ``CONQUER``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.models.features.data import Dims
from momentseek.models.public.weights import (
    PublicWeights,
    State,
    Translation,
    by_cluster,
    register_public,
    take_bert,
    take_netvlad,
    take_positions,
    take_projection,
)
from momentseek.models.zoo.conquer import ConquerConfig

CONQUER_HEADS = 12
CLIPS, WORDS, READ = "encoder.videoEncoder", "encoder.queryEncoder", "query_aware_feature_learning_layer"
PLACES = "transformer.embeddings"
POOL, HEAD, WHOLE = "query_weight.text_pooling", "moment_localization_head", "video_scoring_head"


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; ``general`` and ``disjoint`` have the same weights, and ``disjoint`` is the default."""
    hidden, words = weights.shape(f"{WORDS}.linear.net.1.weight", 2)
    state: State = take_projection(weights, "project_words", f"{WORDS}.linear")
    state |= take_positions(weights, "word_positions", f"{WORDS}.{PLACES}")
    state["word_kind"] = weights.take(f"{WORDS}.{PLACES}.token_type_embeddings.weight")[1]  # words are of type 1
    state |= take_bert(weights, "word_encoder", f"{WORDS}.transformer.encoder.layer.0")
    state |= take_projection(weights, "project_clips.video", f"{CLIPS}.img_linear")
    state |= take_projection(weights, "project_clips.subtitle", f"{CLIPS}.text_linear")
    state |= take_positions(weights, "clip_positions", f"{CLIPS}.{PLACES}")
    state |= weights.take_layer("kind", f"{CLIPS}.{PLACES}.token_type_embeddings", "weight")
    state |= take_bert(weights, "joint", f"{CLIPS}.transformer.encoder.layer.0")
    state |= take_netvlad(weights, "weigh.pool", POOL)
    state |= weights.take_layer("weigh.pool.norm", f"{POOL}.LayerNorm")
    state["weigh.weigh.weight"] = by_cluster(weights.take("query_weight.moe_fc_txt.weight"), hidden)
    clip, word, both = weights.take(f"{READ}.similarity_weight.weight").chunk(3, dim=1)
    state |= {"read.clip.weight": clip, "read.word.weight": word, "read.both": both.squeeze(0)}
    state |= _take_projected(weights, "contextual", "contextual_QAL_feature_learning")
    for side in ("begin", "end"):
        state |= _take_projected(weights, f"{side}.encoder", f"{HEAD}.{side}_feature_modeling")
        scores = f"{HEAD}.{side}_score_modeling.clip_score_predictor"
        state |= weights.take_layer(f"{side}.wide", f"{scores}.0", "weight")
        state |= weights.take_layer(f"{side}.narrow", f"{scores}.2", "weight")
    convolution = weights.shape(f"{HEAD}.begin_score_modeling.clip_score_predictor.0.weight", 3)
    settings: dict[str, Any] = {
        "hidden": hidden,
        "feedforward": weights.shape(f"{WORDS}.transformer.encoder.layer.0.intermediate.dense.weight", 2)[0],
        "clusters": weights.shape(f"{POOL}.clusters", 2)[1],
        "head": convolution[0],
        "kernel": convolution[2],
        "max_words": weights.shape(f"{WORDS}.{PLACES}.position_embeddings.weight", 2)[0],
        "max_clips": weights.shape(f"{CLIPS}.{PLACES}.position_embeddings.weight", 2)[0],
        "modalities": "video+subtitle",
    }
    assumed: dict[str, Any] = {"heads": CONQUER_HEADS, "normalise_words": False, "normalise_subtitles": False}
    if f"{WHOLE}.video_score_predictor.0.weight" in weights:
        state |= _take_projected(weights, "whole", f"{WHOLE}.video_feature_modeling")
        for place in ("0", "2"):
            state |= weights.take_layer(f"whole_score.{place}", f"{WHOLE}.video_score_predictor.{place}", "weight")
        settings["video_head"] = weights.shape(f"{WHOLE}.video_score_predictor.0.weight", 2)[0]
        settings["score"] = "exclusive"
    else:
        assumed["score"] = asked.get("score", "disjoint")
        assumed["alpha"] = 1.0 if assumed["score"] == "general" else 0.0
    columns = [weights.shape(f"{CLIPS}.{part}_linear.net.1.weight", 2)[1] for part in ("img", "text")]
    return Translation(settings, Dims(words, *columns), state, assumed)


def _take_projected(weights: PublicWeights, ours: str, theirs: str) -> State:
    state = take_projection(weights, f"{ours}.project", f"{theirs}.trans_linear")
    return state | take_bert(weights, f"{ours}.layer", f"{theirs}.encoder.layer.0")


register_public(
    "conquer",
    translate,
    marks=(f"{READ}.similarity_weight.weight", f"{WORDS}.linear.net.1.weight"),
    source="houzhijian/CONQUER, model/conquer.py: CONQUER",
    settings=ConquerConfig.official,
)
