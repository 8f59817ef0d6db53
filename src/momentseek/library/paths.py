"""Where a library's files are."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from momentseek.atomic import make_folder
from momentseek.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.segments import SEGMENT_SUFFIX, TEMPORARY_PREFIX


@dataclass(frozen=True)
class LibraryPaths:
    """The folder of a library, and the folders in it."""

    folder: Path

    @property
    def segments(self) -> Path:
        """The folder of the segments, which hold the vectors."""
        return self.folder / "segments"

    @property
    def plan(self) -> Path:
        """The folder of the scan's plan, which a large library has."""
        return self.folder / "plan"

    @property
    def thumbnails(self) -> Path:
        """The folder of the thumbnails that searches keep, named by video."""
        return self.folder / "thumbnails"

    @property
    def previews(self) -> Path:
        """The folder of the previews that a server makes of videos that browsers cannot play."""
        return self.folder / "previews"

    @property
    def models(self) -> Path:
        """The folder of copies of the trained models that make the vectors, each named by its fingerprint."""
        return self.folder / "models"

    def make(self) -> None:
        """Make the library's folder and that of its segments."""
        try:
            make_folder(self.segments)
        except OSError as e:
            raise MomentseekError(
                f"{self.folder}: cannot be made ({e.strerror}); choose another folder (`library`)"
            ) from None

    def orphans(self, catalog: Catalog) -> list[Path]:
        """Files of segments that the catalog does not name: a stopped writer left them, or a reader still maps them."""
        named = {row.name + SEGMENT_SUFFIX for row in catalog.segments()}
        with suppress(OSError), os.scandir(self.segments) as entries:
            return sorted(
                Path(e.path)
                for e in entries
                if e.name not in named and (e.name.endswith(SEGMENT_SUFFIX) or e.name.startswith(TEMPORARY_PREFIX))
            )
        return []

    def drop_orphans(self, catalog: Catalog) -> int:
        """Delete the orphans; returns how many there were. The caller holds the library's lock."""
        orphans = self.orphans(catalog)
        for path in orphans:
            with suppress(OSError):
                path.unlink()
        return len(orphans)


def clock_text(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock_text(4800)
    '01:20:00'
    """
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def folder_size(folder: Path) -> int:
    """Size of all files in a folder and below it, in bytes."""
    total = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                total += path.stat().st_size
        except OSError:
            continue
    return total
