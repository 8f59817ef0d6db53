"""The exceptions a user may ever see, parameters in their messages, and optional packages that are not installed.

A message that asks for another argument names it by :func:`parameter`: a Python user reads ``missing="zero"``, one of
the command line ``--missing zero``. Whole commands, as in "run `momentseek verify --repair`", are written as typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


class MomentseekError(Exception):
    """Bad input, said in one sentence; the command line prints it and exits with code 2.

    >>> raise MomentseekError("run.json: query 12 stands twice; keep one of them")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: run.json: query 12 stands twice; keep one of them
    """

    exit_code = 2


class MissingWeightsError(MomentseekError):
    """The weights of a model are not downloaded."""


class MediaError(MomentseekError):
    """A file that cannot be used as a video or subtitle; a command over many files reports it and goes on."""


class LibraryError(MomentseekError):
    """A library whose files cannot be used now: damaged, of another release, or out of reach."""


class LibraryBusyError(LibraryError):
    """A library that another process is writing to; waiting helps."""


ParameterStyle = Callable[[str, tuple[object, ...]], str]
"""Writes a parameter's name and the values it may take, as the reader of a message would type them."""


def python_parameter(name: str, values: tuple[object, ...]) -> str:
    """A parameter as Python writes it."""
    if not values:
        return f"`{name}`"
    texts = [f'"{value}"' if isinstance(value, str) else "…" if value is ... else str(value) for value in values]
    return f"{name}={any_of(texts)}"


_style: ParameterStyle = python_parameter


def parameter_style() -> ParameterStyle:
    """How messages write parameters now."""
    return _style


def write_parameters(style: ParameterStyle) -> None:
    """Choose how messages write parameters from now on; the command line writes flags."""
    global _style
    _style = style


def parameter(name: str, *values: object) -> str:
    """A parameter that a message names, with the values it may take; no value names it only, ``...`` stands for any.

    >>> parameter("missing", "zero"), parameter("force", True), parameter("invalid", "drop", "keep"), parameter("truth")
    ('missing="zero"', 'force=True', 'invalid="drop" or "keep"', '`truth`')
    """
    return _style(name, values)


def any_of(texts: Sequence[str]) -> str:
    """Alternatives in a sentence.

    >>> any_of(["a", "b", "c"])
    'a, b or c'
    """
    return " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def optional_module(name: str, extra: str = "search") -> Any:
    """A module of an optional dependency, or one sentence on how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise missing_package(name, extra) from None


def missing_package(package: str, extra: str) -> MomentseekError:
    """What to say when an optional package is not there.

    >>> print(missing_package("av", "search"))
    this needs the package av; install it with: pip install 'momentseek[search]'
    """
    return MomentseekError(f"this needs the package {package}; install it with: pip install 'momentseek[{extra}]'")
