"""Read a whole library at a limited rate and compare it with its checksums; an interrupted scrub is continued.

For a timer, or a server at night. ``verify`` checks more, at full speed, and always starts from the beginning.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.library.damaged_rows import find_damaged_rows
from momentseek.library.reader import LibraryReader
from momentseek.library.scan.plan import plan_files
from momentseek.library.segments import SEGMENT_SUFFIX

SCRUB_FILE = "scrub.json"
"""The file with the progress of an interrupted scrub."""
CHUNK_BYTES = 1 << 20
MEGABYTES_PER_SECOND = 50.0
"""Default rate: a fraction of a disk's speed, so that searches are not slowed down."""


@dataclass
class ScrubReport:
    """What a scrub read, and what is wrong."""

    files: int = 0
    bytes: int = 0
    resumed: bool = False
    """Whether it continued an interrupted scrub, whose files are not counted again."""
    problems: list[str] = field(default_factory=list)


def scrub_library(
    library: LibraryReader, megabytes: float = MEGABYTES_PER_SECOND, sleep: Callable[[float], None] = time.sleep
) -> ScrubReport:
    """Read every file of vectors and of the plan, then the catalog, at most ``megabytes`` per second.

    The progress is stored in the library's folder after each file, so that the next scrub can continue if this one is
    interrupted.
    """
    mark = library.path / SCRUB_FILE
    report, last = _begin(mark)
    begun = time.monotonic()
    for path in sorted(_files(library), key=lambda path: path.name):
        if path.name <= last:
            continue
        try:
            digest = hashlib.blake2b(digest_size=16)
            with path.open("rb") as file:
                while data := file.read(CHUNK_BYTES):
                    digest.update(data)
                    report.bytes += len(data)
                    ahead = report.bytes / (megabytes * 1e6) - (time.monotonic() - begun)
                    if ahead > 0:
                        sleep(ahead)
            wrong = None if digest.hexdigest() == path.stem else "its bytes are not those that were written"
        except OSError as e:
            wrong = None if not _is_named(library, path) else f"cannot be read ({e.strerror})"
        report.files += 1
        if wrong is not None:
            report.problems.append(f"{path}: {wrong}")
        with suppress(MomentseekError):  # a full disk: the next scrub starts earlier
            state = {"last": path.name, "problems": report.problems}
            write_bytes(mark, json.dumps(state).encode(), flush=False)
    catalog = library.catalog
    for text in (*catalog.problems(), *map(str, find_damaged_rows(catalog))):
        report.problems.append(f"{catalog.path}: {text}")
    with suppress(OSError):
        mark.unlink(missing_ok=True)
    return report


def _begin(mark: Path) -> tuple[ScrubReport, str]:
    """The report so far, and the name of the last file that was read."""
    try:
        found = json.loads(mark.read_bytes())
        return ScrubReport(resumed=True, problems=list(map(str, found["problems"]))), str(found["last"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ScrubReport(), ""


def _files(library: LibraryReader) -> list[Path]:
    """The files whose names are the hashes of their bytes; of a replica, those that are here."""
    rows = library.catalog.segments()
    found = [library.paths.segments / f"{row.name}{SEGMENT_SUFFIX}" for row in rows]
    found += [*plan_files(library.paths.plan), *plan_files(library.paths.speech_plan)]
    return [path for path in found if library.origin is None or path.exists()]


def _is_named(library: LibraryReader, path: Path) -> bool:
    """Whether the library still has a file, which a writer may have replaced meanwhile."""
    return path in _files(library)
