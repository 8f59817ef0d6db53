"""The origin of a library whose folder is a copy, such as a library in object storage.

The library itself only knows the protocol :class:`LibraryOrigin`. An implementation registers a function that opens the
origin of a folder (``register_origins``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from momentseek.core.errors import LibraryError

ORIGIN_FILE = "origin.json"
"""The file in the folder of a copy that says where the original is."""


class LibraryOrigin(Protocol):
    """The original of a library whose folder is a copy."""

    def freshen(self) -> None:
        """Update the copy, unless that was done a moment ago."""

    def why_outdated(self) -> str:
        """Why the copy may be outdated, as one clause; empty if it is current."""

    def ensure_vectors(self, names: Callable[[], Iterable[str]]) -> None:
        """Fetch the segments that ``names`` returns, unless the copy has them."""

    def ensure_segment(self, name: str) -> None:
        """Fetch one segment, if the original has it."""

    def size(self) -> int:
        """Size of all files of the original, in bytes."""

    def publishing(self, wait: float, holder: str | None) -> AbstractContextManager[None]:
        """Hold the write lock of the original, and publish the changes of the copy at the end."""

    def problems(self) -> tuple[list[str], list[str]]:
        """Check the original; returns problems, and notes that need no repair."""

    def send_missing(self) -> int:
        """Send again the files that the original has lost; returns their number. The caller holds the write lock."""

    def drop_orphans(self) -> int:
        """Delete files that nothing refers to; returns their number. The caller holds the write lock."""


OpenOrigin = Callable[[Path], LibraryOrigin | None]
_openers: list[OpenOrigin] = []


def register_origins(open_origin: OpenOrigin) -> None:
    """Add a function that opens the origin of a folder, or returns None if it does not know it."""
    _openers.append(open_origin)


def origin_of(folder: Path) -> LibraryOrigin | None:
    """The origin of the library in a folder; None if it is not a copy."""
    if not (folder / ORIGIN_FILE).is_file():
        return None
    found = [origin for open_origin in _openers if (origin := open_origin(folder)) is not None]
    if not found:
        raise LibraryError(f"{folder}: is a copy of a library elsewhere; open it by its address (momentseek.Library)")
    return found[0]
