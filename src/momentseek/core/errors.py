"""The exceptions a user may ever see, and optional packages that are not installed.

A sentence that asks for another argument names the Python parameter, in one of these forms:

    count such queries as 0 (missing="zero")      overwrite it (force=True)      wait for it (wait=600)
    give the training set (`train`)               give a list of videos (videos=…)

The command line writes them as its flags (``--missing zero``, ``--force``, ``--wait 600``, ``--train``,
``--videos``), where the command has such a flag; see ``momentseek.cli.groups``. Whole commands, as in "run
`momentseek verify --repair`", are given as people type them.
"""

from __future__ import annotations

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


class MediaError(MomentseekError):
    """A file that cannot be used as a video or subtitle; a command over many files reports it and goes on."""


class LibraryError(MomentseekError):
    """A library whose files cannot be used now: damaged, of another release, or out of reach."""


class LibraryBusyError(LibraryError):
    """A library that another process is writing to; waiting helps."""


def optional_module(name: str, extra: str = "offline") -> Any:
    """A module of an optional dependency, or one sentence on how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise missing_package(name, extra) from None


def missing_package(package: str, extra: str) -> MomentseekError:
    """What to say when an optional package is not there.

    >>> print(missing("av", "search"))
    this needs the package av; install it with: pip install 'momentseek[search]'
    """
    return MomentseekError(f"this needs the package {package}; install it with: pip install 'momentseek[{extra}]'")
