"""Encoding many texts: each text once, ever, with a progress bar, and nothing lost on Ctrl-C."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click
import numpy as np

from momentseek.encoders.folders import cache_folder
from momentseek.encoders.progress import Progress
from momentseek.encoders.protocol import TextEncoder, Vectors, fingerprint
from momentseek.encoders.store import Store, key_of, unit_rows
from momentseek.errors import MomentseekError

CHUNK = 512
"""Texts between two steps of the progress bar."""
KEEP_EVERY = 20.0
"""Seconds after which finished rows are kept."""


def encode_cached(
    encoder: TextEncoder,
    texts: Sequence[str],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Vectors:
    """``encoder.encode(texts)``, but texts met before (in this call or an earlier one) come from the cache.

    Vectors are kept under ``cache_dir`` (default: the user's cache folder), by the encoder's name and fingerprint
    and the text. Only an encoder with a fingerprint is cached. A cache that cannot be written is said so once, on
    stderr, and done without. Progress goes to stderr: a bar on a terminal, a line elsewhere if it takes over 2 s.
    """
    keys = [key_of(text) for text in texts]
    print_of = fingerprint(encoder)
    store = Store(Path(cache_dir or cache_folder()), encoder.name, print_of, encoder.dim) if print_of else None
    known = store.find(keys) if store else {}
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if new:
        known.update(_encode(encoder, new, store, progress))
    rows = np.empty((len(keys), encoder.dim), dtype=np.float32)
    for at, key in enumerate(keys):
        rows[at] = known[key]
    return rows


def _encode(encoder: TextEncoder, new: dict[bytes, str], store: Store | None, progress: bool) -> dict[bytes, Vectors]:
    keys = list(new)  # not by length: the time left would be told from the longest alone
    done: dict[bytes, Vectors] = {}
    kept = 0
    last = time.monotonic()
    with Progress(len(keys), f"encoding with {encoder.name}", enabled=progress) as bar:
        try:
            for at in range(0, len(keys), CHUNK):
                chunk = keys[at : at + CHUNK]
                done.update(zip(chunk, _checked(encoder, [new[key] for key in chunk]), strict=True))
                bar.advance(len(chunk))
                if store and time.monotonic() - last > KEEP_EVERY:
                    store, kept, last = _keep(store, keys, done, kept), len(done), time.monotonic()
        finally:
            if store and kept < len(done):
                store = _keep(store, keys, done, kept)
    if store:
        with suppress(MomentseekError):
            store.tidy()
    return done


def _keep(store: Store, keys: list[bytes], done: dict[bytes, Vectors], kept: int) -> Store | None:
    fresh = keys[kept : len(done)]
    try:
        store.add(fresh, np.stack([done[key] for key in fresh]))
    except MomentseekError as e:
        click.echo(f"note: vectors are not kept for next time: {e}", err=True)
        return None
    return store


def _checked(encoder: TextEncoder, texts: list[str]) -> Vectors:
    rows = np.asarray(encoder.encode(texts), dtype=np.float32)
    if rows.shape != (len(texts), encoder.dim):
        raise MomentseekError(
            f"the text encoder {encoder.name} gave {rows.shape} numbers for {len(texts)} × {encoder.dim}; check it"
        )
    if not unit_rows(rows).all():
        raise MomentseekError(
            f"the text encoder {encoder.name} gave vectors that are not finite or not of length 1; check the encoder"
        )
    return rows
