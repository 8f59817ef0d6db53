"""Objects in whatever else fsspec opens (``file://``, ``sftp://``, ``memory://``)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.storage.address import explain, open_file_system
from momentseek.storage.objects import MissingObjectError, StaleObjectError, StoredObject


class PlainObjects:
    """Objects below an address as files of a file system; written beside their places and renamed.

    Such a file system has no conditional write: two writers are told apart by a look before the write, which a third
    of a second of bad luck can deceive. The lease of a shard keeps them apart in practice.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._system, self._top = open_file_system(address)

    def read(self, name: str) -> StoredObject:
        """An object; raises MissingObjectError if there is none."""
        with self._explain_errors(name):
            data = bytes(self._system.cat_file(self._path(name)))
        return StoredObject(data, _mark(data))

    def write(self, name: str, data: bytes) -> None:
        """Write an object, whatever was there."""
        target = self._path(name)
        beside = f"{target}.{uuid.uuid4().hex}.part"
        with self._explain_errors(name):
            self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
            try:
                self._system.pipe_file(beside, data)
                self._system.mv(beside, target)
            except BaseException:
                with suppress(Exception):
                    self._system.rm_file(beside)
                raise

    def replace(self, name: str, data: bytes, mark: str | None) -> str:
        """Write an object if what is there still has this mark (None: if nothing is there)."""
        try:
            there: str | None = self.read(name).mark
        except MissingObjectError:
            there = None
        if there != mark:
            raise StaleObjectError(f"{self.address}/{name}: was changed meanwhile; try again")
        self.write(name, data)
        return _mark(data)

    def fetch(self, name: str, target: Path) -> None:
        """Write an object's bytes into a file."""
        with self._explain_errors(name):
            self._system.get_file(self._path(name), str(target))

    def upload(self, name: str, source: Path) -> None:
        """Write a file's bytes as an object."""
        target = self._path(name)
        beside = f"{target}.{uuid.uuid4().hex}.part"
        with self._explain_errors(name):
            self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._system.put_file(str(source), beside)
            self._system.mv(beside, target)

    def sizes(self, folder: str) -> dict[str, int]:
        """The names of all objects below a folder, each with its size in bytes."""
        with self._explain_errors(folder):
            self._system.invalidate_cache()
            found = self._system.find(self._path(folder), detail=True)
        first = len(self._top.strip("/")) + 1
        return {path.strip("/")[first:]: int(about["size"]) for path, about in found.items()}

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; one that is not there is no error."""
        for name in names:
            try:
                with self._explain_errors(name):
                    self._system.rm_file(self._path(name))
            except MissingObjectError:
                continue

    def _path(self, name: str) -> str:
        return f"{self._top}/{name}"

    @contextmanager
    def _explain_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except MomentseekError:
            raise
        except FileNotFoundError:
            raise MissingObjectError(f"{self.address}/{name}: is not there; check the path") from None
        except Exception as e:  # each file system has errors of its own
            raise explain(self.address, e) from None


def _mark(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
