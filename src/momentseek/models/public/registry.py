"""The public implementations whose weights are understood, by the names of our models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from momentseek.models.public.weights import PublicWeights, Translation
from momentseek.registry import Registry


@dataclass(frozen=True)
class PublicSpec:
    """A public implementation: how its weights become ours, and the settings that make our model compute as it does."""

    name: str
    translate: Callable[[PublicWeights, Mapping[str, Any]], Translation]
    marks: tuple[str, ...]
    """Names that every state dict of this implementation has, and others lack."""
    source: str
    """Repository, file and class."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the model."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Settings of training that decide how a run of it predicts: task, end_time, nms."""


PUBLIC_MODELS: Registry[PublicSpec] = Registry("public model", package="momentseek.models.public")


def register_public(
    name: str,
    translate: Callable[[PublicWeights, Mapping[str, Any]], Translation],
    *,
    marks: tuple[str, ...],
    source: str,
    settings: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Make the weights of a public implementation of the model ``name`` known; its file calls this once, at its end."""
    PUBLIC_MODELS.add(name, PublicSpec(name, translate, marks, source, settings or {}, training or {}))
