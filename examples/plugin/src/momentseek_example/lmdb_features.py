"""``lmdb``: features in LMDB databases, as HERO, CONQUER and SQuiDNet keep them.

The key is the name of a video or the number of a query; the value is an npz file, or a dict packed by msgpack-numpy,
with the array ``features``. ``__keys__``, the list of names that HERO keeps, is no entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.models.features.readers.folder import choose_key, find_npz, plain_names
from momentseek.models.features.sources import READERS, FeatureReader, StoredTable, TableSource, say_damage

NAME_LIST = "__keys__"
ZIP_START = b"PK"


class LmdbFeatures(TableSource):
    """An LMDB folder, open for reading; values are read one at a time."""

    def __init__(self, path: Path, what: str, key: str | None = None) -> None:
        super().__init__(path, what, key)
        for package in ("lmdb", "msgpack"):
            _package(package)
        with say_damage(f"{path}: the database"):
            self._database = _package("lmdb").open(str(path), readonly=True, create=False, lock=False, readahead=False)
            with self._database.begin() as read:
                keys = [bytes(one).decode() for one in read.cursor().iternext(values=False)]
        self._names = plain_names([name for name in keys if name != NAME_LIST], what)

    @property
    def size(self) -> int:
        """Number of bytes of the database."""
        return (self.path / "data.mdb").stat().st_size

    def names(self) -> set[str]:
        """The keys of the database."""
        return set(self._names)

    def find(self, name: str) -> StoredTable | None:
        """The array of a value."""
        if name not in self._names:
            return None
        with self._database.begin() as read:
            value = bytes(read.get(self._names[name].encode()))
        if value.startswith(ZIP_START):
            return find_npz(value, self.key, self.where(name))
        return _packed_table(value, self.key, self.where(name))

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _packed_table(value: bytes, key: str | None, where: str) -> StoredTable:
    """An array that msgpack-numpy packed: a map of its type, shape and bytes."""
    found: Any = _package("msgpack").unpackb(value, raw=False, strict_map_key=False)
    if isinstance(found, Mapping) and _field(found, "nd") is None:
        found = found[choose_key([str(name) for name in found], key, where)]
    if not isinstance(found, Mapping) or not _field(found, "nd"):
        raise MomentseekError(f"{where} is no array of msgpack-numpy; only arrays of numbers are read")
    kind, shape, data = (_field(found, name) for name in ("type", "shape", "data"))
    dtype = np.dtype(kind.decode() if isinstance(kind, bytes) else str(kind))
    if dtype.hasobject:
        raise MomentseekError(f"{where} holds Python objects, which are never loaded")
    sizes = tuple(int(one) for one in shape)
    return StoredTable(sizes, dtype, len(value), lambda: np.frombuffer(data, dtype).reshape(sizes))


def _field(packed: Mapping[Any, Any], name: str) -> Any:
    """A field by its name, which old versions of msgpack write as bytes."""
    return packed.get(name, packed.get(name.encode()))


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MomentseekError(
            f"LMDB features need the package {name}; pip install 'momentseek-example[lmdb]'"
        ) from None


def _claims(path: Path) -> bool:
    return (path / "data.mdb").is_file()


READERS.add("lmdb", FeatureReader("an LMDB folder", _claims, LmdbFeatures))
