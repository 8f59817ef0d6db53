"""MCN's and CAL's public weights (``baselines/clip_alignment_with_language/model.py``, ``CALWithSub``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.public.weights import PublicWeights, State, Translation, register_public, streams_of, take_lstm
from momentseek.models.zoo.cal import CALConfig
from momentseek.models.zoo.mcn import MCNConfig

CAL_SOURCE = "jayleicn/TVRetrieval, baselines/clip_alignment_with_language/model.py: CALWithSub"
CAL_MARKS = ("query_lstm.rnn.weight_ih_l0", "query_linear.weight")


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights of MCN or CAL; shapes do not show whether a moment's columns include endpoints."""
    streams = streams_of(weights, "{}_moment_mlp.0.weight")
    if not streams:
        raise MomentseekError("the weights lack 'video_moment_mlp.0.weight'")
    state: State = take_lstm(weights, "words", "query_lstm.rnn", both_ways=False)
    state |= weights.take_layer("query", "query_linear")
    space, states = weights.shape("query_linear.weight", 2)
    tef, context = bool(asked.get("moment_endpoints", True)), bool(asked.get("context", True))
    columns: dict[str, int | None] = {"video": None, "subtitle": None}
    hidden = 0
    for theirs, ours in streams.items():
        hidden, width = weights.shape(f"{theirs}_moment_mlp.0.weight", 2)
        columns[ours], rest = divmod(width - 2 * tef, 1 + context)
        if rest:
            raise MomentseekError(f"{width} columns of a moment are no pair of clips and context; set context=false")
        for place in ("0", "2"):
            state |= weights.take_layer(f"moment.{ours}.{place}", f"{theirs}_moment_mlp.{place}")
    settings = {"hidden": hidden, "word_hidden": states, "space": space, "modalities": "+".join(streams.values())}
    words = weights.shape("query_lstm.rnn.weight_ih_l0", 2)[1]
    assumed = {"moment_endpoints": tef, "context": context}
    return Translation(settings, Dims(words, **columns), state, assumed)


register_public("mcn", translate, marks=CAL_MARKS, source=CAL_SOURCE, settings=MCNConfig.official)


register_public("cal", translate, marks=CAL_MARKS, source=CAL_SOURCE, settings=CALConfig.official)
