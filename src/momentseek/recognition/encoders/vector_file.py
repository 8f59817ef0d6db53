"""Vectors of another model, by text: ``--encoder file:simcse.npz``.

The file is numpy's .npz with ``texts`` (n strings) and ``vectors`` (n × d numbers). So the papers' own encoder (SimCSE,
which needs torch and a download) can run elsewhere, and its similarities can be used here.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.limits import check_size
from momentseek.recognition.encoders.protocol import Vectors

MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
"""First and last surrogate code point, which are no characters by themselves."""


def read_npz(path: str | os.PathLike[str], *names: str) -> list[NDArray[Any]]:
    """Read named arrays from numpy's .npz; raise an error that says what is wrong.

    No code in the file is executed, and an array is read only if its declared size is within ``limits``.
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


class VectorFileEncoder:
    """An encoder for a fixed set of texts.

    >>> known = VectorFileEncoder("mine", ["a man runs", "a dog barks"], np.array([[3, 4], [0, 2]], np.float32))
    >>> known.encode(["a dog barks", "a man runs"]).tolist()
    [[0.0, 1.0], [0.6000000238418579, 0.800000011920929]]
    """

    def __init__(self, name: str, texts: Sequence[str], vectors: Vectors) -> None:
        self.name = name
        self.dim = int(vectors.shape[1])
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(vectors).all() and (length > 0).all()):
            raise MomentseekError(f"{name}: a vector is zero or not finite; make them again")
        self._vectors: Vectors = (vectors / length).astype(np.float32)
        self._place = {text: at for at, text in enumerate(texts)}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the rows of ``texts``, all of which must be in the file."""
        try:
            return self._vectors[np.fromiter((self._place[text] for text in texts), np.int64, len(texts))]
        except KeyError as e:
            raise MomentseekError(f"{self.name}: has no vector for {e.args[0]!r}; encode every text") from None


def read_vector_file(path: str | os.PathLike[str]) -> VectorFileEncoder:
    """Read the vectors of a file."""
    texts, vectors = read_npz(path, "texts", "vectors")
    if texts.ndim != 1 or texts.dtype.kind != "U" or vectors.ndim != 2 or len(texts) != len(vectors):
        raise MomentseekError(
            f"{path}: texts has shape {texts.shape} and vectors {vectors.shape}; expected n strings and n rows"
        )
    if vectors.dtype.kind not in "fiu":
        raise MomentseekError(f"{path}: vectors are {vectors.dtype}; expected numbers")
    with np.errstate(over="ignore"):  # overflow becomes infinite, which the encoder refuses
        return VectorFileEncoder(Path(path).name, texts.tolist(), vectors.astype(np.float32))
