"""Making room: of all replicas on this machine, the segments that were not used for longest are deleted.

They can be fetched again, so nothing is lost; a process that reads one keeps it until it lets go.
"""

from __future__ import annotations

import os
import time
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.library.replicas.state import SEGMENTS_FOLDER, STATE_FILE, read_state

SIZE_VARIABLE = "MOMENTSEEK_CACHE_GB"
DEFAULT_GIGABYTES = 50.0
SPARED_SECONDS = 60.0
"""What was used so lately is spared: another process may be about to open it."""


def cache_bytes() -> int:
    """How much the segments of all replicas may take: ``$MOMENTSEEK_CACHE_GB`` gigabytes, 50 if it is not set."""
    given = os.environ.get(SIZE_VARIABLE, "")
    try:
        gigabytes = float(given) if given else DEFAULT_GIGABYTES
        if not gigabytes >= 0:
            raise ValueError
    except ValueError:
        raise MomentseekError(f"{SIZE_VARIABLE}={given}: is no number of gigabytes; give one, such as 20") from None
    return int(gigabytes * 1e9)


def evict_segments(replicas: Path, keep: Set[Path] = frozenset(), now: float | None = None) -> int:
    """Delete segments until all replicas together are small enough; returns how many bytes were freed.

    Only what is published is deleted, and nothing of ``keep``, even if that alone is too large.
    """
    found = [(path, path.stat()) for path in replicas.glob(f"*/*/{SEGMENTS_FOLDER}/*") if path.exists()]
    excess = sum(about.st_size for _, about in found) - cache_bytes()
    latest = (time.time() if now is None else now) - SPARED_SECONDS
    freed = 0
    published: dict[Path, set[str]] = {}
    for path, about in sorted(found, key=lambda item: item[1].st_mtime):
        if freed >= excess:
            break
        shard = path.parent.parent
        if path in keep or about.st_mtime > latest:
            continue
        if shard not in published:
            published[shard] = _published_files(shard)
        if f"{SEGMENTS_FOLDER}/{path.name}" in published[shard]:
            with suppress(OSError):
                path.unlink()
                freed += about.st_size
    return freed


def _published_files(shard: Path) -> set[str]:
    try:
        return set(read_state((shard / STATE_FILE).read_bytes(), str(shard)).files)
    except (OSError, MomentseekError):
        return set()
