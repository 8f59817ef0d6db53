"""A diagnosis as plain data: dataclasses as objects (with what they compute), NaN as null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from momentseek.evaluation.diagnose.diagnosis import Diagnosis


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """One object with the keys axioms, ties, noise, annotators, location (null if not run) and reasons."""
    plain: dict[str, Any] = to_plain(diagnosis)
    return plain


def to_plain(value: Any) -> Any:
    """Any result of this package as what JSON can hold.

    >>> from momentseek.evaluation.diagnose.annotators import Stability
    >>> to_plain((Stability("R@1[IoU>=0.5]", 0.5, float("nan")),))
    [{'measure': 'R@1[IoU>=0.5]', 'tau': 0.5, 'winner_changes': None}]
    """
    if is_dataclass(value) and not isinstance(value, type):
        computed = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: to_plain(getattr(value, name)) for name in [*(f.name for f in fields(value)), *computed]}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_plain(value._asdict())
    if isinstance(value, tuple | list):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
