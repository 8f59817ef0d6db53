"""Objects in a cloud's store (S3 and what speaks it, Google's, Azure's), by obstore."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.optional import optional_module
from momentseek.storage.address import explain, split_address
from momentseek.storage.objects import FETCH_BYTES, MissingObjectError, StaleObjectError, StoredObject

MAX_RETRIES = 3
MULTIPART_BYTES = 16 << 20
"""An object that is larger is sent in parts of this size."""
LOST_RACE = ("AlreadyExistsError", "PreconditionError")
"""Errors of a conditional write that found something else than it expects."""


class CloudObjects:
    """Objects below ``s3://BUCKET/FOLDER``, ``gs://…`` or ``az://…``; a conditional write is the store's own."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._obstore = optional_module("obstore", "cluster")
        make = optional_module("obstore.store", "cluster").from_url
        options: dict[str, Any] = {"retry_config": {"max_retries": MAX_RETRIES}}
        scheme, _ = split_address(address)
        if scheme == "s3" and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
            options["client_options"] = {"allow_http": True}
        with self._explain_errors():
            self._store = make(address, **options)

    def read(self, name: str) -> StoredObject:
        """An object; raises MissingObjectError if there is none."""
        with self._explain_errors(name):
            found = self._obstore.get(self._store, name)
            return StoredObject(bytes(found.bytes()), str(found.meta["e_tag"]))

    def write(self, name: str, data: bytes) -> None:
        """Write an object, whatever was there."""
        with self._explain_errors(name):
            self._obstore.put(self._store, name, data)

    def replace(self, name: str, data: bytes, mark: str | None) -> str:
        """Write an object if what is there still has this mark (None: if nothing is there)."""
        with self._explain_errors(name):
            mode = "create" if mark is None else {"e_tag": mark}
            return str(self._obstore.put(self._store, name, data, mode=mode, use_multipart=False)["e_tag"])

    def fetch(self, name: str, target: Path) -> None:
        """Write an object's bytes into a file."""
        with self._explain_errors(name):
            blocks = iter(self._obstore.get(self._store, name).stream(min_chunk_size=FETCH_BYTES))
        with target.open("wb") as out:
            while True:
                with self._explain_errors(name):
                    block = next(blocks, None)
                if block is None:
                    break
                out.write(block)  # what goes wrong here is this machine's affair

    def upload(self, name: str, source: Path) -> None:
        """Write a file's bytes as an object."""
        with self._explain_errors(name):
            self._obstore.put(self._store, name, source, chunk_size=MULTIPART_BYTES)

    def sizes(self, folder: str) -> dict[str, int]:
        """The names of all objects below a folder, each with its size in bytes."""
        return {str(one["path"]): int(one["size"]) for one in self.list(folder)}

    def list(self, folder: str) -> list[dict[str, Any]]:
        """What the store says of each object below a folder: path, size, mark (``e_tag``) and ``last_modified``."""
        with self._explain_errors(folder):
            return [dict(one) for block in self._obstore.list(self._store, prefix=folder or None) for one in block]

    def head(self, name: str) -> dict[str, Any]:
        """What the store says of an object; raises MissingObjectError if there is none."""
        with self._explain_errors(name):
            return dict(self._obstore.head(self._store, name))

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; one that is not there is no error."""
        if listed := list(names):
            with suppress(MissingObjectError), self._explain_errors(listed[0]):
                self._obstore.delete(self._store, listed)

    @contextmanager
    def _explain_errors(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except MomentseekError:
            raise
        except Exception as e:
            if type(e).__name__ in LOST_RACE:
                raise StaleObjectError(f"{self.address}/{name}: was changed meanwhile; try again") from None
            if isinstance(e, FileNotFoundError) and "nosuchbucket" not in str(e).lower():
                raise MissingObjectError(
                    f"{self.address}/{name}: is not there; check the bucket and the path"
                ) from None
            raise explain(self.address, e) from None
