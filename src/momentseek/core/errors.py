"""Exceptions for users, parameters in their messages, and optional packages that are not installed.

A message that mentions an argument names it by :func:`parameter`: a Python user reads ``missing="zero"``, a user of the
command line ``--missing zero``. Whole commands, as in "run `momentseek verify --repair`", are written as typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


class MomentseekError(Exception):
    """Bad input, described in one sentence; the command line prints it and exits with code 2.

    >>> raise MomentseekError("run.json: query 12 stands twice; keep one of them")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: run.json: query 12 stands twice; keep one of them
    """

    exit_code = 2


class MissingWeightsError(MomentseekError):
    """The weights of a model are not downloaded."""


class MediaError(MomentseekError):
    """A file that cannot be used as a video or subtitle; a command on many files reports it and continues."""


class LibraryError(MomentseekError):
    """A library whose files cannot be used: damaged, of another release, or unreachable."""


class LibraryBusyError(LibraryError):
    """A library that another process is writing to; try again later."""


ParameterStyle = Callable[[str, tuple[object, ...]], str]
"""Formats a parameter's name and values as the reader of a message would type them."""


def python_parameter(name: str, values: tuple[object, ...]) -> str:
    """Format a parameter as in Python."""
    if not values:
        return f"`{name}`"
    texts = [f'"{value}"' if isinstance(value, str) else "…" if value is ... else str(value) for value in values]
    return f"{name}={any_of(texts)}"


_style: ParameterStyle = python_parameter


def parameter_style() -> ParameterStyle:
    """Return the current style of parameters in messages."""
    return _style


def write_parameters(style: ParameterStyle) -> None:
    """Set the style of parameters in messages; the command line uses flags."""
    global _style
    _style = style


def parameter(name: str, *values: object) -> str:
    """Format a parameter for a message, with its possible values; ``...`` stands for any value.

    >>> parameter("missing", "zero"), parameter("force", True), parameter("invalid", "drop", "keep"), parameter("truth")
    ('missing="zero"', 'force=True', 'invalid="drop" or "keep"', '`truth`')
    """
    return _style(name, values)


def any_of(texts: Sequence[str]) -> str:
    """Join alternatives for a sentence.

    >>> any_of(["a", "b", "c"])
    'a, b or c'
    """
    return " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def optional_module(name: str, extra: str = "search") -> Any:
    """Import a module of an optional dependency; raise an error that says how to install it if it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise missing_package(name, extra) from None


def missing_package(package: str, extra: str) -> MomentseekError:
    """Return the error for a missing optional package.

    >>> print(missing_package("av", "search"))
    this needs the package av; install it with: pip install 'momentseek[search]'
    """
    return MomentseekError(f"this needs the package {package}; install it with: pip install 'momentseek[{extra}]'")
