"""Which bytes of a file a request asks for (RFC 9110, section 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,400})\s*-\s*(\d{0,400})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Span:
    """Bytes ``first`` to ``last``, both included."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


class Unsatisfiable(Exception):
    """A range that is well formed and holds no byte of the file."""


def parse(header: str | None, size: int) -> Span | None:
    """The part asked for; None means the whole: no range, one that cannot be read, or several at once.

    >>> parse("bytes=0-99", 1000), parse("bytes=-10", 1000), parse("bytes=990-", 1000)
    (Span(first=0, last=99), Span(first=990, last=999), Span(first=990, last=999))
    >>> parse("bytes=5-2", 1000), parse("bytes=0-1,5-6", 1000), parse("lines=1-2", 1000)
    (None, None, None)
    >>> parse("bytes=1000-", 1000)
    Traceback (most recent call last):
        ...
    momentseek.server.ranges.Unsatisfiable
    """
    match = _RANGE.fullmatch(header) if header is not None else None
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        length = min(int(match[2]), size)
        if length == 0:
            raise Unsatisfiable
        return Span(size - length, size - 1)
    first = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    if first >= size:
        raise Unsatisfiable
    return Span(first, min(last, size - 1))


def still_valid(if_range: str | None, etag: str, modified: str) -> bool:
    """Whether a client's earlier part is of the same file, so that another part fits it; else it gets the whole.

    >>> still_valid('"a"', '"a"', "…"), still_valid('W/"a"', '"a"', "…"), still_valid(None, '"a"', "…")
    (True, False, True)
    """
    return if_range is None or if_range.strip() in (etag, modified)


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether a client's copy is the one we have.

    >>> matches('W/"x", "a"', '"a"'), matches("*", '"a"'), matches(None, '"a"')
    (True, True, False)
    """
    if if_none_match is None:
        return False
    given = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return "*" in given or etag in given
