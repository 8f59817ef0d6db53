"""Adding what appears in folders, until told to stop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.errors import MediaError
from momentseek.library.files import FoundFiles, find
from momentseek.library.ingest.add import add_found
from momentseek.library.ingest.report import AddReport, ShowIngest
from momentseek.library.ledger import subtitle_marks
from momentseek.library.stamp import Stamp

if TYPE_CHECKING:
    from momentseek.library.store import LibraryStore

State = tuple[Stamp | None, tuple[str, ...]]

POLL = 3.0
"""Seconds between two looks."""


def watch(
    library: LibraryStore,
    paths: Iterable[str | os.PathLike[str]],
    *,
    recursive: bool = True,
    exclude: Sequence[str] = (),
    subtitles: Path | None = None,
    progress: ShowIngest | None = None,
    poll: float = POLL,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[AddReport]:
    """Look every ``poll`` seconds and add files that are new or changed; yields a report for each time there were any.

    A file is added once two looks in a row find it the same, so one that is being copied or recorded waits until it
    stops growing. The lock is held only while adding. It never ends by itself.
    """
    given = list(paths)
    last: dict[Path, State] = {}
    handled: dict[Path, State] = {}
    odd: set[Path] = set()
    while True:
        found = find(given, recursive=recursive, exclude=exclude, skip=library.path)
        now = {file.path: _state(file.path, subtitles) for file in found.files}
        settled = [
            file
            for file in found.files
            if now[file.path] == last.get(file.path) and now[file.path] != handled.get(file.path)
        ]
        strange = [(path, reason) for path, reason in found.odd if path not in odd]
        if settled or strange:
            with library.changing():
                report = add_found(library, FoundFiles(settled, strange), subtitles=subtitles, progress=progress)
            handled |= {file.path: now[file.path] for file in settled}
            odd |= {path for path, _ in strange}
            yield report
        last = now
        sleep(poll)


def _state(path: Path, subtitles: Path | None) -> State:
    """What of a video and its subtitles changes when they do."""
    try:
        return Stamp.of(path), subtitle_marks(path, subtitles)
    except MediaError:
        return None, ()
