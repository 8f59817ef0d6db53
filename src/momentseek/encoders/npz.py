"""Arrays from a file that somebody else made."""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.limits import check_size

MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
"""First and last code point that stand for no letter by themselves."""


def read_npz(path: str | os.PathLike[str], *names: str) -> list[NDArray[Any]]:
    """The named arrays of numpy's .npz, or one sentence about what is wrong.

    Nothing in the file is executed, and an array is read only if the size it declares is within ``limits``.
    """
    try:
        with Path(path).open("rb") as raw, zipfile.ZipFile(raw) as archive:
            size = os.fstat(raw.fileno()).st_size
            return [_read_array(archive, name, f"{path}: {name}", size) for name in names]
    except MomentseekError:
        raise
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror or e}); check the path") from None
    except Exception:  # zipfile, its decompressors and numpy raise a dozen classes on damaged files
        raise MomentseekError(
            f"{path}: expected an .npz file with the arrays {', '.join(names)}; write it with numpy.savez"
        ) from None


def _read_array(archive: zipfile.ZipFile, name: str, what: str, file_size: int) -> NDArray[Any]:
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("numpy writes no other compression, and zipfile bounds no other while expanding")
    check_size(what, member.file_size, min(member.compress_size, file_size))
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
            raise ValueError("the header declares another size than the file has")
    with archive.open(member) as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    if dtype.kind == "U":
        codes = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if codes.size and (codes.max() > MAX_CODE_POINT or ((codes >= SURROGATES[0]) & (codes <= SURROGATES[1])).any()):
            raise ValueError("a code that is no letter")
    return array
