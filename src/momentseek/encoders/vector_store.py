"""Vectors of texts on disk, in parts that are never changed.

A folder per encoder holds numpy files of rows ``(key, vector)``, where the key is the text's 128-bit BLAKE2 hash.
New rows become a new part, written beside and renamed: an interrupted process leaves whole parts or none, and two
processes never write different things into the same file, because a part is called by the hash of its bytes. That
name is also its checksum: a part whose bytes have another hash is passed over, and its texts are encoded again.
Many parts are merged into one now and then.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.protocol import Vectors
from momentseek.errors import MomentseekError

KEY_BYTES = 16
MAX_PARTS = 16
"""Parts beyond which they are merged."""
MAX_LENGTH_ERROR = 1e-3
"""How far from 1 a vector's length may be."""


def text_key(text: str) -> bytes:
    """The name of a text in the store.

    >>> text_key("a man runs").hex()
    '348009ea355c8f0f5fa8d30be3a5dc13'
    """
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


class TextVectorStore:
    """The vectors of texts that one encoder has made, in a folder of the cache."""

    def __init__(self, root: Path, encoder: str, fingerprint: str, dim: int) -> None:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", encoder)
        self.folder = root / "texts" / f"{plain}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:16]}-{dim}"
        self._row = np.dtype([("key", f"S{KEY_BYTES}"), ("vector", "<f4", (dim,))])

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The vectors of those keys that are stored."""
        wanted = set(keys)
        found: dict[bytes, Vectors] = {}
        for part in self._parts():
            rows = self._open(part)
            if rows is None:
                continue
            places = [(at, key) for at, key in enumerate(_bytes(rows["key"])) if key in wanted]
            vectors: Vectors = rows["vector"][[at for at, _ in places]]
            for (_, key), vector, good in zip(places, vectors, unit_rows(vectors).tolist(), strict=True):
                if good:
                    found[key] = vector
        return found

    def add(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Keep new rows, as one part; raises MomentseekError where the folder cannot be written."""
        rows = np.empty(len(keys), self._row)
        rows["key"] = np.frombuffer(b"".join(keys), f"S{KEY_BYTES}")
        rows["vector"] = vectors
        self._write(rows)

    def tidy(self) -> None:
        """Merge the parts if there are many; of a text encoded twice, one row stays."""
        from momentseek.atomic import drop_temporary

        parts = self._parts()
        if len(parts) < MAX_PARTS:
            return
        read = [(part, rows) for part in parts if (rows := self._open(part)) is not None]
        if len(read) < 2:
            return
        merged = np.concatenate([rows for _, rows in read])
        _, first = np.unique(merged["key"], return_index=True)
        whole = self._write(merged[np.sort(first)])
        for part, _ in read:
            if part != whole:
                drop_temporary(part)

    def _write(self, rows: NDArray[Any]) -> Path:
        from momentseek.atomic import write_bytes

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise MomentseekError(f"{self.folder}: cannot be made ({e.strerror}); check the folder") from None
        buffer = io.BytesIO()
        np.save(buffer, rows)
        part = self.folder / f"{_checksum(buffer.getvalue())}.npy"
        write_bytes(part, buffer.getvalue())
        return part

    def _parts(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9a-f]*.npy"))

    def _open(self, part: Path) -> NDArray[Any] | None:
        with suppress(OSError, ValueError, EOFError):  # gone, damaged or foreign: encoded again
            data = part.read_bytes()
            if _checksum(data) != part.stem:
                return None
            rows: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
            if rows.dtype == self._row and rows.ndim == 1:
                return rows
        return None


def unit_rows(vectors: Vectors) -> NDArray[np.bool_]:
    """Which rows are finite and of length 1, as an encoder's must be.

    >>> unit_rows(np.array([[0.6, 0.8], [3, 4], [np.nan, 1]], np.float32)).tolist()
    [True, False, False]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    good: NDArray[np.bool_] = np.abs(length - 1) <= MAX_LENGTH_ERROR
    return good


def _checksum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=KEY_BYTES).hexdigest()


def _bytes(keys: NDArray[Any]) -> list[bytes]:
    # numpy drops zero bytes at the end of an S16 element; raw slices keep them.
    raw = np.ascontiguousarray(keys).tobytes()
    return [raw[at : at + KEY_BYTES] for at in range(0, len(raw), KEY_BYTES)]
