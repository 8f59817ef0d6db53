"""Checks of models' settings: one sentence that names the setting, what it may be and what it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from momentseek.errors import MomentseekError

if TYPE_CHECKING:
    from momentseek.models.model import ModelConfig


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
