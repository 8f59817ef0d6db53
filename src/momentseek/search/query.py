"""The query language: parses one line of text into a query. docs/searching.md describes it in a table.

Parsing does not depend on a library, and the same text always means the same (an age such as ``after:7d`` becomes a
time only when the search runs).

Only what cannot be ordinary text is syntax. ``5:30``, ``16:9`` and ``https://…`` are words, because a weight needs a
letter or a quotation mark after its colon; ``well-known`` and ``-5`` are words, because a minus only counts before a
word. A backslash makes the next character ordinary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.library.words import words

_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?")
_AGE = re.compile(r"([0-9]{1,5})([hdwmy])", re.IGNORECASE)
AGE_UNITS = {"h": timedelta(hours=1), "d": timedelta(1), "w": timedelta(7), "m": timedelta(30), "y": timedelta(365)}
DATE_ADVICE = "write 2024, 2024-05 or 2024-05-31, or an age: 12h, 7d, 2w, 6m, 1y"


def date_interval(value: str, now: float = 0.0) -> tuple[float, float]:
    """First and last (exclusive) instant of a date in local time, in seconds since 1970; an age is one instant.

    >>> day = date_interval("2024-02-29")
    >>> round((day[1] - day[0]) / 3600)
    24
    >>> date_interval("7d", now=1e9)
    (999395200.0, 999395200.0)
    """
    if age := _AGE.fullmatch(value):
        instant = now - int(age[1]) * AGE_UNITS[age[2].lower()].total_seconds()
        return instant, instant
    date = _DATE.fullmatch(value)
    if not date or not 1971 <= int(date[1]) <= 9000:  # before that, some systems have no timestamp for local midnight
        raise ValueError(value)
    year, month, day = int(date[1]), int(date[2] or 1), int(date[3] or 1)
    first = datetime(year, month, day)
    if date[3]:
        last = first + timedelta(1)
    elif date[2]:
        last = datetime(year + month // 12, month % 12 + 1, 1)
    else:
        last = datetime(year + 1, 1, 1)
    return first.timestamp(), last.timestamp()


def time_period(after: str | None, before: str | None, now: float) -> tuple[float | None, float | None]:
    """First and last instant that ``after:`` and ``before:`` allow, in seconds since 1970.

    ``after:`` a year begins with the next year; ``before:`` a month ends before its first day.

    >>> since, until = time_period("2023-12-31", "2024", now=0.0)
    >>> since == until
    True
    >>> time_period("1d", None, now=100_000.0)
    (13600.0, None)
    """
    return (
        date_interval(after, now)[1] if after is not None else None,
        date_interval(before, now)[0] if before is not None else None,
    )


MAX_CHARACTERS = 2000
"""Longest query; anything longer is a pasted page, and encoders read only its beginning."""
MAX_SPECIAL_PARTS = 32
"""Largest number of weights, phrases, ``said:`` and so on in one query."""


class QueryError(MomentseekError):
    """A query that cannot be parsed, and the position of the error."""

    def __init__(self, query: str, at: int, what: str, remedy: str) -> None:
        super().__init__(f"in the query, {what} at character {at + 1}: {_point_at(query, at)}; {remedy}")
        self.at = at
        """Position of the character, counted from 0."""


@dataclass(frozen=True)
class Part:
    """Words of a query with a weight, as in ``2:dog``."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True)
class Query:
    """A query: what to find, what to avoid, and where to look.

    >>> query = Query.parse('a dog runs -leash "good boy" in:holiday*')
    >>> query.text, query.avoid, query.phrases, query.within
    ('a dog runs', (Part(text='leash', weight=1.0),), ('good boy',), ('holiday*',))
    >>> str(Query.parse("in:x*   0.50:park dog"))
    'dog 0.5:park in:x*'
    """

    text: str = ""
    """The plain words, in their order."""
    parts: tuple[Part, ...] = ()
    """Weighted words, searched together with the text."""
    avoid: tuple[Part, ...] = ()
    """Words for what the picture should not show."""
    phrases: tuple[str, ...] = ()
    """Phrases that must be said in the moment, word for word."""
    said: tuple[str, ...] = ()
    """Words that should be said; the more of them the better."""
    unsaid: tuple[str, ...] = ()
    """Phrases that must not be said in the moment."""
    written: tuple[str, ...] = ()
    """Words that should be on screen; the more of them the better."""
    unwritten: tuple[str, ...] = ()
    """Words that must not be on screen."""
    described: tuple[str, ...] = ()
    """Words that should be in a model's description; the more of them the better."""
    undescribed: tuple[str, ...] = ()
    """Words that must not be in a model's description."""
    names: tuple[str, ...] = ()
    """Words that should be in the file's name."""
    within: tuple[str, ...] = ()
    """Globs, one of which the video's name must match."""
    outside: tuple[str, ...] = ()
    """Globs, none of which the video's name may match."""
    after: str | None = None
    """A date or an age: only newer videos count."""
    before: str | None = None
    """A date or an age: only older videos count."""

    @classmethod
    def parse(cls, text: str) -> Query:
        """Parse a query; raises a ``QueryError`` with the position if it is not valid."""
        if len(text) > MAX_CHARACTERS:
            raise QueryError(text, MAX_CHARACTERS, f"more than {MAX_CHARACTERS:,} characters", "say it in fewer words")
        source = text.replace("\0", " ").encode("utf-8", "replace").decode()  # no index can hold the rest
        reader = _QueryReader(source)
        for token in read_tokens(source):
            reader.add(token)
        return reader.query()

    @property
    def picture_parts(self) -> tuple[Part, ...]:
        """The parts that the picture should show: the plain words and the weighted ones."""
        return ((Part(self.text),) if self.text else ()) + self.parts

    def _words(self, asked: tuple[str, ...]) -> str:
        """The words to look for in one kind of text: those of its own key, or else all plain and weighted words."""
        return " ".join(asked) or " ".join(part.text for part in self.picture_parts)

    @property
    def speech_text(self) -> str:
        """The words to look for in what is said."""
        return self._words(self.said)

    @property
    def written_text(self) -> str:
        """The words to look for on screen."""
        return self._words(self.written)

    @property
    def described_text(self) -> str:
        """The words to look for in descriptions."""
        return self._words(self.described)

    @property
    def name_text(self) -> str:
        """The words to look for in file names."""
        return self._words(self.names)

    def __bool__(self) -> bool:
        """Whether the query looks for anything; filters and things to avoid alone do not count."""
        return bool(self.picture_parts or self.phrases or self.said or self.written or self.described or self.names)

    def check(self) -> None:
        """Refuse a query that looks for nothing, and say what is missing."""
        if self:
            return
        if self.avoid or self.unsaid or self.unwritten or self.undescribed:
            raise MomentseekError("the query only says what to avoid; add what to look for")
        if self.within or self.outside or self.after or self.before:
            raise MomentseekError(
                "the query only says where to look; add what to look for (momentseek list shows the videos)"
            )
        raise MomentseekError("the query is empty; say what to look for, such as: a dog runs on the beach")

    def __str__(self) -> str:
        """The query in canonical form; parsing it gives an equal query."""

        def keyed_texts(*keys: str, minus: str = "") -> list[str]:
            fields = [(key, getattr(self, FIELDS[key][bool(minus)])) for key in keys]
            return [f"{minus}{key}:{_value_text(value)}" for key, values in fields for value in values]

        out = [escape_word(word) for word in self.text.split()]
        out += [_weighted_text(part) for part in self.parts]
        out += [quote_words(phrase) for phrase in self.phrases]
        out += keyed_texts("said", "text", "described")
        out += [f"-{p.text if p.weight == 1 and _WORD.fullmatch(p.text) else _weighted_text(p)}" for p in self.avoid]
        out += [
            *keyed_texts("said", "text", "described", minus="-"),
            *keyed_texts("name", "in"),
            *keyed_texts("in", minus="-"),
        ]
        out += [f"after:{self.after}"] * (self.after is not None)
        out += [f"before:{self.before}"] * (self.before is not None)
        return " ".join(out)


# from text to tokens

FIELDS = {
    "said": ("said", "unsaid"), "text": ("written", "unwritten"), "described": ("described", "undescribed"),
    "in": ("within", "outside"), "name": ("names", ""), "before": ("before", ""), "after": ("after", ""),
}  # fmt: skip
"""Keys of the language, each with the field of a query that it sets, and the one that it sets after a minus."""
QUOTATION_MARKS = '"“”„'
"""Includes the curly ones that phones and word processors write."""
_KEY = re.compile(rf"({'|'.join(FIELDS)}):", re.IGNORECASE)
_WEIGHT = re.compile(rf"([0-9]{{1,2}}(?:\.[0-9]{{1,4}})?):(?=[^\W\d_]|[{QUOTATION_MARKS}\\])")
_NUMBER = re.compile(r"-\d+([.,]\d+)?(?=\s|$)")


@dataclass(frozen=True)
class SyntaxToken:
    """One unit of a query: ``-2:"two words"`` is ``minus``, a ``weight`` and a ``quoted`` value."""

    at: int
    value: str
    key: str | None = None
    weight: float | None = None
    minus: bool = False
    quoted: bool = False


def read_tokens(query: str) -> Iterator[SyntaxToken]:
    r"""Split a query into tokens.

    >>> [(t.value, t.weight) for t in read_tokens("2:dog at 5:30")]
    [('dog', 2.0), ('at', None), ('5:30', None)]
    >>> [(t.key, t.value, t.minus) for t in read_tokens(r'said:"good boy" -cat \-5')]
    [('said', 'good boy', False), (None, 'cat', True), (None, '-5', False)]
    """
    at = 0
    while True:
        while at < len(query) and query[at].isspace():
            at += 1
        if at == len(query):
            return
        token, at = _read_token(query, at)
        yield token


def _read_token(query: str, start: int) -> tuple[SyntaxToken, int]:
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
    if at < len(query) and query[at] in QUOTATION_MARKS:
        value, end = _read_quoted(query, at)
        return SyntaxToken(start, value, key, weight, minus, quoted=True), end
    value, end = _read_word(query, at)
    if key and not value:
        raise QueryError(
            query, start, f"{key}: with nothing after it", f"write {key}:SOMETHING, or {key}\\: for the word"
        )
    if (minus or weight is not None) and not value:
        raise QueryError(query, start, "a minus or a weight before a space", "write a word after it")
    return SyntaxToken(start, value, key, weight, minus), end


def _read_word(query: str, at: int) -> tuple[str, int]:
    out = []
    while at < len(query) and not query[at].isspace():
        at += query[at] == "\\" and at + 1 < len(query)
        out.append(query[at])
        at += 1
    return " ".join("".join(out).split()), at  # escaped spaces only count inside a word


def _read_quoted(query: str, start: int) -> tuple[str, int]:
    out = []
    at = start + 1
    while at < len(query) and query[at] not in QUOTATION_MARKS:
        at += query[at] == "\\" and at + 1 < len(query)
        out.append(query[at])
        at += 1
    if at >= len(query):
        raise QueryError(
            query, start, "a quotation mark without its partner", 'close it, or write \\" for the mark itself'
        )
    value = " ".join("".join(out).split())
    if not value:
        raise QueryError(query, start, "nothing between two quotation marks", "put words there, or remove the marks")
    return value, at + 1


# from tokens to a query


class _QueryReader:
    """Sorts tokens into the fields of a query."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.words: list[str] = []
        self.lists: dict[str, list[Any]] = {}
        self.dates: dict[str, str] = {}

    def add(self, token: SyntaxToken) -> None:
        if token.key in ("before", "after"):
            self._add_date(token)
        elif token.key:
            self._add_keyed(token)
        elif token.weight is not None:
            self._add_weighted(token)
        elif token.minus:
            self._append("avoid", token, Part(token.value))
            if token.quoted:
                self._append("unsaid", token, self._words_of(token))
        elif token.quoted:
            self._append("phrases", token, self._words_of(token))
        else:
            self.words.append(token.value)

    def query(self) -> Query:
        fields: dict[str, Any] = {name: tuple(values) for name, values in self.lists.items()} | self.dates
        return Query(text=" ".join(" ".join(self.words).split()), **fields)  # a word may be an escaped space

    def _append(self, field: str, token: SyntaxToken, value: object) -> None:
        values = self.lists.setdefault(field, [])
        if value not in values:
            values.append(value)
        if sum(map(len, self.lists.values())) > MAX_SPECIAL_PARTS:
            raise QueryError(
                self.source, token.at, f"more than {MAX_SPECIAL_PARTS} special parts", "ask for less at once"
            )

    def _add_keyed(self, token: SyntaxToken) -> None:
        field = FIELDS[str(token.key)][token.minus]
        if not field:
            raise QueryError(self.source, token.at, f"-{token.key}:", "leave videos out with -in:GLOB")
        self._append(field, token, token.value if token.key == "in" else self._words_of(token))

    def _add_weighted(self, token: SyntaxToken) -> None:
        assert token.weight is not None
        if not token.weight:
            raise QueryError(self.source, token.at, "a weight of 0", f"leave it out, or avoid it: -{token.value}")
        self._append("avoid" if token.minus else "parts", token, Part(token.value, token.weight))

    def _words_of(self, token: SyntaxToken) -> str:
        if not words(token.value):
            raise QueryError(self.source, token.at, "no word to look for", "write letters or digits there")
        return token.value

    def _add_date(self, token: SyntaxToken) -> None:
        key = str(token.key)
        if token.minus:
            other = "before" if key == "after" else "after"
            raise QueryError(self.source, token.at, f"-{key}:", f"write {other}: instead")
        if key in self.dates:
            raise QueryError(self.source, token.at, f"a second {key}:", "give one of each")
        try:
            date_interval(token.value)
        except ValueError:
            raise QueryError(self.source, token.at, f"{key}: without a date", DATE_ADVICE) from None
        self.dates[key] = token.value


# from a query to text

_WORD = re.compile(r"[^\W\d_]\w*")
_BARE = re.compile(r"[\w*?/.!\[\]-]+")


def _weighted_text(part: Part) -> str:
    number = f"{part.weight:.4f}".rstrip("0").rstrip(".")
    return f"{number}:{part.text if _WORD.fullmatch(part.text) else quote_words(part.text)}"


def _value_text(text: str) -> str:
    return text if _BARE.fullmatch(text) else quote_words(text)


def escape_word(word: str) -> str:
    r"""Escape a word so that it is not parsed as syntax.

    >>> [escape_word(w) for w in ("dog", "said:x", "2:dog", "-cat", '5"', "5:30")]
    ['dog', 'said\\:x', '2\\:dog', '\\-cat', '5\\"', '5:30']
    """
    text = _escape_marks(word)
    if text.startswith("-") and len(text) > 1 and not text.startswith("--") and not _NUMBER.match(text):
        text = "\\" + text
    if _KEY.match(text) or _WEIGHT.match(text):
        text = text.replace(":", "\\:", 1)
    return text


def quote_words(words: str) -> str:
    r"""Put words in quotation marks.

    >>> print(quote_words('a 5" nail'))
    "a 5\" nail"
    """
    return f'"{_escape_marks(words)}"'


def _escape_marks(text: str) -> str:
    return re.sub(rf"([\\{QUOTATION_MARKS}])", r"\\\1", text)


def _point_at(query: str, at: int, room: int = 24) -> str:
    """The part of a query around a position, in one line for a message."""
    before, after = query[max(0, at - room) : at], query[at : at + room]
    left = "…" if at > room else ""
    right = "…" if at + room < len(query) else ""
    return " ".join(f"{left}{before}»{after}«{right}".split())
