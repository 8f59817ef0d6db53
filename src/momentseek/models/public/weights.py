"""A state dict with public names, and what it becomes here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from torch import Tensor

from momentseek.errors import MomentseekError
from momentseek.models.model import Dims


@dataclass(frozen=True, eq=False)
class Translation:
    """What public weights are here: the settings that their shapes imply, the features' columns, and our weights."""

    settings: Mapping[str, Any]
    dims: Dims
    state: Mapping[str, Tensor]
    """Tensors by the names of our state dict."""
    assumed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that no shape tells (heads, clips of a pooled map): the authors' values, unless others are asked for."""


class PublicWeights:
    """Tensors by their public names; remembers which were used.

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
    momentseek.errors.MomentseekError: the weights lack 'convs.0.weight'
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = dict(tensors)
        self._used: set[str] = set()
        self.skipped: list[str] = []
        """Names that are known and have no place here, in their order."""

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def count(self, pattern: str) -> int:
        """How many of the names ``pattern`` with 0, 1, … in its braces there are, without a gap."""
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
        """The tensor of a name."""
        found = self._get(name)
        self._used.add(name)
        return found

    def take_layer(self, ours: str, theirs: str, *parts: str) -> dict[str, Tensor]:
        """The tensors of a layer by our names: ``weight`` and ``bias``, or the parts that are named."""
        return {f"{ours}.{part}": self.take(f"{theirs}.{part}") for part in parts or ("weight", "bias")}

    def skip(self, *patterns: str) -> None:
        """Leave out the names that a pattern such as ``bert.*`` covers."""
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
