"""Where a library is kept if its folder is a copy: in object storage, for example.

The library itself only knows :class:`LibraryOrigin`. What implements it registers a function that opens the origin of
a folder (``register_origins``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from momentseek.core.errors import LibraryError

ORIGIN_FILE = "origin.json"
"""In the folder of a copy: says where the original is."""


class LibraryOrigin(Protocol):
    """The original of a library whose folder is a copy."""

    def freshen(self) -> None:
        """Bring the copy up to date, if nobody has looked for a while."""

    def why_outdated(self) -> str:
        """Why the copy may be old, as one clause; empty if it is not."""

    def bring_vectors(self, names: Callable[[], Iterable[str]]) -> None:
        """Fetch the segments that ``names`` lists, as far as they are not in the copy."""

    def bring_segment(self, name: str) -> None:
        """Fetch one segment, if the original has it."""

    def size(self) -> int:
        """Size of all files of the original, in bytes."""

    def publishing(self, wait: float, holder: str | None) -> AbstractContextManager[None]:
        """Be the only writer of the original for the time of a ``with``, and publish what was changed in the copy."""

    def problems(self) -> tuple[list[str], list[str]]:
        """What is wrong with the original, and what is only worth knowing."""

    def send_missing(self) -> int:
        """Send again the files that the original has lost; returns how many. The caller is the only writer."""

    def drop_orphans(self) -> int:
        """Delete what nothing names; returns how many files. The caller is the only writer."""


OpenOrigin = Callable[[Path], LibraryOrigin | None]
_openers: list[OpenOrigin] = []


def register_origins(open_origin: OpenOrigin) -> None:
    """Add a function that opens the origin of a folder, or returns None if it does not know it."""
    _openers.append(open_origin)


def origin_of(folder: Path) -> LibraryOrigin | None:
    """The origin of the library in a folder; None if it is no copy."""
    if not (folder / ORIGIN_FILE).is_file():
        return None
    found = [origin for open_origin in _openers if (origin := open_origin(folder)) is not None]
    if not found:
        raise LibraryError(f"{folder}: is a copy of a library elsewhere; open it by its address (momentseek.Library)")
    return found[0]
