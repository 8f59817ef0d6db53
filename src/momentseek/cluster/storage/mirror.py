"""Mirror: a local folder with copies of remote files, fetched once, and again only when they change."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from momentseek.cluster.storage.address import OBJECT_STORES, explain, open_file_system
from momentseek.cluster.storage.objects import ObjectStore
from momentseek.core.errors import MomentseekError
from momentseek.library.files import VIDEO_SUFFIXES
from momentseek.library.location import is_remote, sources_folder, split_address

FETCH_BYTES = 8 << 20
"""Bytes that are fetched at a time."""


@dataclass(frozen=True)
class RemoteFile:
    """A remote file, as its file system lists it."""

    path: str
    """Its path in its file system, with the bucket."""
    size: int
    mark: str
    """Changes with the file: its tag, or the time at which it was written."""
    modified_ns: int = 0
    """When it was written; copies get the same time. 0 if unknown."""


def list_files(address: str, suffixes: frozenset[str]) -> list[RemoteFile]:
    """The files with one of the suffixes below an address, or the one file that it names, by path."""
    scheme, top = split_address(address)
    if scheme in OBJECT_STORES:
        found = _list_objects(scheme, top)
    else:
        system, top = open_file_system(address)
        with _explain_errors(address):
            found = system.find(top, detail=True)
            if not found and not system.exists(top):
                raise FileNotFoundError(address)
    alone = [path.strip("/") for path in found] == [top.strip("/")]
    return [
        RemoteFile(path, int(about["size"]), _mark(about), _modified_ns(about))
        for path, about in sorted(found.items())
        if alone or PurePosixPath(path).suffix.lower() in suffixes
    ]


def _list_objects(scheme: str, top: str) -> dict[str, dict[str, Any]]:
    """List the objects below a path with obstore, because its fsspec file system has no times, and copies need them.
    Times are whole seconds, because a single object is reported no finer.
    """

    bucket, _, path = top.partition("/")
    objects = ObjectStore(f"{scheme}://{bucket}")
    found = objects.list(path) or [objects.head(path)]
    return {
        f"{bucket}/{one['path']}": {**one, "last_modified": one["last_modified"].replace(microsecond=0)}
        for one in found
    }


class Mirror:
    """Copies of remote files in a folder; a hidden file next to each copy has the mark of the file it copies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path_of(self, file: RemoteFile) -> Path:
        """The path of a file's copy; a path that would leave the folder is refused."""
        parts = PurePosixPath(file.path.lstrip("/")).parts
        if not parts or any(part in ("", ".", "..") for part in parts):
            raise MomentseekError(f"{file.path}: has a name that no file of a folder can have; rename it")
        return self.folder.joinpath(*parts)

    def has(self, file: RemoteFile) -> bool:
        """Whether there is a copy of the file in its current version."""
        path = self.path_of(file)
        try:
            return path.stat().st_size == file.size and _mark_file(path).read_text() == file.mark
        except OSError:
            return False

    def fetch(self, address: str, file: RemoteFile, tell: Callable[[int], None] = lambda _: None) -> Path:
        """Fetch a file unless its copy exists; ``tell`` gets the bytes fetched so far."""
        target = self.path_of(file)
        if self.has(file):
            return target
        system, _ = open_file_system(address)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
        try:
            with _explain_errors(address), system.open(file.path, "rb") as source, part.open("wb") as out:
                done = 0
                while block := source.read(FETCH_BYTES):
                    out.write(block)
                    done += len(block)
                    tell(done)
            if part.stat().st_size != file.size:
                raise MomentseekError(f"{address}: {file.path} changed while it was fetched; try again")
            _mark_file(target).unlink(missing_ok=True)
            if file.modified_ns:
                os.utime(part, ns=(file.modified_ns, file.modified_ns))
            part.replace(target)
            _mark_file(target).write_text(file.mark)
        finally:
            part.unlink(missing_ok=True)
        return target


def _mark(about: dict[str, Any]) -> str:
    """The tag or time by which a file system marks the version of a file.

    >>> _mark({"size": 3, "e_tag": '"5d41"'}), _mark({"size": 3})
    ('"5d41"', '')
    """
    keys = ("e_tag", "ETag", "LastModified", "last_modified", "mtime", "created")
    return next((str(about[key]) for key in keys if about.get(key)), "")


def _modified_ns(about: dict[str, Any]) -> int:
    """When a file was written, in nanoseconds; 0 if its file system does not say.

    >>> _modified_ns({"mtime": 1.5}), _modified_ns({"size": 3})
    (1500000000, 0)
    """
    keys = ("last_modified", "LastModified", "mtime", "created")
    found = next((about[key] for key in keys if about.get(key)), 0)
    seconds = found.timestamp() if isinstance(found, datetime) else found
    return round(seconds * 1000) * 1_000_000 if isinstance(seconds, int | float) else 0


def _mark_file(copy: Path) -> Path:
    return copy.with_name(f".{copy.name}.mark")


@contextmanager
def _explain_errors(address: str) -> Iterator[None]:
    try:
        yield
    except MomentseekError:
        raise
    except Exception as e:  # each file system has its own errors
        raise explain(address, e) from None


def fetch_videos(paths: Sequence[str], library: Path, progress: Callable[[str, str], None]) -> list[str]:
    """Replace remote paths by local copies, which are fetched unless they exist; returns all paths.

    The copies are in ``NAME-sources`` next to the library, where every machine that shares the library finds them.
    ``progress`` is called with a line of progress and the current file.
    """
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
            progress(f"fetching  {number:,} of {len(files):,} files  {share}", f"  {file.path}")
            local.append(str(mirror.fetch(path, file)))
            done += file.size
    return local
