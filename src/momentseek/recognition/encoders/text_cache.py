"""Encode many texts with a cache on disk, so that each text is encoded only once, even after Ctrl-C."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.progress import ShowCount
from momentseek.recognition.encoders.protocol import TextEncoder, Vectors, fingerprint
from momentseek.recognition.weights.files import cache_folder

KEY_BYTES = 16
MAX_LENGTH_ERROR = 1e-3
"""Maximum deviation of a vector's length from 1."""
CHUNK_TEXTS = 512
"""Number of texts encoded between two progress reports; each stores the finished vectors."""
KEYS_PER_QUERY = 500
LOCK_SECONDS = 30.0
"""Seconds to wait while another process writes."""
EncodeChunks = Callable[[Sequence[list[str]]], Iterable[Vectors]]
"""A function that encodes lists of texts elsewhere and yields the vectors of each, in order."""


class RecentTexts:
    """Encodes texts, and caches the vectors of the most recent ones in memory."""

    def __init__(self, encode: Callable[[Sequence[str]], Vectors], limit: int = 512) -> None:
        self._encode, self._limit = encode, limit
        self._rows: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        if not texts:
            return self._encode(texts)
        with self._lock:
            known = {text: self._rows.pop(text) for text in dict.fromkeys(texts) if text in self._rows}
            self._rows |= known  # the most recent ones are at the end
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            fresh = {text: row.copy() for text, row in zip(new, self._encode(new), strict=True)}
            known |= fresh
            with self._lock:
                self._rows |= fresh
                while len(self._rows) > self._limit:
                    del self._rows[next(iter(self._rows))]
        return np.stack([known[text] for text in texts])


def text_key(text: str) -> bytes:
    """Return the key of a text in the store.

    >>> text_key("a man runs").hex()
    '348009ea355c8f0f5fa8d30be3a5dc13'
    """
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


class TextVectorStore:
    """One encoder's vectors of texts: a SQLite file in the cache, each row with a checksum.

    The file may be deleted at any time. A damaged file is replaced, and its texts are encoded again.
    """

    def __init__(self, root: Path, encoder: str, fingerprint: str, dim: int) -> None:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", encoder)
        self.path = root / "texts" / f"{plain}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:16]}-{dim}.sqlite"
        self._dim = dim

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        """Return the stored vectors of keys."""
        found: dict[bytes, Vectors] = {}
        if not self.path.is_file():
            return found
        try:
            with self._open() as connection:
                for some in _batches(list(dict.fromkeys(keys)), KEYS_PER_QUERY):
                    marks = ",".join("?" * len(some))
                    rows = connection.execute(f"SELECT key, vector, sum FROM vectors WHERE key IN ({marks})", some)
                    for key, data, checksum in rows:
                        if len(data) == 4 * self._dim and _checksum(key, data) == checksum:
                            found[key] = np.frombuffer(data, "<f4")
        except (sqlite3.Error, TypeError):  # damaged or foreign: encoded again
            return {}
        good = unit_rows(np.stack(list(found.values()))).tolist() if found else []
        return {key: found[key] for key, fine in zip(found, good, strict=True) if fine}

    def add(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Store new rows; raise MomentseekError if the file cannot be written."""
        data = [row.tobytes() for row in np.asarray(vectors, "<f4")]
        rows = [(key, row, _checksum(key, row)) for key, row in zip(keys, data, strict=True)]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._insert(rows)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:  # not a database, or a damaged one
                self.path.unlink(missing_ok=True)
                self._insert(rows)
        except (OSError, sqlite3.Error) as e:
            raise MomentseekError(f"{self.path}: cannot be written ({e}); check the folder") from None

    def _insert(self, rows: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        with self._open() as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB, sum BLOB)")
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=LOCK_SECONDS)) as connection:
            yield connection


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(key + data, digest_size=8).digest()


def unit_rows(vectors: Vectors) -> NDArray[np.bool_]:
    """Return which rows are finite and of length 1, as an encoder's must be.

    >>> unit_rows(np.array([[0.6, 0.8], [3, 4], [np.nan, 1]], np.float32)).tolist()
    [True, False, False]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    good: NDArray[np.bool_] = np.abs(length - 1) <= MAX_LENGTH_ERROR
    return good


def encode_cached(
    encoder: TextEncoder,
    texts: Sequence[str],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: ShowCount | None = None,
    encode_chunks: EncodeChunks | None = None,
) -> Vectors:
    """Return ``encoder.encode(texts)``, with a cache on disk.

    Vectors are stored under ``cache_dir`` (default: the user's cache folder), by the encoder's name and fingerprint
    and the text. Only an encoder with a fingerprint is cached. If the cache cannot be written, a note on stderr says
    so. ``progress`` is called with the number of texts encoded and the number to encode. ``encode_chunks`` encodes
    chunks of texts elsewhere, with the same encoder.
    """
    keys = [text_key(text) for text in texts]
    own = fingerprint(encoder)
    store = TextVectorStore(Path(cache_dir or cache_folder()), encoder.name, own, encoder.dim) if own else None
    known = store.find(keys) if store else {}
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    report = progress or (lambda done, total: None)
    if new:
        report(0, len(new))
    chunks = _batches(list(new), CHUNK_TEXTS)  # not by length: the time left would be estimated from the longest texts
    chunk_texts = [[new[key] for key in chunk] for chunk in chunks]
    encoded = map(encoder.encode, chunk_texts) if encode_chunks is None else encode_chunks(chunk_texts)
    done = 0
    for chunk, vectors in zip(chunks, encoded, strict=True):
        rows = _check_rows(encoder, vectors, len(chunk))
        known.update(zip(chunk, rows, strict=True))
        done += len(chunk)
        report(done, len(new))
        if store is not None:
            try:
                store.add(chunk, rows)
            except MomentseekError as e:
                print(f"note: vectors are not kept for next time: {e}", file=sys.stderr)
                store = None
    return np.stack([known[key] for key in keys]) if keys else np.empty((0, encoder.dim), np.float32)


def _batches(keys: list[bytes], size: int) -> list[list[bytes]]:
    return [keys[at : at + size] for at in range(0, len(keys), size)]


def _check_rows(encoder: TextEncoder, given: Vectors, count: int) -> Vectors:
    rows = np.asarray(given, dtype=np.float32)
    if rows.shape != (count, encoder.dim):
        raise MomentseekError(
            f"the text encoder {encoder.name} gave {rows.shape} numbers for {count} × {encoder.dim}; check it"
        )
    if not unit_rows(rows).all():
        raise MomentseekError(
            f"the text encoder {encoder.name} gave vectors that are not finite or not of length 1; check the encoder"
        )
    return rows
