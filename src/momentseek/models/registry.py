"""Models by name: a config class and what builds the model from it."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from momentseek.errors import MomentseekError
from momentseek.models.model import CorpusModel, Dims, ModelConfig


@dataclass(frozen=True)
class ModelSpec:
    """One registered model."""

    name: str
    config: type[ModelConfig]
    model: type[CorpusModel]
    summary: str


MODELS: dict[str, ModelSpec] = {}
C = TypeVar("C")


def register(name: str, config: type[ModelConfig], model: type[CorpusModel], summary: str) -> None:
    """Make a model known; its file calls this once, at its end."""
    if name in MODELS and MODELS[name].model.__qualname__ != model.__qualname__:
        raise MomentseekError(f"a model called {name!r} is there already; choose another name")
    MODELS[name] = ModelSpec(name, config, model, summary)


def entry(name: str) -> ModelSpec:
    """The model called ``name``."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(MODELS))}"
        raise MomentseekError(f"there is no model {name!r}; {hint}")
    return MODELS[name]


def build(name: str, settings: Mapping[str, Any], dims: Dims) -> CorpusModel:
    """A fresh model with the settings given, and its defaults for the rest."""
    found = entry(name)
    return found.model(build_config(found.config, settings, f"model {name}"), dims)


def build_config(kind: type[C], settings: Mapping[str, Any], what: str) -> C:
    """An instance of a config class from named values, each checked for its name and type.

    >>> build_config(ModelConfig, {"hidden": 64, "dropout": 0}, "model").dropout
    0.0
    >>> build_config(ModelConfig, {"hiden": 64}, "model xml")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: model xml has no setting 'hiden'; did you mean 'hidden'?
    """
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    values = {}
    for name, value in settings.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"settings are {', '.join(known)}"
            raise MomentseekError(f"{what} has no setting {name!r}; {hint}")
        values[name] = _typed(value, hints[name], f"{what}: {name}")
    return kind(**values)


def _typed(value: Any, hint: Any, where: str) -> Any:
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
