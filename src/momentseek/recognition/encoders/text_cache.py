"""Encode many texts: each text once, ever, and nothing lost on Ctrl-C.

A folder per encoder holds numpy files of rows ``(key, vector)``, where the key is the text's 128-bit BLAKE2 hash. New
rows become a new part, written under another name and renamed: an interrupted process leaves whole parts or none, and
two processes never write different things into the same file, because a part is called by the hash of its bytes. That
name is also its checksum: a part whose bytes have another hash is passed over, and its texts are encoded again.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.atomic import drop_temporary, write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.core.progress import ShowCount
from momentseek.recognition.encoders.protocol import TextEncoder, Vectors, fingerprint
from momentseek.recognition.weights.files import cache_folder

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


CHUNK_TEXTS = 512
"""Texts encoded between two reports of progress."""
SpreadTexts = Callable[[Sequence[list[str]]], Iterable[Vectors]]
"""Encodes lists of texts elsewhere, and gives the vectors of each, in order."""
SAVE_INTERVAL_SECONDS = 20.0
"""How often finished rows are written to the cache."""


def encode_cached(
    encoder: TextEncoder,
    texts: Sequence[str],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: ShowCount | None = None,
    spread: SpreadTexts | None = None,
) -> Vectors:
    """The vectors of texts, as ``encoder.encode(texts)``; those encoded before, now or in an earlier run, come from the
    cache.

    Vectors are kept under ``cache_dir`` (default: the user's cache folder), by the encoder's name and fingerprint
    and the text. Only an encoder with a fingerprint is cached. Where the cache cannot be written, a note on stderr says
    so and nothing is kept. ``progress`` is called with the numbers of texts that are encoded and that need encoding.
    ``spread`` encodes chunks of texts elsewhere, with the same encoder.
    """
    keys = [text_key(text) for text in texts]
    print_of = fingerprint(encoder)
    store = (
        TextVectorStore(Path(cache_dir or cache_folder()), encoder.name, print_of, encoder.dim) if print_of else None
    )
    known = store.find(keys) if store else {}
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if new:
        known.update(_encode(encoder, new, store, progress, spread))
    rows = np.empty((len(keys), encoder.dim), dtype=np.float32)
    for at, key in enumerate(keys):
        rows[at] = known[key]
    return rows


def _encode(
    encoder: TextEncoder,
    new: dict[bytes, str],
    store: TextVectorStore | None,
    progress: ShowCount | None,
    spread: SpreadTexts | None,
) -> dict[bytes, Vectors]:
    keys = list(new)  # not by length: the time left would be estimated from the longest alone
    done: dict[bytes, Vectors] = {}
    kept = 0
    last = time.monotonic()
    report = progress or (lambda done, total: None)
    report(0, len(keys))
    chunks = [keys[at : at + CHUNK_TEXTS] for at in range(0, len(keys), CHUNK_TEXTS)]
    texts = [[new[key] for key in chunk] for chunk in chunks]
    encoded = map(encoder.encode, texts) if spread is None else iter(spread(texts))
    try:
        for chunk, rows in zip(chunks, encoded, strict=True):
            done.update(zip(chunk, _check_rows(encoder, rows, len(chunk)), strict=True))
            report(len(done), len(keys))
            if store and time.monotonic() - last > SAVE_INTERVAL_SECONDS:
                store, kept, last = _keep(store, keys, done, kept), len(done), time.monotonic()
    finally:
        if store and kept < len(done):
            store = _keep(store, keys, done, kept)
    if store:
        with suppress(MomentseekError):
            store.tidy()
    return done


def _keep(store: TextVectorStore, keys: list[bytes], done: dict[bytes, Vectors], kept: int) -> TextVectorStore | None:
    fresh = keys[kept : len(done)]
    try:
        store.add(fresh, np.stack([done[key] for key in fresh]))
    except MomentseekError as e:
        print(f"note: vectors are not kept for next time: {e}", file=sys.stderr)
        return None
    return store


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
