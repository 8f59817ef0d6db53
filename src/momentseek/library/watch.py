"""Adding what appears in folders, until Ctrl-C."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from momentseek.errors import MediaError
from momentseek.library.file_stamp import Stamp
from momentseek.library.files import FoundFiles, find_videos
from momentseek.library.ingest.report import AddReport, ShowIngest
from momentseek.library.known_files import subtitle_marks
from momentseek.library.store import LibraryStore

FileState = tuple[Stamp | None, tuple[str, ...]]

POLL_SECONDS = 3.0
"""Seconds between two looks at the folders."""


def watch(
    library: LibraryStore,
    paths: Iterable[str | os.PathLike[str]],
    *,
    recursive: bool = True,
    exclude: Sequence[str] = (),
    subtitles: Path | None = None,
    progress: ShowIngest | None = None,
    poll: float = POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[AddReport]:
    """Look every ``poll`` seconds and add files that are new or changed; yields a report for each time there were any.

    A file is added once two looks in a row find it the same, so one that is being copied or recorded waits until it
    stops growing. The lock is held only while adding. It never ends by itself.
    """
    given = list(paths)
    last: dict[Path, FileState] = {}
    handled: dict[Path, FileState] = {}
    reported: set[Path] = set()
    while True:
        found = find_videos(given, recursive=recursive, exclude=exclude, skip=library.path)
        now = {file.path: _file_state(file.path, subtitles) for file in found.files}
        settled = [
            file
            for file in found.files
            if now[file.path] == last.get(file.path) and now[file.path] != handled.get(file.path)
        ]
        strange = [(path, reason) for path, reason in found.unusable if path not in reported]
        if settled or strange:
            report = library.add_found(FoundFiles(settled, strange), subtitles=subtitles, progress=progress)
            handled |= {file.path: now[file.path] for file in settled}
            reported |= {path for path, _ in strange}
            yield report
        last = now
        sleep(poll)


def _file_state(path: Path, subtitles: Path | None) -> FileState:
    """What changes when a video or its subtitles do."""
    try:
        return Stamp.of(path), subtitle_marks(path, subtitles)
    except MediaError:
        return None, ()
