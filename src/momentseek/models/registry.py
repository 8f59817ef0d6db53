"""Models by name: a file of this folder that calls ``register`` is all it takes to add one."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from momentseek.errors import MomentseekError
from momentseek.models.model import CorpusModel, Dims, ModelConfig
from momentseek.registry import Registry, did_you_mean


@dataclass(frozen=True)
class ModelSpec:
    """A registered model: its class, the class of its settings, and one line about it."""

    name: str
    config: type[ModelConfig]
    model: type[CorpusModel]
    summary: str
    format: int = 1
    """Counts up whenever the network computes something else with the same weights and settings."""
    former: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Earlier formats that can still be used: the settings that they lack, with the values that they imply."""


SETTING_ALIASES = {"as": "follow"}
"""Other spellings of settings: ``as=official`` cannot be the name of an attribute."""
FOLLOWED = ("paper", "official")
"""Whose ways a model has: its paper's, or its public implementation's with all its quirks."""
MODELS: Registry[ModelSpec] = Registry("model", package="momentseek.models")
C = TypeVar("C")
_type_hints = functools.cache(typing.get_type_hints)


def register(
    name: str,
    config: type[ModelConfig],
    model: type[CorpusModel],
    summary: str,
    *,
    format: int = 1,
    former: Mapping[int, Mapping[str, Any]] | None = None,
) -> None:
    """Make a model known by a name; its file calls this once, at its end."""
    MODELS.add(name, ModelSpec(name, config, model, summary, format, former or {}))


def build(name: str, settings: Mapping[str, Any], dims: Dims) -> CorpusModel:
    """A new model with these settings, and defaults for the others."""
    spec = MODELS[name]
    return spec.model(build_config(spec.config, settings, f"model {name}"), dims)


def build_config(kind: type[C], settings: Mapping[str, Any], what: str) -> C:
    """An instance of a settings class from named values, each checked for its name and type.

    >>> build_config(ModelConfig, {"hidden": 64, "dropout": 0}, "model").dropout
    0.0
    >>> build_config(ModelConfig, {"hiden": 64}, "model xml")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: model xml has no setting 'hiden'; did you mean 'hidden'?
    """
    hints = _type_hints(kind)  # type: ignore[arg-type]
    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    values = {}
    for name, value in plain_settings(kind, settings).items():
        if name not in known:
            hint = did_you_mean(name, known, f"settings are {', '.join(known)}")
            raise MomentseekError(f"{what} has no setting {name!r}; {hint}")
        values[name] = _check_type(value, hints[name], f"{what}: {name}")
    return kind(**values)


def plain_settings(kind: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under their own names; ``as=official`` stands for all that the public implementation does otherwise.

    Those that are given beside it count.

    >>> from momentseek.models.conquer import ConquerConfig
    >>> plain_settings(ConquerConfig, {"weighting": "linear", "as": "official"})
    {'masked': False, 'positive_mask': False, 'weighting': 'linear'}
    """
    given = {SETTING_ALIASES.get(name, name): value for name, value in settings.items()}
    known = {f.name for f in dataclasses.fields(kind)}
    if "follow" not in given or "follow" in known:
        return given
    followed = given.pop("follow")
    if followed not in FOLLOWED:
        raise MomentseekError(f"as must be {' or '.join(FOLLOWED)}, not {followed!r}")
    return {**getattr(kind, "official", {}), **given} if followed == "official" else given


def _check_type(value: Any, hint: Any, where: str) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        if option is types.NoneType and value is None:
            return None
        if option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(option, type) and isinstance(value, option) and (option is bool or not isinstance(value, bool)):
            return value
        if typing.get_origin(option) is tuple and isinstance(value, list | tuple):
            return tuple(value)
    names = " or ".join("nothing" if o is types.NoneType else getattr(o, "__name__", str(o)) for o in options)
    raise MomentseekError(f"{where} must be {names}, not {value!r}")
