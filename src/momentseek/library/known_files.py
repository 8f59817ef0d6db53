"""Files in the catalog: those in the library, with their state, and those that could not be added."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.pinned_file import FileChangedError
from momentseek.library.catalog import Catalog
from momentseek.library.file_stamp import Stamp, path_text
from momentseek.library.video import name_text
from momentseek.media.subtitles.find import find_sidecars

KNOWN_COLUMNS = "id, path, size, mtime_ns, hash, subtitles"


@dataclass(frozen=True)
class KnownFile:
    """A file that is in the library, as it was when it was added."""

    id: int
    path: Path
    size: int
    mtime_ns: int
    hash: str
    subtitles: tuple[str, ...]
    """The folder given for its subtitles (or an empty text), then a mark for each subtitle file."""

    def same(self, stamp: Stamp) -> bool:
        """Whether the file is unchanged, by the size and time of a stamp."""
        return (self.size, self.mtime_ns) == (stamp.size, stamp.mtime_ns)


def file_at(catalog: Catalog, path: Path) -> KnownFile | None:
    """The known file at a path; None if there is none."""
    rows = catalog.rows(f"SELECT {KNOWN_COLUMNS} FROM videos WHERE path = ?", (os.fsencode(path),))
    return _known_file(rows[0]) if rows else None


def files_with_content(catalog: Catalog, hash: str, size: int) -> list[KnownFile]:
    """The known files with the same content, by id."""
    rows = catalog.rows(f"SELECT {KNOWN_COLUMNS} FROM videos WHERE hash = ? AND size = ? ORDER BY id", (hash, size))
    return [_known_file(row) for row in rows]


def earlier_failure(catalog: Catalog, path: Path, stamp: Stamp) -> str | None:
    """Why a file could not be added before; None if it has changed since, or did not fail."""
    rows = catalog.rows("SELECT reason, size, mtime_ns FROM failures WHERE path = ?", (os.fsencode(path),))
    return str(rows[0][0]) if rows and rows[0][1:] == (stamp.size, stamp.mtime_ns) else None


def has_failed(catalog: Catalog, path: Path) -> bool:
    """Whether a file is among those that could not be added."""
    return bool(catalog.rows("SELECT 1 FROM failures WHERE path = ?", (os.fsencode(path),)))


def failed_files(catalog: Catalog) -> list[tuple[Path, str]]:
    """Path and name of every file that could not be added."""
    return [(Path(os.fsdecode(path)), name) for path, name in catalog.rows("SELECT path, name FROM failures")]


# writing, inside changes()


def note_failure(catalog: Catalog, path: Path, name: str, reason: str, stamp: Stamp | None) -> None:
    """Store why a file could not be added; without a stamp it is tried again by the next ``add``."""
    values = (os.fsencode(path), reason, time.time(), stamp and stamp.size, stamp and stamp.mtime_ns, name)
    catalog.run(
        """INSERT INTO failures (path, reason, at, tries, size, mtime_ns, name) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)
           ON CONFLICT (path) DO UPDATE SET reason = ?2, at = ?3, tries = tries + 1, size = ?4, mtime_ns = ?5""",
        values,
    )


def forget_failure(catalog: Catalog, path: Path) -> None:
    """Remove a file from those that could not be added."""
    catalog.run("DELETE FROM failures WHERE path = ?", (os.fsencode(path),))


def update_file(
    catalog: Catalog, video: int, path: Path, name: str | None, stamp: Stamp, subtitles: Sequence[str]
) -> None:
    """Record that a video's file has moved or has another time, with the same content."""
    catalog.run("DELETE FROM failures WHERE path = ?", (os.fsencode(path),))
    catalog.update_video(video, path=os.fsencode(path), mtime_ns=stamp.mtime_ns, subtitles=json.dumps(list(subtitles)))
    if name is not None:
        catalog.update_video(video, name=name)
        catalog.run("UPDATE name_words SET text = ? WHERE rowid = ?", (name_text(name), video))


def subtitle_marks(path: Path, folder: Path | None, *, links: bool = True) -> tuple[str, ...]:
    """Marks that change when a video's subtitle files do: the given folder, then size, time and suffix of each file.

    The location of the files does not count, so a video that is moved together with its subtitles keeps its marks.
    Without ``links``, subtitle files that are links, or lie behind one, do not count.
    """

    marks = [os.path.abspath(folder) if folder else ""]
    for sidecar in find_sidecars(path, folder):
        try:
            state = sidecar.file(links).stat()
        except (OSError, FileChangedError):
            continue
        marks.append(f"{state.st_size}:{state.st_mtime_ns}:{path_text(sidecar.path.suffix)}")
    return (marks[0], *sorted(marks[1:]))


def _known_file(row: Sequence[Any]) -> KnownFile:
    id, path, size, mtime_ns, hash, subtitles = row
    return KnownFile(id, Path(os.fsdecode(path)), size, mtime_ns, hash, tuple(json.loads(subtitles)))
