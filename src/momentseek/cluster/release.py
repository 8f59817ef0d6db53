"""What tells one Momentseek from another: its release, and a print of its sources, which checkouts may share or not."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from momentseek import __version__

PRINT_DIGITS = 8
"""Digits of a print that people are shown."""


class Release(NamedTuple):
    """A release of Momentseek, and the print of its sources."""

    version: str
    print: str

    def __str__(self) -> str:
        return self.version


def this_release() -> Release:
    """The Momentseek where this runs."""
    import momentseek

    return Release(__version__, source_print(Path(momentseek.__file__).parent))


@cache
def source_print(folder: Path) -> str:
    """A hash of the Python files in a folder, by their names and bytes; line ends do not count."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
        digest.update(b"\0")
    return digest.hexdigest()


def difference(there: Release, here: Release) -> str | None:
    """How the Momentseek of a node differs from the one here, and what to do; None if it does not.

    >>> difference(Release("1.0", "ab"), Release("1.0", "ab"))
    >>> difference(Release("1.0", "ab"), Release("1.1", "cd"))
    'has Momentseek 1.0, and this machine 1.1; install the same release on all'
    >>> difference(Release("1.1", "ab"), Release("1.1", "cd"))
    'has other sources of Momentseek 1.1 (print ab) than this machine (cd); install the same on all'
    """
    if there == here:
        return None
    if there.version != here.version:
        return f"has Momentseek {there.version}, and this machine {here.version}; install the same release on all"
    prints = (one.print[:PRINT_DIGITS] for one in (there, here))
    return "has other sources of Momentseek {} (print {}) than this machine ({}); install the same on all".format(
        here.version, *prints
    )
