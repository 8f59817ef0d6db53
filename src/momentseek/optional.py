"""Packages that not every installation has."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from momentseek.errors import MomentseekError


def optional_module(name: str, extra: str = "offline") -> Any:
    """A module of an optional dependency, or one sentence on how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise missing(name, extra) from None


def missing(package: str, extra: str) -> MomentseekError:
    """What to say when an optional package is not there.

    >>> print(missing("av", "search"))
    this needs the package av; install it with: pip install 'momentseek[search]'
    """
    return MomentseekError(f"this needs the package {package}; install it with: pip install 'momentseek[{extra}]'")
