"""Which bytes of a file a request asks for (RFC 9110, section 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,400})\s*-\s*(\d{0,400})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ByteRange:
    """The bytes ``first`` to ``last`` of a file, both included."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


class UnsatisfiableRangeError(Exception):
    """A well-formed range that holds no byte of the file."""


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """The range of bytes that a ``Range`` header asks for; None means the whole file.

    Without a header, with one that cannot be parsed, or with several ranges at once, the whole file is sent.

    >>> parse_range("bytes=0-99", 1000), parse_range("bytes=-10", 1000), parse_range("bytes=990-", 1000)
    (ByteRange(first=0, last=99), ByteRange(first=990, last=999), ByteRange(first=990, last=999))
    >>> parse_range("bytes=5-2", 1000), parse_range("bytes=0-1,5-6", 1000), parse_range("lines=1-2", 1000)
    (None, None, None)
    >>> parse_range("bytes=1000-", 1000)
    Traceback (most recent call last):
        ...
    momentseek.server.ranges.UnsatisfiableRangeError
    """
    match = _RANGE.fullmatch(header) if header is not None else None
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        length = min(int(match[2]), size)
        if length == 0:
            raise UnsatisfiableRangeError
        return ByteRange(size - length, size - 1)
    first = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    if first >= size:
        raise UnsatisfiableRangeError
    return ByteRange(first, min(last, size - 1))


def if_range_matches(if_range: str | None, etag: str, modified: str) -> bool:
    """Whether ``If-Range`` names the present version of the file, so that a range fits what the client has.

    >>> if_range_matches('"a"', '"a"', "…"), if_range_matches('W/"a"', '"a"', "…"), if_range_matches(None, '"a"', "…")
    (True, False, True)
    """
    return if_range is None or if_range.strip() in (etag, modified)


def etag_matches(if_none_match: str | None, etag: str) -> bool:
    """Whether ``If-None-Match`` names the present version, so that the client's copy is still good.

    >>> etag_matches('W/"x", "a"', '"a"'), etag_matches("*", '"a"'), etag_matches(None, '"a"')
    (True, True, False)
    """
    if if_none_match is None:
        return False
    given = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return "*" in given or etag in given
