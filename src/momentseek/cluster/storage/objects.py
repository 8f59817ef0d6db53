"""Objects in a remote store: named bytes that are read, written, listed and deleted whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.cluster.storage.address import OBJECT_STORES, explain, store_options
from momentseek.core.errors import LibraryError, MomentseekError, optional_module
from momentseek.library.location import split_address

FETCH_BYTES = 8 << 20
"""Size of the parts in which an object is fetched."""


class MissingObjectError(LibraryError):
    """An object is not in the store."""


class StaleObjectError(MomentseekError):
    """A conditional write found another version of the object than it expected."""


@dataclass(frozen=True)
class StoredObject:
    """An object's bytes, and the store's version mark."""

    data: bytes
    mark: str


def join_address(address: str, *names: str) -> str:
    """The address of a name below an address.

    >>> join_address("s3://bucket/lib/", "shard-000")
    's3://bucket/lib/shard-000'
    """
    return "/".join((address.rstrip("/"), *names))


def parent_address(address: str) -> tuple[str, str]:
    """Split an address into the one above it and the last name.

    >>> parent_address("s3://bucket/lib/shard-000")
    ('s3://bucket/lib', 'shard-000')
    """
    above, _, name = address.rstrip("/").rpartition("/")
    return above, name


def file_size(path: Path) -> int:
    """Size of a file in bytes; -1 if there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


MULTIPART_BYTES = 8 << 20
"""An object that is larger is sent in parts of this size."""
LOST_RACE = ("AlreadyExistsError", "PreconditionError")
"""Errors of a conditional write that found another version than it expected."""


class ObjectStore:
    """Objects below ``s3://BUCKET/FOLDER``, ``gs://…`` or ``az://…``; names are relative to it."""

    def __init__(self, address: str) -> None:
        self.address = address
        scheme = split_address(address)[0]
        if scheme not in OBJECT_STORES:
            raise MomentseekError(
                f"{address}: a library cannot lie in {scheme}://, which has no conditional writes to keep two writers "
                "apart; use s3://, gs://, az:// or a folder"
            )
        self._obstore = optional_module("obstore", "cluster")
        make = optional_module("obstore.store", "cluster").from_url
        with self._explain_errors():
            self._store = make(address, **store_options(scheme, small=True))
            self._fetcher = make(address, **store_options(scheme))
            self._sender = make(address, **store_options(scheme, sending=True))

    def read(self, name: str) -> StoredObject:
        """An object; raises MissingObjectError if there is none."""
        with self._explain_errors(name):
            found = self._obstore.get(self._store, name)
            return StoredObject(bytes(found.bytes()), str(found.meta["e_tag"]))

    def write(self, name: str, data: bytes) -> None:
        """Write an object, and replace an existing one."""
        with self._explain_errors(name):
            self._obstore.put(self._sender, name, data)

    def replace(self, name: str, data: bytes, mark: str | None) -> str:
        """Write an object if the existing one still has this version mark (None: if none exists); returns the new mark.

        The store checks this, so the second of two writers gets a StaleObjectError.
        """
        with self._explain_errors(name):
            mode = "create" if mark is None else {"e_tag": mark}
            return str(self._obstore.put(self._store, name, data, mode=mode, use_multipart=False)["e_tag"])

    def fetch(self, name: str, target: Path) -> None:
        """Write an object's bytes into a file."""
        with self._explain_errors(name):
            blocks = iter(self._obstore.get(self._fetcher, name).stream(min_chunk_size=FETCH_BYTES))
        with target.open("wb") as out:
            while True:
                with self._explain_errors(name):
                    block = next(blocks, None)
                if block is None:
                    break
                out.write(block)  # an error here is a local one

    def upload(self, name: str, source: Path) -> None:
        """Write a file's bytes as an object."""
        with self._explain_errors(name):
            self._obstore.put(self._sender, name, source, chunk_size=MULTIPART_BYTES)

    def sizes(self, folder: str) -> dict[str, int]:
        """The names of all objects below a folder, each with its size in bytes."""
        return {str(one["path"]): int(one["size"]) for one in self.list(folder)}

    def list(self, folder: str) -> list[dict[str, Any]]:
        """List the objects below a folder, each with path, size, version mark (``e_tag``) and ``last_modified``."""
        with self._explain_errors(folder):
            return [dict(one) for block in self._obstore.list(self._store, prefix=folder or None) for one in block]

    def head(self, name: str) -> dict[str, Any]:
        """The store's description of an object; raises MissingObjectError if there is none."""
        with self._explain_errors(name):
            return dict(self._obstore.head(self._store, name))

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; one that does not exist is no error."""
        if listed := [*names]:
            with suppress(MissingObjectError), self._explain_errors(listed[0]):
                self._obstore.delete(self._store, listed)

    @contextmanager
    def _explain_errors(self, name: str = "") -> Iterator[None]:
        """Turn errors of a store into sentences."""
        try:
            yield
        except MomentseekError:
            raise
        except Exception as e:  # each file system has its own errors
            if type(e).__name__ in LOST_RACE:
                raise self._stale(name) from None
            if isinstance(e, FileNotFoundError) and "nosuchbucket" not in str(e).lower():
                raise MissingObjectError(
                    f"{self.address}/{name}: does not exist; check the bucket and the path"
                ) from None
            raise explain(self.address, e) from None

    def _stale(self, name: str) -> StaleObjectError:
        return StaleObjectError(f"{self.address}/{name}: was changed meanwhile; try again")
