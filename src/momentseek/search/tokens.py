"""The query language, character by character: from a line of text to tokens with their places.

Only what cannot be ordinary writing is syntax. ``5:30``, ``16:9`` and ``https://…`` are words, because a weight needs a
letter or a quotation mark after its colon; ``well-known`` and ``-5`` are words, because a minus counts only before a
word; and a backslash makes whatever follows it ordinary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from momentseek.errors import MomentseekError

KEYS = ("said", "in", "name", "before", "after")
QUOTES = '"“”„'
"""Keyboards of phones and word processors write the curly ones."""
_KEY = re.compile(rf"({'|'.join(KEYS)}):", re.IGNORECASE)
_WEIGHT = re.compile(rf"([0-9]{{1,2}}(?:\.[0-9]{{1,4}})?):(?=[^\W\d_]|[{QUOTES}\\])")
_NUMBER = re.compile(r"-\d+([.,]\d+)?(?=\s|$)")


class QueryError(MomentseekError):
    """A query that cannot be understood, and the place where it stops making sense."""

    def __init__(self, query: str, at: int, what: str, remedy: str) -> None:
        super().__init__(f"in the query, {what} at character {at + 1}: {_pointed(query, at)}; {remedy}")
        self.at = at
        """Counted from 0."""


@dataclass(frozen=True)
class Token:
    """One unit of a query: ``-2:"two words"`` is ``minus``, a ``weight`` and a ``quoted`` value."""

    at: int
    value: str
    key: str | None = None
    weight: float | None = None
    minus: bool = False
    quoted: bool = False

    @property
    def plain(self) -> bool:
        """Whether it is just a word."""
        return self.key is None and self.weight is None and not self.minus and not self.quoted


def tokens(query: str) -> Iterator[Token]:
    r"""The tokens of a query.

    >>> [(t.value, t.weight) for t in tokens("2:dog at 5:30")]
    [('dog', 2.0), ('at', None), ('5:30', None)]
    >>> [(t.key, t.value, t.minus) for t in tokens(r'said:"good boy" -cat \-5')]
    [('said', 'good boy', False), (None, 'cat', True), (None, '-5', False)]
    """
    at = 0
    while True:
        while at < len(query) and query[at].isspace():
            at += 1
        if at == len(query):
            return
        token, at = _token(query, at)
        yield token


def _token(query: str, start: int) -> tuple[Token, int]:
    at = start
    following = query[start + 1 : start + 2]
    minus = query[start] == "-" and following not in ("", "-") and not following.isspace()
    if minus and _NUMBER.match(query, start):
        minus = False
    at += minus
    key = weight = None
    if found := _KEY.match(query, at):
        key = found[1].lower()
        at = found.end()
    elif found := _WEIGHT.match(query, at):
        weight = float(found[1])
        at = found.end()
    if at < len(query) and query[at] in QUOTES:
        value, end = _quoted(query, at)
        return Token(start, value, key, weight, minus, quoted=True), end
    value, end = _word(query, at)
    if key and not value:
        raise QueryError(
            query, start, f"{key}: with nothing after it", f"write {key}:SOMETHING, or {key}\\: for the word"
        )
    return Token(start, value, key, weight, minus), end


def _word(query: str, at: int) -> tuple[str, int]:
    out = []
    while at < len(query) and not query[at].isspace():
        at += query[at] == "\\" and at + 1 < len(query)
        out.append(query[at])
        at += 1
    return "".join(out), at


def _quoted(query: str, start: int) -> tuple[str, int]:
    out = []
    at = start + 1
    while at < len(query) and query[at] not in QUOTES:
        at += query[at] == "\\" and at + 1 < len(query)
        out.append(query[at])
        at += 1
    if at >= len(query):
        raise QueryError(
            query, start, "a quotation mark without its partner", 'close it, or write \\" for the mark itself'
        )
    value = " ".join("".join(out).split())
    if not value:
        raise QueryError(query, start, "nothing between two quotation marks", "put words there, or take the marks away")
    return value, at + 1


def escaped(word: str) -> str:
    r"""A word as it must be written to mean just itself.

    >>> [escaped(w) for w in ("dog", "said:x", "2:dog", "-cat", '5"', "5:30")]
    ['dog', 'said\\:x', '2\\:dog', '\\-cat', '5\\"', '5:30']
    """
    text = _marked(word)
    if text.startswith("-") and len(text) > 1 and not text.startswith("--") and not _NUMBER.match(text):
        text = "\\" + text
    if _KEY.match(text) or _WEIGHT.match(text):
        text = text.replace(":", "\\:", 1)
    return text


def quoted(words: str) -> str:
    r"""Words held together.

    >>> print(quoted('a 5" nail'))
    "a 5\" nail"
    """
    return f'"{_marked(words)}"'


def _marked(text: str) -> str:
    return re.sub(rf"([\\{QUOTES}])", r"\\\1", text)


def _pointed(query: str, at: int, room: int = 24) -> str:
    """The query about a place, ready to be shown in one line."""
    before, after = query[max(0, at - room) : at], query[at : at + room]
    left = "…" if at > room else ""
    right = "…" if at + room < len(query) else ""
    return " ".join(f"{left}{before}»{after}«{right}".split())
