"""From a state dict with public names to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from momentseek.errors import MomentseekError
from momentseek.models.checks import refuse_absurd_sizes
from momentseek.models.model import CorpusModel
from momentseek.models.public.registry import PUBLIC_MODELS
from momentseek.models.public.weights import PublicWeights, Translation
from momentseek.models.registry import MODELS, build_config, plain_settings

SHOWN_NAMES = 3
"""How many names a sentence lists."""


@dataclass(frozen=True, eq=False)
class PublicModel:
    """A model with public weights, in evaluation mode."""

    model: CorpusModel
    name: str
    settings: Mapping[str, Any]
    """What was set: by the public code's ways, by the weights' shapes, and by whoever asked."""
    assumed: Mapping[str, Any]
    """Those of them that no shape tells and nobody asked for."""
    skipped: tuple[str, ...]
    """Public names that have no place in the model."""


def load_public(name: str, tensors: Mapping[str, Tensor], settings: Mapping[str, Any] | None = None) -> PublicModel:
    """A model called ``name`` with the weights of its public implementation, which ``tensors`` are named after.

    Settings that shapes imply are read off them; ``settings`` are further ones, such as the number of heads.
    """
    if name not in PUBLIC_MODELS:
        known = "models with public weights are " + ", ".join(PUBLIC_MODELS)
        what = f"no public weights of {name} are known" if name in MODELS else f"there is no model {name!r}"
        raise MomentseekError(f"{what}; {known}")
    spec, asked = PUBLIC_MODELS[name], plain_settings(MODELS[name].config, settings or {})
    if not all(mark in tensors for mark in spec.marks):
        raise MomentseekError(_strangers(name, tensors))
    _refuse_unusable(tensors)
    weights = PublicWeights(tensors)
    found = spec.translate(weights, asked)
    if unused := weights.leftovers():
        raise MomentseekError(f"the weights have {_names(unused)}, which {name} does not know")
    for key, value in found.settings.items():
        if key in asked and asked[key] != value:
            raise MomentseekError(f"{key} is {value} by the weights, not {asked[key]}; leave it out")
    wanted = {**spec.settings, **found.assumed, **found.settings, **asked}
    config = build_config(MODELS[name].config, wanted, f"model {name}")
    refuse_absurd_sizes(config, tensors)
    model = MODELS[name].model(config, found.dims)
    _load(model, found)
    assumed = {key: value for key, value in found.assumed.items() if key not in asked}
    return PublicModel(model.eval(), name, wanted, assumed, tuple(weights.skipped))


def _load(model: CorpusModel, found: Translation) -> None:
    """Copy the weights; a name or shape that does not fit is told by name."""
    own = model.state_dict()
    if missing := [name for name in own if name not in found.state and not name.endswith("num_batches_tracked")]:
        raise MomentseekError(f"the weights lack what becomes {_names(missing)} here; other settings may fit")
    if strange := [name for name in found.state if name not in own]:
        raise MomentseekError(f"with these settings the model has no {_names(strange)}; other settings may fit")
    state = dict(own)
    for name, tensor in found.state.items():
        wanted, fitted = own[name], tensor
        while fitted.dim() > wanted.dim() and fitted.shape[-1] == 1:
            fitted = fitted.squeeze(-1)
        if fitted.shape != wanted.shape:
            here, there = tuple(wanted.shape), tuple(tensor.shape)
            raise MomentseekError(f"the weights have {there} for {name}, which is {here} with these settings")
        state[name] = fitted.to(wanted.dtype)
    model.load_state_dict(state)


def _strangers(name: str, tensors: Mapping[str, Tensor]) -> str:
    """What to say of weights that are not those of model ``name``."""
    for other, spec in PUBLIC_MODELS.items():
        if all(mark in tensors for mark in spec.marks):
            return f"these are weights of {other}, not of {name}; import them as that"
    lost = next(mark for mark in PUBLIC_MODELS[name].marks if mark not in tensors)
    return f"the weights lack {lost!r}, so they are not those of {PUBLIC_MODELS[name].source}"


def _refuse_unusable(tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise MomentseekError(f"the weights' {name!r} holds numbers that are not finite")


def _names(names: list[str]) -> str:
    """Some names of a list, and how many more there are.

    >>> _names(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    shown = ", ".join(map(repr, names[:SHOWN_NAMES]))
    return shown if len(names) <= SHOWN_NAMES else f"{shown} and {len(names) - SHOWN_NAMES} more"
