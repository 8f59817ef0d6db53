"""The interface of feature files and folders, and the registry of readers that open them.

A reader is a plug-in (``readers/``, and the entry points ``momentseek.features``). Its ``claims`` says whether it can
read a path, and ``open`` returns a :class:`FeatureSource`. A source with an array per video or query is most easily
written as a :class:`TableSource`, which needs ``names`` and ``find`` only.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.limits import check_size
from momentseek.core.registry import Registry

Array = NDArray[np.float32]


class FeatureSource(Protocol):
    """One file or folder of features, open for reading: a table of numbers for each video or query."""

    path: Path

    @property
    def size(self) -> int:
        """Number of bytes on disk."""

    def where(self, name: str) -> str:
        """The name of an entry in messages."""

    def names(self) -> set[str]:
        """Names of all entries."""

    def __contains__(self, name: object) -> bool: ...

    def shape(self, name: str) -> tuple[int, int]:
        """Rows and columns of an entry, without reading it; an error if it is missing or not a table."""

    def shape_text(self, name: str) -> str:
        """The shape of an entry as text, for any entry, table or not."""

    def dtype(self, name: str) -> str:
        """The type of an entry's values as stored."""

    def values(self, name: str) -> bytes:
        """The bytes of an entry, for hashing."""

    def read(self, name: str) -> Array:
        """The rows of an entry as float32; values that are too large become infinite."""

    def close(self) -> None:
        """Close open files."""


@dataclass(frozen=True)
class FeatureReader:
    """Recognises and opens one kind of feature files."""

    about: str
    """A short description of the kind of files."""
    claims: Callable[[Path], bool]
    """Whether an existing path is of this kind, by its name and first bytes."""
    open: Callable[[Path, str, str | None], FeatureSource]
    """Opens a path, given what its entries are (``video`` or ``query``) and the key of the array in each file."""


READERS: Registry[FeatureReader] = Registry("feature reader", "momentseek.models.features.readers", group="features")
UNREAD_HINTS: dict[str, tuple[Callable[[Path], bool], str]] = {
    "lmdb": (lambda path: (path / "data.mdb").is_file(), "an LMDB"),
    "webdataset": (lambda path: path.suffix == ".tar" or any(path.glob("*.tar")), "a WebDataset"),
}
"""Kinds of files that only plug-ins read: how to recognise them, and their names in messages."""


def open_source(path: Path, what: str, key: str | None = None) -> FeatureSource:
    """Open a file or folder of features with the first reader that claims it."""
    if not path.exists():
        raise MomentseekError(f"{path}: there is no such feature file; check the path in data.toml")
    for reader in READERS.values():
        if reader.claims(path):
            return reader.open(path, what, key)
    for name, (looks_so, called) in UNREAD_HINTS.items():
        if looks_so(path):
            raise MomentseekError(f"{path}: is {called}, read by the plug-in {name} of examples/plugin; install that")
    known = "; ".join(reader.about for reader in READERS.values())
    kind = "a folder without feature files" if path.is_dir() else "not an HDF5 file, nor another kind that is known"
    raise MomentseekError(f"{path}: is {kind}; features are read from: {known}")


@dataclass(frozen=True)
class StoredTable:
    """An array in a file: its shape and type from the header, and a function that reads it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | str
    stored: int
    """Number of bytes in the file."""
    read: Callable[[], NDArray[Any]]

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory, as stored or as float32, whichever is more."""
        return math.prod(self.shape) * max(4, getattr(self.dtype, "itemsize", 8))


class TableSource(ABC):
    """Features with one array per video or query; a subclass finds the array by name."""

    def __init__(self, path: Path, what: str, key: str | None = None) -> None:
        self.path, self.what, self.key = path, what, key
        self._shapes: dict[str, tuple[int, ...]] = {}

    @abstractmethod
    def names(self) -> set[str]:
        """Names of all entries."""

    @abstractmethod
    def find(self, name: str) -> StoredTable | None:
        """The array of an entry; None if it is missing."""

    @property
    def size(self) -> int:
        """Number of bytes on disk."""
        return self.path.stat().st_size

    def where(self, name: str) -> str:
        return f"{self.path}: {self.what} {name}"

    def __contains__(self, name: object) -> bool:
        return name in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names())

    def shape(self, name: str) -> tuple[int, int]:
        if name not in self._shapes:
            self._shapes[name] = self._table(name).shape
        rows, columns = self._shapes[name]
        return rows, columns

    def shape_text(self, name: str) -> str:
        return str(self._shapes[name] if name in self._shapes else self._array_of(name).shape)

    def dtype(self, name: str) -> str:
        return str(self._array_of(name).dtype)

    def values(self, name: str) -> bytes:
        with say_damage(self.where(name)):
            return _read_checked(self._array_of(name), self.where(name)).tobytes()

    def read(self, name: str) -> Array:
        table = self._table(name)
        with say_damage(self.where(name)), np.errstate(over="ignore"):
            return _read_checked(table, self.where(name)).astype(np.float32, copy=False)

    def close(self) -> None:
        """Close open files; by default there are none."""
        return

    def _array_of(self, name: str) -> StoredTable:
        with say_damage(self.where(name)):
            found = self.find(name)
        if found is None:
            raise missing_entry(self.path, self.what, name)
        return found

    def _table(self, name: str) -> StoredTable:
        found = self._array_of(name)
        kind = getattr(found.dtype, "kind", "f")
        if len(found.shape) != 2 or kind not in "fiu":
            raise not_a_table(self.where(name), f"{found.shape} of {found.dtype}" if kind not in "fiu" else found.shape)
        return found


def _read_checked(table: StoredTable, where: str) -> NDArray[Any]:
    check_size(where, table.nbytes, table.stored)
    return np.ascontiguousarray(table.read())


def missing_entry(path: Path, what: str, name: str) -> MomentseekError:
    """The error for a video or query without features."""
    remedy = (
        "extract it, or leave it out of the split's corpus and truth"
        if what == "video"
        else "encode it, or leave it out of the split's truth"
    )
    return MomentseekError(f"{path}: has no features for {what} {name}; {remedy}")


def not_a_table(where: str, shape: object) -> MomentseekError:
    """The error for an entry whose shape is not (rows, columns)."""
    return MomentseekError(f"{where} must be a table of numbers (rows, columns), not {shape}")


@contextlib.contextmanager
def say_damage(where: str) -> Iterator[None]:
    """A context that turns a library's errors on damaged or hostile files into one sentence."""
    try:
        yield
    except MomentseekError:
        raise
    except Exception as e:  # h5py, torch and zipfile raise dozens of classes
        raise MomentseekError(f"{where} cannot be read ({first_line(e)}); copy the file again") from None


def first_line(error: Exception) -> str:
    """The first line of an error's text, or its class."""
    return (str(error).strip("'\" ") or type(error).__name__).splitlines()[0]
