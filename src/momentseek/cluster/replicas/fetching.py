"""Fetch a shard's files in parallel, and check the size and hash of each before it is renamed into place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from momentseek.cluster.replicas.state import CHUNK_BYTES, TEMPORARY_PREFIX, Chunk, Files, hash_bytes
from momentseek.cluster.storage.objects import ObjectStore, file_size
from momentseek.core.atomic import drop_temporary, usual_mode
from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.library.segments import checksum

FETCHES_AT_ONCE = 8
MAX_HASHED_BYTES = 1 << 20
"""Existing files up to this size are compared by hash; larger ones, whose names are unique, only by size."""
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Piece:
    """A part of a file."""

    path: Path
    at: int
    size: int

    def read(self) -> bytes:
        """Read its bytes: fewer if the file ends earlier, none if it does not exist."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.at)
                return file.read(self.size)
        except OSError:
            return b""


def do_at_once(work: Callable[[T], R], items: Iterable[T], at_once: int = FETCHES_AT_ONCE) -> list[R]:
    """Call a function on all items, in several threads; the first error is raised."""
    listed = list(items)
    if len(listed) <= 1:
        return [work(one) for one in listed]
    with ThreadPoolExecutor(min(at_once, len(listed))) as pool:
        return list(pool.map(work, listed))


def missing_files(folder: Path, files: Files) -> Files:
    """The files that are missing in the folder, or differ."""
    return {path: chunks for path, chunks in files.items() if not _is_there(folder / path, chunks)}


def fetch_files(objects: ObjectStore, folder: Path, files: Files) -> int:
    """Fetch files that consist of one object each into a folder; returns the number of bytes."""

    def fetch(item: tuple[str, Sequence[Chunk]]) -> int:
        path, chunks = item
        fetch_object(objects, chunks[0], folder / path)
        return chunks[0].size

    return sum(do_at_once(fetch, files.items()))


def fetch_object(objects: ObjectStore, chunk: Chunk, target: Path) -> None:
    """Fetch one object as a file, under a temporary name that is then renamed."""
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=TEMPORARY_PREFIX)
        os.close(handle)
        temporary = Path(name)
        objects.fetch(chunk.object, temporary)
        _check(objects, chunk, temporary)
        temporary.chmod(usual_mode(0o666))
        temporary.replace(target)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); make room or check the rights") from None
    finally:
        drop_temporary(temporary)


def fetch_joined(objects: ObjectStore, chunks: Sequence[Chunk], target: Path, similar: Path) -> int:
    """Write a file from its chunks, copying those that a similar file has; returns the number of fetched bytes."""
    with target.open("wb") as out:
        out.truncate(sum(chunk.size for chunk in chunks))

    def fill(item: tuple[int, Chunk]) -> int:
        number, chunk = item
        place = Piece(similar, number * CHUNK_BYTES, chunk.size)
        data = place.read()
        there = hash_bytes(data) == chunk.hash
        with target.open("r+b") as out:
            out.seek(place.at)
            out.write(data if there else _fetch_bytes(objects, chunk))
        return 0 if there else chunk.size

    return sum(do_at_once(fill, enumerate(chunks)))


def _fetch_bytes(objects: ObjectStore, chunk: Chunk) -> bytes:
    data = objects.read(chunk.object).data
    if Chunk.of(data) != chunk:
        raise _damage_error(objects, chunk)
    return data


def _is_there(path: Path, chunks: Sequence[Chunk]) -> bool:
    size = sum(chunk.size for chunk in chunks)
    if file_size(path) != size:
        return False
    return size > MAX_HASHED_BYTES or len(chunks) != 1 or checksum(path) == chunks[0].hash


def _check(objects: ObjectStore, chunk: Chunk, path: Path) -> None:
    if file_size(path) != chunk.size or checksum(path) != chunk.hash:
        raise _damage_error(objects, chunk)


def _damage_error(objects: ObjectStore, chunk: Chunk) -> LibraryError:
    return LibraryError(f"{objects.address}/{chunk.object}: its bytes are not those that were written; restore it")
