"""Checks of models' settings: one sentence that names the setting, what it may be and what it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from torch import Tensor

from momentseek.errors import MomentseekError

if TYPE_CHECKING:
    from momentseek.models.captioner import CaptionerConfig
    from momentseek.models.model import ModelConfig

MAX_SETTING = 8192
"""The largest number of columns, clips or the like that settings may name beyond the sizes of the weights."""


def at_least(config: ModelConfig, least: int, *names: str) -> None:
    """Refuse settings below ``least``, and values that are no numbers.

    >>> from momentseek.models.model import ModelConfig
    >>> at_least(ModelConfig(alpha=-1.0), 0, "videos", "alpha")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: model: alpha must be at least 0, not -1
    """
    for name in names:
        value = getattr(config, name)
        if not least <= value < math.inf:
            raise MomentseekError(f"model: {name} must be at least {least}, not {value:g}")


def above_nothing(config: ModelConfig, *names: str) -> None:
    """Refuse settings that are not above 0."""
    for name in names:
        value = getattr(config, name)
        if not 0 < value < math.inf:
            raise MomentseekError(f"model: {name} must be above 0, not {value:g}")


def one_of(config: ModelConfig, name: str, *choices: str) -> None:
    """Refuse a setting that is none of the choices."""
    value = getattr(config, name)
    if value not in choices:
        raise MomentseekError(f"model: {name} must be {' or '.join(choices)}, not {value!r}")


def refuse_absurd_sizes(config: ModelConfig | CaptionerConfig, weights: Mapping[str, Tensor]) -> None:
    """Refuse settings whose model would be far larger than the weights, before memory is taken for it."""
    largest = max((size for tensor in weights.values() for size in tensor.shape), default=0)
    for name, value in asdict(config).items():
        limit = len(weights) if name.endswith("layers") else max(MAX_SETTING, largest)
        if type(value) is int and value > limit and name != "videos":  # so many are searched: no memory is taken for it
            raise MomentseekError(f"the model's {name} is {value:,}, and at most {limit:,} fits its weights")
