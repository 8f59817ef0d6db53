"""Limits on the size of input files, checked before memory is allocated."""

from __future__ import annotations

import os

from momentseek.core.errors import MomentseekError

MAX_BYTES = 4 << 30
"""Maximum size of a file, or of an array within a file; the environment variable MOMENTSEEK_MAX_BYTES replaces it."""
MAX_EXPANSION = 200
"""Annotation files shrink 5- to 20-fold under gzip; deflate's ceiling, reached by bombs, is 1,032."""
MIN_BOMB_BYTES = 64 << 20
"""Data that expand to less than this are no decompression bomb, however small they were."""


def max_bytes() -> int:
    """Return the maximum size of a file to read."""
    given = os.environ.get("MOMENTSEEK_MAX_BYTES", str(MAX_BYTES))
    if not (given.isascii() and given.isdigit() and len(given) < 20 and int(given)):
        raise MomentseekError(f"MOMENTSEEK_MAX_BYTES is {given!r}; set it to a whole number of bytes, or not at all")
    return int(given)


def is_bomb(size: int, stored: int) -> bool:
    """Whether ``stored`` bytes that expand to ``size`` are a decompression bomb.

    >>> is_bomb(4_500_000_000, 4_500_000), is_bomb(4_500_000_000, 1_000_000_000)
    (True, False)
    """
    return size > MIN_BOMB_BYTES and size > MAX_EXPANSION * stored


def check_size(what: str, size: int, stored: int) -> None:
    """Refuse to read an array of ``size`` bytes, of which ``stored`` are in its file; ``what`` begins the sentence."""
    if size > max_bytes():
        raise MomentseekError(
            f"{what} takes {size:,} bytes, more than {max_bytes():,}; set MOMENTSEEK_MAX_BYTES to read it all the same"
        )
    if is_bomb(size, stored):
        raise MomentseekError(
            f"{what} expands from {stored:,} to {size:,} bytes, as a decompression bomb does; write it without "
            "compression if you trust it"
        )
