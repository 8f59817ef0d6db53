"""The Python face of Momentseek: what spans several rooms and is exported as ``momentseek.NAME``.

Names load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from momentseek.api.library import Library

_HOMES = {"Library": "library"}

__all__ = ["Library"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
