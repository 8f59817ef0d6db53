"""Translate public weights to our names and settings; the registry of supported public implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.registry import Registry
from momentseek.models.captioner import CaptionerDims
from momentseek.models.features.data import Dims

STREAMS = {"video": "video", "sub": "subtitle"}
"""Public names of modalities → ours."""
LSTM_PARTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
NORM_PARTS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
State = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Translation:
    """The translation of public weights: settings read from their shapes, numbers of columns, and our weights."""

    settings: Mapping[str, Any]
    dims: Dims | CaptionerDims
    state: Mapping[str, Tensor]
    """Tensors by the names of our state dict."""
    assumed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that shapes do not show, such as heads: the authors' values, unless others are given."""


class PublicWeights:
    """Tensors by public name, which records the names that were used.

    >>> import torch
    >>> weights = PublicWeights({"conv.0.weight": torch.ones(2, 3, 1), "conv.1.weight": torch.ones(2, 2, 1)})
    >>> weights.count("conv.{}.weight"), weights.shape("conv.0.weight")
    (2, (2, 3, 1))
    >>> _ = weights.take("conv.0.weight")
    >>> weights.leftovers()
    ['conv.1.weight']
    >>> weights.take("convs.0.weight")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: the weights lack 'convs.0.weight'
    """

    def __init__(self, tensors: Mapping[str, Tensor], words: Sequence[str] = ()) -> None:
        self._tensors = dict(tensors)
        self._words = tuple(words)
        self._used: set[str] = set()
        self.skipped: list[str] = []
        """Known names that our model does not use, in order."""

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def count(self, pattern: str) -> int:
        """Count the names that ``pattern`` gives with 0, 1, … in its braces, up to the first gap."""
        number = 0
        while pattern.format(number) in self._tensors:
            number += 1
        return number

    def shape(self, name: str, axes: int | None = None) -> tuple[int, ...]:
        """The shape of a tensor, which must have ``axes`` axes if they are given."""
        shape = tuple(self._get(name).shape)
        if axes is not None and len(shape) != axes:
            raise MomentseekError(f"the weights' {name!r} has {len(shape)} axes, not {axes}")
        return shape

    def take(self, name: str) -> Tensor:
        """Return the tensor of a name, and mark it as used."""
        found = self._get(name)
        self._used.add(name)
        return found

    def take_layer(self, ours: str, theirs: str, *parts: str) -> dict[str, Tensor]:
        """The tensors of a layer by our names: ``weight`` and ``bias``, or the parts that are named."""
        return {f"{ours}.{part}": self.take(f"{theirs}.{part}") for part in parts or ("weight", "bias")}

    def vocabulary(self, count: int) -> tuple[str, ...]:
        """The ``count`` words of an embedding's rows, which public code stores in a separate file."""
        if not self._words:
            raise MomentseekError(
                f"the weights have {count:,} words and do not name them; give the file that does ({parameter('words')})"
            )
        if len(self._words) != count:
            raise MomentseekError(
                f"the weights have {count:,} words, and {len(self._words):,} are named; give the file that belongs to "
                "them"
            )
        return self._words

    def skip(self, *patterns: str) -> None:
        """Skip the names that match a pattern such as ``bert.*``."""
        for name in self._tensors:
            if name not in self._used and any(fnmatchcase(name, pattern) for pattern in patterns):
                self._used.add(name)
                self.skipped.append(name)

    def leftovers(self) -> list[str]:
        """Names that were neither taken nor skipped."""
        return [name for name in self._tensors if name not in self._used]

    def _get(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise MomentseekError(f"the weights lack {name!r}")
        return self._tensors[name]


@dataclass(frozen=True)
class PublicSpec:
    """A public implementation: how to translate its weights, and the settings that reproduce it."""

    name: str
    translate: Callable[[PublicWeights, Mapping[str, Any]], Translation]
    marks: tuple[str, ...]
    """Names that identify a state dict of this implementation."""
    source: str
    """Repository, file and class."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the model."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Settings of training that predictions depend on: task, end_time, nms."""
    options: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    """Converts the options that the public program stores next to its weights (``opt.json``) to settings."""


PUBLIC_MODELS: Registry[PublicSpec] = Registry("public model", package="momentseek.models.public")


def register_public(
    name: str,
    translate: Callable[[PublicWeights, Mapping[str, Any]], Translation],
    *,
    marks: tuple[str, ...],
    source: str,
    settings: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    options: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None,
) -> None:
    """Register the public implementation of the model ``name``; its file calls this once, at its end."""
    PUBLIC_MODELS.add(name, PublicSpec(name, translate, marks, source, settings or {}, training or {}, options))


def streams_of(weights: PublicWeights, pattern: str) -> dict[str, str]:
    """The modalities for which the weights have a name such as ``{}_query_linear.weight``."""
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
    """An LSTM, whose two directions are separate modules here."""
    state = {f"{ours}.forwards.{part}": weights.take(f"{theirs}.{part}") for part in LSTM_PARTS}
    if both_ways:
        state |= {f"{ours}.backwards.{part}": weights.take(f"{theirs}.{part}_reverse") for part in LSTM_PARTS}
    return state


def take_layers(weights: PublicWeights, names: Mapping[str, str]) -> State:
    """Layers with a weight and an optional bias, given as our names → theirs."""
    state: State = {}
    for ours, theirs in names.items():
        parts = [part for part in ("weight", "bias") if part == "weight" or f"{theirs}.{part}" in weights]
        state |= weights.take_layer(ours, theirs, *parts)
    return state


def take_normalised(weights: PublicWeights, ours: str, theirs: str) -> State:
    """A layer and the batch normalisation after it, the first two of a sequence."""
    state = take_layers(weights, {f"{ours}.0": f"{theirs}.0"})
    return state | weights.take_layer(f"{ours}.1", f"{theirs}.1", *NORM_PARTS)


def take_gru(weights: PublicWeights, ours: str, theirs: str) -> State:
    """A stack of GRUs, which is one module there."""
    state: State = {}
    for layer in range(weights.count(f"{theirs}.weight_ih_l{{}}")):
        for part in LSTM_PARTS:
            name = part.removesuffix("0") + str(layer)
            state[f"{ours}.layers.{layer}.{part}"] = weights.take(f"{theirs}.{name}")
    return state


def take_netvlad(weights: PublicWeights, ours: str, theirs: str) -> State:
    """Clusters and centres of NetVLAD, without the normalisation of its assignment."""
    return {
        f"{ours}.assign.weight": weights.take(f"{theirs}.clusters").T,
        f"{ours}.centres": weights.take(f"{theirs}.clusters2").squeeze(0).T,
    }


def by_cluster(weight: Tensor, dim: int) -> Tensor:
    """Reorder the columns of a linear map of NetVLAD's output: ours go cluster by cluster, theirs column by column.

    >>> by_cluster(torch.tensor([[0, 1, 2, 10, 11, 12]]), dim=2).tolist()
    [[0, 10, 1, 11, 2, 12]]
    """
    return weight.reshape(len(weight), dim, -1).transpose(1, 2).flatten(1)
