"""Writing feature files: HDF5, one float32 dataset per key, the same bytes for the same arrays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.atomic import drop_temporary
from momentseek.errors import MomentseekError
from momentseek.optional import optional_module


def write_features(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]] | Iterable[tuple[str, NDArray[Any]]]
) -> int:
    """Write ``key → (rows, dimensions)`` one array at a time, beside the file's place, and rename it at the end.

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
            put = _writer(file)
            for key, values in pairs:
                put(key, np.ascontiguousarray(values, dtype=np.float32))
                count += 1
        mask = os.umask(0o022)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    finally:
        drop_temporary(temporary)
    return count


def _writer(file: Any) -> Callable[[str, NDArray[np.float32]], None]:
    """What writes an array as ``file.create_dataset`` does, with its settings and its type made once for all."""
    h5py = optional_module("h5py", "train")
    h5d, everything = h5py.h5d, h5py.h5s.ALL
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_obj_track_times(False)
    settings.set_attr_creation_order(0)
    stored = h5py.h5t.py_create(np.dtype(np.float32), logical=True)

    def put(key: str, values: NDArray[np.float32]) -> None:
        folder, _, name = key.rpartition("/")
        group = file.require_group(folder) if folder else file
        made = h5d.create(group.id, name.encode(), stored, h5py.h5s.create_simple(values.shape), dcpl=settings)
        made.write(everything, everything, values)

    return put
