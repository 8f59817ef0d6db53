"""Paths as file: URLs and back, whatever characters they have."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes, urlsplit

from momentseek.errors import MomentseekError


def url_of(path: Path) -> str:
    r"""The file: URL of a path, every byte outside a plain set percent-encoded.

    >>> url_of(Path("/films/a b\n🎬.mp4"))
    'file:///films/a%20b%0A%F0%9F%8E%AC.mp4'
    """
    return "file://" + quote(os.fsencode(Path(os.path.abspath(path)).as_posix()), safe="/:" if os.name == "nt" else "/")


def path_of(url: str) -> Path:
    r"""The path of a file: URL.

    >>> path_of("file:///films/a%20b%0A.mp4")
    PosixPath('/films/a b\n.mp4')
    """
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        raise MomentseekError(f"{url!r} is no file: address; check the list") from None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise MomentseekError(f"{url!r} is no file: address of this computer; check the list")
    return Path(os.fsdecode(unquote_to_bytes(parts.path)))
