"""SHA-256 of large files, each computed once: a hash is remembered by path, size and time of change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from momentseek.encoders.folders import cache_folder
from momentseek.errors import MomentseekError

HASH_MEMORY_FILE = "verified-weights.json"


def hashes(paths: Iterable[Path], memory: Path | None = None, *, fresh: bool = False) -> dict[Path, str]:
    """Each file's SHA-256, from memory where the file has not changed since; ``fresh`` computes all anew."""
    memory = memory or cache_folder() / HASH_MEMORY_FILE
    known = {} if fresh else _recall(memory)
    found: dict[Path, str] = {}
    news: dict[str, object] = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError as e:
            raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the path") from None
        match known.get(str(path)):
            case [status.st_mtime_ns, status.st_size, str(remembered)]:
                found[path] = remembered
            case _:
                found[path] = sha256(path)
                news[str(path)] = [status.st_mtime_ns, status.st_size, found[path]]
    if news:
        _remember(memory, {**_recall(memory), **news})
    return found


def sha256(path: Path) -> str:
    """A file's SHA-256, read in pieces.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as empty:
    ...     sha256(Path(empty.name))[:16]
    'e3b0c44298fc1c14'
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file's rights") from None


def _recall(memory: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        known = json.loads(memory.read_bytes())
        if isinstance(known, dict):
            return known
    return {}


def _remember(memory: Path, known: Mapping[str, object]) -> None:
    from momentseek.atomic import write_bytes

    with suppress(OSError, MomentseekError):  # a folder that cannot be written costs a third of a second next time
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(memory, json.dumps(known, indent=1).encode())
