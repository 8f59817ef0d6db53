"""Videos elsewhere (``s3://…``), fetched before they are added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from momentseek.cli.progress import ProgressLines


def fetch_videos(paths: Sequence[str], library: Path, display: ProgressLines) -> list[str]:
    """The paths with those elsewhere replaced by the folder that has their copies, fetched unless they are there.

    The copies lie beside the library, in ``NAME-sources``, where every machine that shares the library finds them.
    """
    from momentseek.library.files import VIDEO_SUFFIXES
    from momentseek.library.location import sources_folder
    from momentseek.storage.address import is_remote
    from momentseek.storage.mirror import Mirror, list_files

    mirror = Mirror(sources_folder(library))
    local: list[str] = []
    for path in paths:
        if not is_remote(path):
            local.append(path)
            continue
        files = list_files(path, VIDEO_SUFFIXES)
        total, done = sum(file.size for file in files), 0
        for number, file in enumerate(files):
            share = f"{100 * done / max(total, 1):.0f} %"
            display.show(f"fetching  {number:,} of {len(files):,} files  {share}", f"  {file.path}")
            local.append(str(mirror.fetch(path, file)))
            done += file.size
        display.clear()
    return local
