"""Writing feature files: HDF5, one float32 dataset per key, the same bytes for the same arrays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
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
