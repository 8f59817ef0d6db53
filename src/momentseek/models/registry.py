"""The registry of models by name; a file in ``zoo`` that calls ``register`` adds a model."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import Registry, did_you_mean
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel, ModelConfig

SETTING_ALIASES = {"as": "follow"}
"""Other spellings of settings; ``as`` is a keyword of Python and cannot be a field's name."""
FOLLOWED = ("paper", "official")
"""What a model follows: its paper, or its public implementation with its quirks."""
C = TypeVar("C")
MAX_SETTING = 8192
"""The largest size that a setting may have even if no weight is that large."""


@dataclass(frozen=True)
class ModelSpec:
    """A registered model or captioner: its class, the class of its settings, and one line about it."""

    name: str
    config: type[Any]
    model: type[Any]
    summary: str
    format: int = 1
    """Version of the network: increased when it computes a different result with the same weights and settings."""


MODELS: Registry[ModelSpec] = Registry("model", "momentseek.models.zoo", group="models")
_type_hints = functools.cache(typing.get_type_hints)


def register(
    name: str,
    config: type[ModelConfig],
    model: type[CorpusModel],
    summary: str,
    *,
    format: int = 1,
) -> None:
    """Register a model by name; its file calls this once, at its end."""
    MODELS.add(name, ModelSpec(name, config, model, summary, format))


def build(name: str, settings: Mapping[str, Any], dims: Dims) -> CorpusModel:
    """Build a new model with some settings, and defaults for the others."""
    spec = MODELS[name]
    return spec.model(build_config(spec.config, settings, f"model {name}"), dims)


def build_config(kind: type[C], settings: Mapping[str, Any], what: str) -> C:
    """Build an instance of a settings class from values by name, and check each name and type.

    >>> build_config(ModelConfig, {"hidden": 64, "dropout": 0}, "model").dropout
    0.0
    >>> build_config(ModelConfig, {"hiden": 64}, "model xml")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: model xml has no setting 'hiden'; did you mean 'hidden'?
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
    """Replace aliases of settings, and ``as=official`` by the settings of the public implementation.

    Settings that are given explicitly take precedence.

    >>> from momentseek.models.zoo.conquer import ConquerConfig
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


def refuse_absurd_sizes(config: Any, weights: Mapping[str, Tensor]) -> None:
    """Raise an error if the settings describe a far larger model than the weights; no memory is allocated before."""
    largest = max((size for tensor in weights.values() for size in tensor.shape), default=0)
    for name, value in asdict(config).items():
        limit = len(weights) if name.endswith("layers") else max(MAX_SETTING, largest)
        if type(value) is int and value > limit and name != "videos":  # `videos` needs no memory
            raise MomentseekError(f"the model's {name} is {value:,}, and at most {limit:,} fits its weights")
