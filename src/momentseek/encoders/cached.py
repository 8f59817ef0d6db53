"""Encoding many texts: each text once, ever, and nothing lost on Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from momentseek.encoders.folders import cache_folder
from momentseek.encoders.protocol import TextEncoder, Vectors, fingerprint
from momentseek.encoders.vector_store import TextVectorStore, text_key, unit_rows
from momentseek.errors import MomentseekError
from momentseek.progress import ShowCount

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
