"""Lazy exports (PEP 562): names of a package that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package (PEP 562) whose names are found in the modules that ``homes`` gives.

    No name may be that of a module in the same package: Python would give the module once that is imported.

    >>> find = lazy_exports("momentseek.core.moments", {"Moment": "moment"})
    >>> find("Moment").__name__
    'Moment'
    >>> find("Monument")
    Traceback (most recent call last):
        ...
    AttributeError: module 'momentseek.core.moments' has no attribute 'Monument'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
