"""Objects in a store elsewhere: named bytes that are read, written, listed and deleted whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from momentseek.errors import MomentseekError

FETCH_BYTES = 8 << 20
"""Bytes that are held in memory at a time while an object is fetched."""


class MissingObjectError(MomentseekError):
    """An object is not in the store."""


class StaleObjectError(MomentseekError):
    """An object is not, or no longer, what a conditional write expects."""


@dataclass(frozen=True)
class StoredObject:
    """An object's bytes, and the mark by which its store tells them from later ones."""

    data: bytes
    mark: str


class ObjectStore(Protocol):
    """Objects below one address; names are relative to it."""

    address: str

    def read(self, name: str) -> StoredObject:
        """An object; raises MissingObjectError if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Write an object, whatever was there."""

    def replace(self, name: str, data: bytes, mark: str | None) -> str:
        """Write an object if what is there still has this mark (None: if nothing is there); returns the new mark.

        Raises StaleObjectError otherwise.
        """

    def fetch(self, name: str, target: Path) -> None:
        """Write an object's bytes into a file."""

    def upload(self, name: str, source: Path) -> None:
        """Write a file's bytes as an object."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The names of all objects below a folder, each with its size in bytes."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; one that is not there is no error."""


def join_address(address: str, *names: str) -> str:
    """The address of what lies below another.

    >>> join_address("s3://bucket/lib/", "shard-000")
    's3://bucket/lib/shard-000'
    """
    return "/".join((address.rstrip("/"), *names))


def parent_address(address: str) -> tuple[str, str]:
    """The address that another lies below, and its name there.

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
