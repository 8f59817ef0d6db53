"""MEE's public weights (TVRetrieval's ``baselines/mixture_embedding_experts/model.py``, ``MEE``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.public.weights import (
    PublicWeights,
    State,
    Translation,
    by_cluster,
    register_public,
    streams_of,
    take_netvlad,
)
from momentseek.models.zoo.mee import MEEConfig

POOL = "query_pooling"
NORM_PARTS = ("weight", "bias", "running_mean", "running_var")


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; shapes do not show whether the clips' columns include endpoints."""
    streams = streams_of(weights, "{}_gu.fc.weight")
    if not streams:
        raise MomentseekError("the weights lack 'video_gu.fc.weight'")
    words, clusters = weights.shape(f"{POOL}.clusters", 2)
    state: State = take_netvlad(weights, "words", POOL)
    state |= weights.take_layer("words.norm", f"{POOL}.batch_norm", *NORM_PARTS)
    more = 2 * bool(asked.get("endpoints"))
    columns: dict[str, int | None] = {"video": None, "subtitle": None}
    hidden = 0
    for theirs, ours in streams.items():
        hidden, width = weights.shape(f"{theirs}_gu.fc.weight", 2)
        columns[ours] = width - more
        state |= _take_gated(weights, f"text.{ours}", f"{theirs}_query_gu")
        state |= _take_gated(weights, f"experts.{ours}", f"{theirs}_gu")
        state[f"text.{ours}.linear.weight"] = by_cluster(state[f"text.{ours}.linear.weight"], words)
    if len(streams) == 2:
        state |= weights.take_layer("weigh", "moe_fc")
        state["weigh.weight"] = by_cluster(state["weigh.weight"], words)
    weights.skip("*.num_batches_tracked")
    settings = {"hidden": hidden, "clusters": clusters, "batch_norm": True, "modalities": "+".join(streams.values())}
    return Translation(settings, Dims(words, **columns), state, {"endpoints": bool(more)})


def _take_gated(weights: PublicWeights, ours: str, theirs: str) -> State:
    state = weights.take_layer(f"{ours}.linear", f"{theirs}.fc")
    state |= weights.take_layer(f"{ours}.gate", f"{theirs}.cg.fc")
    return state | weights.take_layer(f"{ours}.norm", f"{theirs}.cg.batch_norm", *NORM_PARTS)


register_public(
    "mee",
    translate,
    marks=(f"{POOL}.clusters", f"{POOL}.batch_norm.weight"),
    source="jayleicn/TVRetrieval, baselines/mixture_embedding_experts/model.py: MEE",
    settings=MEEConfig.official,
    training={"task": "VR", "measure": "R@1[task=VR]", "report": ["R@{1,5,10,100}[task=VR]"]},
)
