"""HDF5 files with one dataset per video or query, as TVR and its successors use them."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.limits import check_size
from momentseek.models.features.sources import (
    READERS,
    Array,
    FeatureReader,
    first_line,
    missing_entry,
    not_a_table,
    say_damage,
)

SUFFIXES = (".h5", ".hdf5")
SIGNATURE = b"\x89HDF\r\n\x1a\n"
COMPANION_SUFFIXES = ("-mask", "-lengths")
"""Suffixes of the datasets that accompany the features in TVR's subtitle files."""
MAX_SOFT_LINKS = 16
"""Maximum number of soft links followed to an entry; more are probably a cycle."""
MAX_CHUNK_OVERHEAD_BYTES = 4096
"""Bytes that compression may add to a small chunk; HDF5 expands a whole stored chunk, whatever size it declares."""
LEADS_OUT = "leads out of the file, by a link or by its storage; copy the values into the file"


class FeatureFile:
    """One HDF5 file, open for reading; an entry is checked when it is first read.

    ``what`` says in messages what the entries are: "video" or "query".
    """

    def __init__(self, path: Path, what: str, key: str | None = None) -> None:
        if key is not None:
            raise MomentseekError(f"{path}: HDF5 files have one table per {what}; leave out key = {key!r}")
        self.path, self.what = path, what
        self._file = _open_hdf5(path)
        self._shapes: dict[str, tuple[int, int]] = {}
        self._checked: set[str] = set()

    @property
    def size(self) -> int:
        """Number of bytes on disk."""
        return self.path.stat().st_size

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.entry(name) is not None

    def dtype(self, name: str) -> str:
        """The type of an entry's values."""
        return str(self.table(name).dtype)

    def where(self, name: str) -> str:
        """The name of an entry in messages."""
        return f"{self.path}: {self.what} {name}"

    def names(self) -> set[str]:
        """Names of all entries, without accompanying datasets such as masks."""
        with say_damage(f"{self.path}: the list of names"):
            return {name for name in self._file if not name.endswith(COMPANION_SUFFIXES)}

    def entry(self, name: str) -> Any:
        """The dataset or group called ``name``, or None; links and storage outside the file are refused."""
        h5py = optional_module("h5py", "train")
        if not self._file:
            raise MomentseekError(f"{self.path}: was closed; open the data again")
        found, rest, links = self._file, name.split("/")[::-1], 0
        with say_damage(self.where(name)):
            while rest:
                part = rest.pop()
                if part in ("", "."):
                    continue
                link = found.get(part, getlink=True) if isinstance(found, h5py.Group) else None
                if link is None:
                    return None
                if isinstance(link, h5py.HardLink):
                    found = found[part]
                    continue
                links += 1
                if not isinstance(link, h5py.SoftLink) or links > MAX_SOFT_LINKS:
                    raise MomentseekError(f"{self.where(name)} {LEADS_OUT}")
                found = self._file if link.path.startswith("/") else found
                rest += link.path.split("/")[::-1]
            if isinstance(found, h5py.Dataset) and (found.is_virtual or found.external):
                raise MomentseekError(f"{self.where(name)} {LEADS_OUT}")
        return found

    def table(self, name: str) -> Any:
        """The dataset of an entry, which must be a table of numbers."""
        found = self.entry(name)
        if found is None:
            raise missing_entry(self.path, self.what, name)
        shape = getattr(found, "shape", "a group")
        if not isinstance(shape, tuple) or len(shape) != 2 or found.dtype.kind not in "fiu":
            raise not_a_table(self.where(name), shape)
        return found

    def shape(self, name: str) -> tuple[int, int]:
        """Rows and columns of an entry, cached because the file is open for reading only."""
        if name not in self._shapes:
            self._shapes[name] = self.table(name).shape
        return self._shapes[name]

    def shape_text(self, name: str) -> str:
        """The shape of an entry as text, for any entry, table or not."""
        return str(self._shapes[name] if name in self._shapes else getattr(self.entry(name), "shape", "a group"))

    def values(self, name: str) -> bytes:
        """The bytes of an entry as stored; empty for a group or for values of variable length."""
        found = self.entry(name)
        if not hasattr(found, "shape") or found.dtype.hasobject:
            return b""
        with say_damage(self.where(name)):
            _check_sizes(found, self.where(name), self.path)
            return np.asarray(found[()]).tobytes()

    def read(self, name: str) -> Array:
        """The rows of an entry as float32; values that are too large become infinite."""
        table = self.table(name)
        with say_damage(self.where(name)), np.errstate(over="ignore"):
            if name not in self._checked:
                _check_sizes(table, self.where(name), self.path)
                self._checked.add(name)
            return np.asarray(table[()]).astype(np.float32, copy=False)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(Exception):
            self._file.close()


def _open_hdf5(path: Path) -> Any:
    h5py = optional_module("h5py", "train")
    try:
        return h5py.File(path, "r")
    except Exception as e:  # h5py raises a dozen classes on damaged files
        why = first_line(e)
        if "truncated" in why:
            raise MomentseekError(f"{path}: ends in the middle; copy or extract the file again") from None
        if "signature" in why:
            raise MomentseekError(f"{path}: is not an HDF5 file; features are read from HDF5") from None
        raise MomentseekError(f"{path}: cannot be opened as HDF5 ({why}); check the file") from None


def _check_sizes(dataset: Any, where: str, path: Path) -> None:
    """Refuse to read a dataset that declares sizes beyond ``limits``."""
    itemsize = dataset.dtype.itemsize
    stored = min(dataset.id.get_storage_size(), path.stat().st_size)
    check_size(where, math.prod(dataset.shape) * max(itemsize, 4), stored)
    if dataset.chunks is not None:
        chunk = math.prod(dataset.chunks) * itemsize
        check_size(f"{where}, in a chunk,", chunk, stored)
        sizes: list[int] = []
        dataset.id.chunk_iter(lambda info: sizes.append(info.size))
        if max(sizes, default=0) > 2 * chunk + MAX_CHUNK_OVERHEAD_BYTES:
            raise MomentseekError(f"{where} has a chunk that is larger than it declares; extract it again")


def _claims(path: Path) -> bool:
    if not path.is_file():
        return False
    if path.suffix in SUFFIXES:
        return True
    with path.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


READERS.add("hdf5", FeatureReader("an HDF5 file", _claims, FeatureFile))
