"""Layers that the public code of TVR's models shares, under our names."""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.public.weights import PublicWeights

STREAMS = {"video": "video", "sub": "subtitle"}
"""The public names of modalities, and ours."""
LSTM_PARTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")

State = dict[str, Tensor]


def streams_of(weights: PublicWeights, pattern: str) -> dict[str, str]:
    """The modalities of which the weights have a name, such as ``{}_query_linear.weight``."""
    return {theirs: ours for theirs, ours in STREAMS.items() if pattern.format(theirs) in weights}


def take_projection(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Layer norm, dropout, linear map and ReLU."""
    return weights.take_layer(f"{ours}.norm", f"{theirs}.LayerNorm") | weights.take_layer(
        f"{ours}.linear", f"{theirs}.net.1"
    )


def take_positions(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Learned positions and their layer norm."""
    places = weights.take_layer(f"{ours}.place", f"{theirs}.position_embeddings", "weight")
    return places | weights.take_layer(f"{ours}.norm", f"{theirs}.LayerNorm")


def take_attention(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Multi-head attention; keys and values are one map here."""
    state = weights.take_layer(f"{ours}.query", f"{theirs}.query")
    for part in ("weight", "bias"):
        both = [weights.take(f"{theirs}.{kind}.{part}") for kind in ("key", "value")]
        state[f"{ours}.key_value.{part}"] = torch.cat(both)
    return state


def take_block(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Attention, dense map, residual and layer norm."""
    state = take_attention(weights, f"{ours}.attention", f"{theirs}.self")
    state |= weights.take_layer(f"{ours}.linear", f"{theirs}.output.dense")
    return state | weights.take_layer(f"{ours}.norm", f"{theirs}.output.LayerNorm")


def take_bert(weights: PublicWeights, ours: str, theirs: str) -> State:
    """A whole transformer layer, with its feed-forward part."""
    state = take_block(weights, f"{ours}.attend", f"{theirs}.attention")
    state |= weights.take_layer(f"{ours}.wide", f"{theirs}.intermediate.dense")
    state |= weights.take_layer(f"{ours}.narrow", f"{theirs}.output.dense")
    return state | weights.take_layer(f"{ours}.norm", f"{theirs}.output.LayerNorm")


def take_lstm(weights: PublicWeights, ours: str, theirs: str, *, both_ways: bool = True) -> State:
    """An LSTM, whose directions are two here."""
    state = {f"{ours}.forwards.{part}": weights.take(f"{theirs}.rnn.{part}") for part in LSTM_PARTS}
    if both_ways:
        state |= {f"{ours}.backwards.{part}": weights.take(f"{theirs}.rnn.{part}_reverse") for part in LSTM_PARTS}
    return state


def take_netvlad(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Clusters and centres of NetVLAD, without what normalises its assignment."""
    return {
        f"{ours}.assign.weight": weights.take(f"{theirs}.clusters").T,
        f"{ours}.centres": weights.take(f"{theirs}.clusters2").squeeze(0).T,
    }


def by_cluster(weight: Tensor, dim: int) -> Tensor:
    """The columns of a map of NetVLAD's result, cluster by cluster; theirs run through the clusters for each column.

    >>> by_cluster(torch.tensor([[0, 1, 2, 10, 11, 12]]), dim=2).tolist()
    [[0, 10, 1, 11, 2, 12]]
    """
    return weight.reshape(len(weight), dim, -1).transpose(1, 2).flatten(1)
