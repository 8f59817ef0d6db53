"""Feature files: HDF5 with one float dataset per video or query, read by name and never as a whole."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.atomic import drop_temporary
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.limits import check_size

Array = NDArray[np.float32]
PathLike = str | os.PathLike[str]
COMPANION_SUFFIXES = ("-mask", "-lengths")
"""Endings of the datasets that stand next to the features in TVR's subtitle files."""
MAX_ROW_DIFFERENCE = 2
"""Rows by which files of the same video may differ; the extra ones are cut (I3D windows and ResNet frames do)."""
MAX_SOFT_LINKS = 16
"""Links within a file that are followed to an entry; more of them go in a circle."""
MAX_CHUNK_OVERHEAD_BYTES = 4096
"""What compression may add to a small chunk; HDF5 expands a stored chunk whole, whatever size it declares."""
LEADS_OUT = "leads out of the file, by a link or by its storage; copy the values into the file"
FINGERPRINT_SAMPLES = 48
"""Entries of a file whose values are in its fingerprint, spread evenly over the names."""


class FeatureFile:
    """One HDF5 file, open for reading; an entry is checked when it is first asked for.

    ``what`` is what the keys are, for messages: "video" or "query".
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        self._file = _open_hdf5(path)
        self._shapes: dict[str, tuple[int, int]] = {}
        self._checked: set[str] = set()

    def where(self, name: str) -> str:
        """What a message says of an entry."""
        return f"{self.path}: {self.what} {name}"

    def names(self) -> set[str]:
        """Names of all entries, without those that stand next to them."""
        with _damage_said(f"{self.path}: the list of names"):
            return {name for name in self._file if not name.endswith(COMPANION_SUFFIXES)}

    def entry(self, name: str) -> Any:
        """The dataset or group called ``name``, None if there is none; what leads out of the file is refused."""
        h5py = optional_module("h5py", "train")
        if not self._file:
            raise MomentseekError(f"{self.path}: was closed; open the data again")
        found, rest, links = self._file, name.split("/")[::-1], 0
        with _damage_said(self.where(name)):
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
            remedy = (
                "extract it, or leave it out of the split's corpus and truth"
                if self.what == "video"
                else "encode it, or leave it out of the split's truth"
            )
            raise MomentseekError(f"{self.path}: has no features for {self.what} {name}; {remedy}")
        shape = getattr(found, "shape", "a group")
        if not isinstance(shape, tuple) or len(shape) != 2 or found.dtype.kind not in "fiu":
            raise MomentseekError(f"{self.where(name)} must be a table of numbers (rows, columns), not {shape}")
        return found

    def shape(self, name: str) -> tuple[int, int]:
        """Rows and columns of an entry; the file is open for reading only, so they stay what they are."""
        if name not in self._shapes:
            self._shapes[name] = self.table(name).shape
        return self._shapes[name]

    def shape_text(self, name: str) -> str:
        """The shape of an entry as text; an entry that nobody uses need not be a table."""
        return str(self._shapes[name] if name in self._shapes else getattr(self.entry(name), "shape", "a group"))

    def values(self, name: str) -> bytes:
        """The bytes of an entry as the file has them, numbers or not; none if they vary in length."""
        found = self.entry(name)
        if not hasattr(found, "shape") or found.dtype.hasobject:
            return b""
        with _damage_said(self.where(name)):
            _check_sizes(found, self.where(name), self.path)
            return np.asarray(found[()]).tobytes()

    def read(self, name: str) -> Array:
        """The rows of an entry, float32; what is too large for that becomes infinite."""
        table = self.table(name)
        with _damage_said(self.where(name)), np.errstate(over="ignore"):
            if name not in self._checked:
                _check_sizes(table, self.where(name), self.path)
                self._checked.add(name)
            return np.asarray(table[()]).astype(np.float32, copy=False)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(Exception):
            self._file.close()


class Features:
    """One or more feature files, joined by columns, open for reading; safe to use from several threads, as h5py is."""

    def __init__(self, paths: PathLike | Sequence[PathLike], what: str = "video") -> None:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given:
            raise MomentseekError("no feature file is named; give at least one HDF5 file")
        self.paths, self.what = tuple(map(Path, given)), what
        self._files: list[FeatureFile] = []
        try:
            for path in self.paths:
                self._files.append(FeatureFile(path, what))
        except BaseException:
            self.close()
            raise

    @property
    def source(self) -> str:
        """The names of the files, for messages."""
        return " + ".join(map(str, self.paths))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the videos or queries that every file has, in alphabetical order."""
        return tuple(sorted(set.intersection(*(file.names() for file in self._files))))

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """Number of columns of each file."""
        if not self.names:
            raise MomentseekError(f"{self.source}: holds no features; is this the right file?")
        return tuple(file.shape(self.names[0])[1] for file in self._files)

    @cached_property
    def dim(self) -> int:
        """Number of columns of a row as ``read`` returns it: of all files together."""
        return sum(self.dims)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and all(file.entry(name) is not None for file in self._files)

    def rows(self, name: str) -> int:
        """Number of rows of ``name``, without reading them; its number of columns must be that of the others."""
        shapes = [file.shape(name) for file in self._files]
        for file, (_, columns), usual in zip(self._files, shapes, self.dims, strict=True):
            if columns != usual:
                raise MomentseekError(
                    f"{file.where(name)} has {columns:,} columns and others have {usual:,}; extract all with one "
                    "encoder"
                )
        counts = [count for count, _ in shapes]
        if max(counts) - min(counts) > MAX_ROW_DIFFERENCE:
            raise MomentseekError(
                f"{self.source}: {self.what} {name} has {' and '.join(map(str, counts))} rows; the files must be of "
                "the same clips"
            )
        return min(counts)

    def read(self, name: str) -> Array:
        """The rows of ``name``, float32, the files' columns side by side."""
        count = self.rows(name)
        parts = [file.read(name)[:count] for file in self._files]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if not np.isfinite(joined).all():
            raise MomentseekError(f"{self.source}: {self.what} {name} has values that are no numbers; extract it again")
        return joined

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the files' sizes, every name and shape, and the values of a few dozen entries.

        It tells files apart without reading them whole: a change of a few values, in a file that is not compressed and
        keeps its shapes, may go unseen.
        """
        seen = hashlib.sha256()
        chosen = {int(i) for i in np.linspace(0, len(self.names) - 1, FINGERPRINT_SAMPLES)} if self.names else set()
        for file in self._files:
            seen.update(f"{file.path.stat().st_size}\n".encode())
            for number, name in enumerate(self.names):
                seen.update(f"{name}\0{file.shape_text(name)}\n".encode())
                if number in chosen:
                    seen.update(file.values(name))
        return seen.hexdigest()[:16]

    def close(self) -> None:
        """Close the files that hold the features."""
        for file in self._files:
            file.close()

    def __enter__(self) -> Features:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_hdf5(path: Path) -> Any:
    h5py = optional_module("h5py", "train")
    if not path.is_file():
        raise MomentseekError(f"{path}: there is no such feature file; check the path in data.toml")
    try:
        return h5py.File(path, "r")
    except Exception as e:  # h5py raises a dozen classes on damaged files
        why = _first_line(e)
        if "truncated" in why:
            raise MomentseekError(f"{path}: ends in the middle; copy or extract the file again") from None
        if "signature" in why:
            raise MomentseekError(f"{path}: is not an HDF5 file; features are read from HDF5") from None
        raise MomentseekError(f"{path}: cannot be opened as HDF5 ({why}); check the file") from None


@contextlib.contextmanager
def _damage_said(where: str) -> Iterator[None]:
    try:
        yield
    except MomentseekError:
        raise
    except Exception as e:  # h5py raises a dozen classes on damaged files
        raise MomentseekError(f"{where} cannot be read ({_first_line(e)}); copy the file again") from None


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


def _first_line(error: Exception) -> str:
    return (str(error).strip("'\" ") or type(error).__name__).splitlines()[0]


class ArrayCache:
    """Arrays by key, at most ``megabytes`` of them; for several threads.

    >>> cache = ArrayCache(1)
    >>> cache.get("a", lambda: np.zeros(4, np.float32)).shape, cache.bytes
    ((4,), 16)
    """

    def __init__(self, megabytes: float) -> None:
        self.limit = int(megabytes * 1e6)
        self.bytes = 0
        self._kept: OrderedDict[Hashable, Array] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable, make: Callable[[], Array]) -> Array:
        """The array that is kept under ``key``; if there is none, ``make`` makes it and it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if key not in self._kept and made.nbytes <= self.limit:
                self._kept[key] = made
                self.bytes += made.nbytes
                while self.bytes > self.limit:
                    _, old = self._kept.popitem(last=False)
                    self.bytes -= old.nbytes
        return made


def write_features(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]] | Iterable[tuple[str, NDArray[Any]]]
) -> int:
    """Write ``key → (rows, dimensions)`` one array at a time into a temporary file, and rename it at the end.

    Returns how many were written. No times are recorded, so that equal arrays in equal order give equal files.
    """
    h5py = optional_module("h5py", "train")
    target = Path(path)
    pairs = arrays.items() if isinstance(arrays, Mapping) else arrays
    count = 0
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); check the folder") from None
    temporary = Path(name)
    try:
        with h5py.File(temporary, "w", libver="latest") as file:
            for key, values in pairs:
                file.create_dataset(key, data=np.ascontiguousarray(values, dtype=np.float32), track_times=False)
                count += 1
        mask = os.umask(0o022)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    finally:
        drop_temporary(temporary)
    return count
