"""Feature files: HDF5 with one float dataset per video or query, read row by name and never as a whole.

TVR's, TVR-Ranking's and most others' features are of this shape: ``vid_name -> (clips, columns)``, ``str(query_id) ->
(words, columns)``. Several files side by side (ResNet and I3D) are joined by columns.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.optional import optional_module

Array = NDArray[np.float32]
PathLike = str | os.PathLike[str]
COMPANION_SUFFIXES = ("-mask", "-lengths")
"""Endings of the datasets that stand beside the features in TVR's subtitle files."""
MAX_ROW_DIFFERENCE = 2
"""Rows by which files of the same video may differ; the extra ones are cut (I3D windows and ResNet frames do)."""
FINGERPRINT_SAMPLES = 48
"""Entries of a file whose values are in its fingerprint, spread evenly over the names."""


class Features:
    """One or more feature files, open for reading; safe to use from several threads.

    ``what`` is what the keys are, for messages: "video" or "query".
    """

    def __init__(self, paths: PathLike | Sequence[PathLike], what: str = "video") -> None:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given:
            raise MomentseekError("no feature file is named; give at least one HDF5 file")
        self.paths = tuple(Path(p) for p in given)
        self.what = what
        self._lock = threading.Lock()
        self._files: list[Any] = []
        self._shapes: dict[tuple[int, str], tuple[int, int]] = {}
        try:
            for path in self.paths:
                self._files.append(_open_hdf5(path))
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
        with self._lock:
            listed = [{k for k in file if not k.endswith(COMPANION_SUFFIXES)} for file in self._files]
        return tuple(sorted(set.intersection(*listed)))

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """Number of columns of each file."""
        if not self.names:
            raise MomentseekError(f"{self.source}: holds no features; is this the right file?")
        return tuple(self._shape(i, self.names[0])[1] for i in range(len(self._files)))

    @cached_property
    def dim(self) -> int:
        """Number of columns of a row as ``read`` returns it: of all files together."""
        return sum(self.dims)

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return all(name in file for file in self._files)

    def rows(self, name: str) -> int:
        """Number of rows of ``name``, without reading them; its number of columns must be that of the others."""
        shapes = [self._shape(i, name) for i in range(len(self._files))]
        for path, (_, columns), usual in zip(self.paths, shapes, self.dims, strict=True):
            if columns != usual:
                raise MomentseekError(
                    f"{path}: {self.what} {name} has {columns:,} columns and others have {usual:,}; extract all with "
                    "one encoder"
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
        parts = [self._read(i, name)[:count] for i in range(len(self._files))]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if not np.isfinite(joined).all():
            raise MomentseekError(f"{self.source}: {self.what} {name} has values that are no numbers; extract it anew")
        return joined

    @cached_property
    def _fingerprint(self) -> str:
        seen = hashlib.sha256()
        chosen = {int(i) for i in np.linspace(0, len(self.names) - 1, FINGERPRINT_SAMPLES)} if self.names else set()
        for file, path in enumerate(self.paths):
            seen.update(f"{path.stat().st_size}\n".encode())
            for number, name in enumerate(self.names):
                seen.update(f"{name}\0{self._shape_text(file, name)}\n".encode())
                if number in chosen:
                    seen.update(self._values(file, name))
        return seen.hexdigest()[:16]

    def fingerprint(self) -> str:
        """A hash of the files' sizes, every name and shape, and the values of a few dozen entries.

        It tells files apart without reading them whole: a change of a few values, in a file that is not compressed and
        keeps its shapes, may go unseen.
        """
        return self._fingerprint

    def close(self) -> None:
        """Close the files that hold the features."""
        with self._lock:
            for file in self._files:
                with contextlib.suppress(Exception):
                    file.close()

    def __enter__(self) -> Features:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _dataset(self, i: int, name: str) -> Any:
        file, path = self._files[i], self.paths[i]
        if not file:
            raise MomentseekError(f"{path}: was closed; open the data again")
        try:
            found = file[name]
        except (KeyError, ValueError):
            remedy = (
                "extract it, or leave it out of the split's corpus and truth"
                if self.what == "video"
                else "encode it, or leave it out of the split's truth"
            )
            raise MomentseekError(f"{path}: has no features for {self.what} {name}; {remedy}") from None
        except (OSError, RuntimeError) as e:
            raise self._damage_error(path, name, e) from None
        if getattr(found, "ndim", 0) != 2 or found.dtype.kind not in "fiu":
            shape = getattr(found, "shape", "a group")
            raise MomentseekError(f"{path}: {self.what} {name} must be a table of numbers (rows, columns), not {shape}")
        return found

    def _shape(self, i: int, name: str) -> tuple[int, int]:
        with self._lock:
            if (i, name) not in self._shapes or not self._files[i]:
                count, columns = self._dataset(i, name).shape
                self._shapes[i, name] = int(count), int(columns)
            return self._shapes[i, name]

    def _shape_text(self, i: int, name: str) -> str:
        """The shape of an entry as text; an entry that nobody uses need not be a table."""
        with self._lock:
            if (i, name) in self._shapes:
                return str(self._shapes[i, name])
            try:
                return str(getattr(self._files[i][name], "shape", "a group"))
            except (KeyError, ValueError, OSError, RuntimeError) as e:
                raise self._damage_error(self.paths[i], name, e) from None

    def _values(self, i: int, name: str) -> bytes:
        """The bytes of an entry as the file has them, whether they are numbers or not."""
        with self._lock:
            try:
                found = self._files[i][name]
                return np.asarray(found[()]).tobytes() if hasattr(found, "shape") else b""
            except (KeyError, ValueError, OSError, RuntimeError) as e:
                raise self._damage_error(self.paths[i], name, e) from None

    def _read(self, i: int, name: str) -> Array:
        with self._lock:
            dataset = self._dataset(i, name)
            try:
                rows: Array = np.asarray(dataset[()], dtype=np.float32)
            except (OSError, RuntimeError) as e:
                raise self._damage_error(self.paths[i], name, e) from None
        return rows

    def _damage_error(self, path: Path, name: str, error: Exception) -> MomentseekError:
        return MomentseekError(f"{path}: {self.what} {name} cannot be read ({_first_line(error)}); copy the file again")


def _open_hdf5(path: Path) -> Any:
    h5py = optional_module("h5py", "train")
    if not path.is_file():
        raise MomentseekError(f"{path}: there is no such feature file; check the path in data.toml")
    try:
        return h5py.File(path, "r")
    except OSError as e:
        why = _first_line(e)
        if "truncated" in why:
            raise MomentseekError(f"{path}: ends in the middle; copy or extract the file again") from None
        if "signature" in why:
            raise MomentseekError(f"{path}: is not an HDF5 file; features are read from HDF5") from None
        raise MomentseekError(f"{path}: cannot be opened as HDF5 ({why}); check the file") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip("'\" ") or type(error).__name__).splitlines()[0]
