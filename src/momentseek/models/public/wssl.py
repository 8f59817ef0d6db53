"""WSSL's public weights (``model/sentence_localizer.py``, ``model/caption_generator.py`` of WSDEC)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from momentseek.models.features.data import Dims
from momentseek.models.inputs import word_id
from momentseek.models.public.weights import (
    NORM_PARTS,
    PublicWeights,
    State,
    Translation,
    register_public,
    take_gru,
    take_layers,
)
from momentseek.models.zoo.wssl import WsslConfig

SPECIAL = 3
"""Entries of the public vocabulary that are no words: the beginning, the end, and at the end the unknown word."""
NEVER = -1e9
"""The logit of padding, which the public vocabulary does not have."""


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights of the localiser (prefix ``sl.``) and the captioner (``cg.``).

    Where our layers have a bias and theirs have none, it is 0. Entries of the vocabulary have a different order here.
    """
    embedding = weights.take("sl.sent_embedding.weight")
    words = weights.vocabulary(len(embedding))[2:-1]
    order = sorted(range(len(words)), key=lambda i: word_id(words[i]))
    place = torch.tensor([0, 1, len(embedding) - 1, *(i + 2 for i in order)])
    state = {"known.known": torch.tensor([word_id(words[i]) for i in order])}
    state["localiser.words.weight"] = _with_padding(embedding[place], 0.0)
    state["captioner.words.weight"] = _with_padding(weights.take("cg.decoder.embedding.weight")[place], 0.0)
    for part, padding in (("weight", 0.0), ("bias", NEVER)):
        out = weights.take(f"cg.decoder.output_layer.{part}")
        state[f"captioner.out.{part}"] = _with_padding(out[place], padding)
    state |= _take_videos(weights, "localiser", "sl") | _take_videos(weights, "captioner", "cg")
    state |= take_gru(weights, "localiser.sentence", "sl.text_encoder.rnn_cell")
    state |= _take_mixer(weights)
    state |= take_gru(weights, "captioner.decoder", "cg.decoder.rnn_cell")
    hidden, columns = weights.shape("sl.video_encoder.linear.weight", 2)
    first = "captioner.decoder.layers.0.weight_ih_l0"  # reads left, inside and right; ours inside, left and right
    word, around = state[first][:, : embedding.shape[1]], state[first][:, embedding.shape[1] :]
    left, inside, right = around.chunk(3, dim=1)
    state[first] = torch.cat([word, inside, left, right], 1)
    settings = {
        "hidden": hidden,
        "vocabulary": len(words),
        "layers": weights.count("sl.video_encoder.rnn_cell.weight_ih_l{}"),
    }
    return Translation(settings, Dims(embedding.shape[1], columns, None), state)


def _with_padding(rows: Tensor, value: float) -> Tensor:
    return torch.cat([torch.full_like(rows[:1], value), rows])


def _take_videos(weights: PublicWeights, ours: str, theirs: str) -> State:
    state = take_gru(weights, f"{ours}.video", f"{theirs}.video_encoder.rnn_cell")
    return state | _without_bias(weights, f"{ours}.beside", f"{theirs}.video_encoder.linear")


def _without_bias(weights: PublicWeights, ours: str, theirs: str) -> State:
    state = weights.take_layer(ours, theirs, "weight")
    return {**state, f"{ours}.bias": torch.zeros(len(state[f"{ours}.weight"]))}


def _take_mixer(weights: PublicWeights) -> State:
    mixer = "sl.feature_mixer"
    state = take_layers(weights, {
        "localiser.join": f"{mixer}.fc", "localiser.body.0": f"{mixer}.combiner.0",
        "localiser.body.4": f"{mixer}.combiner.4", "localiser.score": "sl.predictor", "localiser.refine": "sl.refiner",
    })  # fmt: skip
    for ours, theirs in (("word_norm", "text_batch_norm"), ("clip_norm", "video_batch_norm"), ("body.1", "combiner.1"),
                         ("body.5", "combiner.5")):  # fmt: skip
        state |= weights.take_layer(f"localiser.{ours}", f"{mixer}.{theirs}", *NORM_PARTS)
    for ours, theirs in (("over_words", "text"), ("over_clips", "video")):
        state |= _without_bias(weights, f"localiser.{ours}", f"{mixer}.{theirs}_attention.linear")
    return state


register_public(
    "wssl",
    translate,
    marks=("sl.sent_embedding.weight", "cg.decoder.output_layer.weight"),
    source="XgDuan/WSDEC, model/sentence_localizer.py and model/caption_generator.py",
    settings={**WsslConfig.official, "normalise": False, "pretrain": 0.0},
    training={"task": "SVMR"},
)
