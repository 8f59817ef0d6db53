"""Read features of one or several streams by name, joined by columns; and write features.

Readers (``sources``) open the files or folders of streams. Features are written as HDF5 files or folders of npz.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.atomic import drop_temporary
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.models.features.sources import Array, FeatureSource, open_source

PathLike = str | os.PathLike[str]
MAX_ROW_DIFFERENCE = 2
"""Maximum difference in rows between files of a video, such as I3D windows and ResNet frames; extra rows are cut."""
NORM_EPSILON = 1e-5
"""Added to the norm that a row is divided by, as in Moment-DETR and its successors."""
FINGERPRINT_SAMPLES = 48
"""Number of entries of a file whose values are in its fingerprint, spread evenly over the names."""


@dataclass(frozen=True)
class FeatureStream:
    """A file or folder of features, and how it is read."""

    path: Path
    key: str | None = None
    """The key of the array to read, if the file of a video or query holds several."""
    normalise: bool = False
    """Normalise every row to length 1 before the streams are joined."""


Stream = PathLike | FeatureStream


class Features:
    """One or more streams, joined by columns, open for reading; safe to use from several threads, as h5py is.

    Streams whose rows for a video differ by more than ``MAX_ROW_DIFFERENCE`` are refused, because they are of different
    clips, unless ``shortest`` cuts all to the shortest.
    """

    def __init__(self, paths: Stream | Sequence[Stream], what: str = "video", *, shortest: bool = False) -> None:
        given = [paths] if isinstance(paths, str | os.PathLike | FeatureStream) else list(paths)
        if not given:
            raise MomentseekError("no feature file is named; give at least one")
        self.streams = tuple(s if isinstance(s, FeatureStream) else FeatureStream(Path(s)) for s in given)
        self.what, self.shortest = what, shortest
        self._files: list[FeatureSource] = []
        try:
            for stream in self.streams:
                self._files.append(open_source(stream.path, what, stream.key))
        except BaseException:
            self.close()
            raise

    @property
    def source(self) -> str:
        """The names of the files, for messages."""
        return " + ".join(str(stream.path) for stream in self.streams)

    @property
    def sources(self) -> tuple[FeatureSource, ...]:
        """The open files or folders, in order."""
        return tuple(self._files)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the videos or queries that are in every file, in alphabetical order."""
        return tuple(sorted(set.intersection(*(file.names() for file in self._files))))

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """Number of columns of each file."""
        if not self.names:
            raise MomentseekError(f"{self.source}: holds no features; is this the right file?")
        return tuple(file.shape(self.names[0])[1] for file in self._files)

    @cached_property
    def dim(self) -> int:
        """Number of columns of all files together, which is the width of the rows of ``read``."""
        return sum(self.dims)

    def __contains__(self, name: object) -> bool:
        return all(name in file for file in self._files)

    def rows(self, name: str) -> int:
        """Number of rows of ``name``, without reading them; checks that its number of columns is that of the others."""
        shapes = [file.shape(name) for file in self._files]
        for file, (_, columns), usual in zip(self._files, shapes, self.dims, strict=True):
            if columns != usual:
                raise MomentseekError(
                    f"{file.where(name)} has {columns:,} columns and others have {usual:,}; extract all with one "
                    "encoder"
                )
        counts = [count for count, _ in shapes]
        if max(counts) - min(counts) > MAX_ROW_DIFFERENCE and not self.shortest:
            raise MomentseekError(
                f"{self.source}: {self.what} {name} has {' and '.join(map(str, counts))} rows; the files must be of "
                "the same clips (shortest = true under [features] cuts all to the shortest)"
            )
        return min(counts)

    def read(self, name: str) -> Array:
        """The rows of ``name`` as float32, with the columns of all files side by side."""
        count = self.rows(name)
        parts = [file.read(name)[:count] for file in self._files]
        parts = [_unit_rows(p) if stream.normalise else p for p, stream in zip(parts, self.streams, strict=True)]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if not np.isfinite(joined).all():
            raise MomentseekError(f"{self.source}: {self.what} {name} has values that are no numbers; extract it again")
        return joined

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the files' sizes, every name and shape, and the values of a few dozen entries.

        It distinguishes files without reading them completely. It can miss a change of a few values in an uncompressed
        file that keeps its shapes.
        """
        seen = hashlib.sha256()
        chosen = {int(i) for i in np.linspace(0, len(self.names) - 1, FINGERPRINT_SAMPLES)} if self.names else set()
        for file, stream in zip(self._files, self.streams, strict=True):
            seen.update(f"{file.size}\n".encode())
            if stream.key is not None or stream.normalise:
                seen.update(f"{stream.key} {stream.normalise}\n".encode())
            for number, name in enumerate(self.names):
                seen.update(f"{name}\0{file.shape_text(name)}\n".encode())
                if number in chosen:
                    seen.update(file.values(name))
        return seen.hexdigest()[:16]

    def close(self) -> None:
        """Close all files."""
        for file in self._files:
            file.close()

    def __enter__(self) -> Features:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _unit_rows(rows: Array) -> Array:
    """Normalise rows to length 1: ``x / (|x| + 1e-5)``.

    >>> _unit_rows(np.array([[3.0, 4.0]], np.float32)).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        unit: Array = rows / (np.linalg.norm(rows, axis=1, keepdims=True) + NORM_EPSILON)
    return unit


class ArrayCache:
    """A thread-safe cache of at most ``megabytes`` of arrays, which drops the least recently used ones.

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
        """The cached array of ``key``; if there is none, call ``make`` and cache its result."""
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


def write_npz_folder(folder: Path, arrays: Iterable[tuple[str, Mapping[str, NDArray[Any]]]]) -> int:
    """Write a file ``NAME.npz`` with the arrays of each video or query, as Moment-DETR does; returns their number.

    This creates the folder. Files are not written atomically, so the caller should pass a temporary name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, named in arrays:
        if "/" in name or name in ("", ".", ".."):
            raise MomentseekError(f"{name!r} cannot be the name of a file; rename it in the annotations")
        rows: dict[str, Any] = {key: np.asarray(values, dtype=np.float32) for key, values in named.items()}
        np.savez(folder / f"{name}.npz", **rows)
        count += 1
    return count


def write_features(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]] | Iterable[tuple[str, NDArray[Any]]]
) -> int:
    """Write an HDF5 file of ``key → (rows, columns)``, one array at a time; returns the number of arrays.

    The file has a temporary name until it is complete. No times are recorded, so equal arrays in equal order give equal
    files.
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
