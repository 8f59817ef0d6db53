"""Query: what is looked for, read from one line of text. docs/searching.md has the language as a table.

Reading is pure: it looks at no library, and the same text always means the same (an age such as ``after:7d`` becomes
a time only when the search runs).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from momentseek.library.words import words
from momentseek.search.dates import HOW, interval
from momentseek.search.tokens import QueryError, Token, escaped, quoted, tokens

LONGEST = 2000
"""Characters of a query; what is longer is a pasted page, and encoders read only its beginning."""
MOST_PARTS = 32


@dataclass(frozen=True)
class Part:
    """Words with a weight of their own."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True)
class Query:
    """What to find, what to avoid, and where to look.

    >>> query = Query.parse('a dog runs -leash "good boy" in:holiday*')
    >>> query.text, query.avoid, query.phrases, query.within
    ('a dog runs', (Part(text='leash', weight=1.0),), ('good boy',), ('holiday*',))
    >>> str(Query.parse("in:x*   0.50:park dog"))
    'dog 0.5:park in:x*'
    """

    text: str = ""
    """The plain words, in their order."""
    parts: tuple[Part, ...] = ()
    """Weighted words, looked for together with the text."""
    avoid: tuple[Part, ...] = ()
    """What the picture should not show."""
    phrases: tuple[str, ...] = ()
    """What must be said in the moment, word for word."""
    said: tuple[str, ...] = ()
    """What should be said; the more of it the better."""
    unsaid: tuple[str, ...] = ()
    """What must not be said in the moment."""
    names: tuple[str, ...] = ()
    """Words of the file's name."""
    within: tuple[str, ...] = ()
    """Globs, one of which the video's name must match."""
    outside: tuple[str, ...] = ()
    """Globs, none of which the video's name may match."""
    after: str | None = None
    before: str | None = None

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read a query; one that makes no sense is a :class:`QueryError` that points at the place."""
        if len(text) > LONGEST:
            raise QueryError(text, LONGEST, f"more than {LONGEST:,} characters", "say it in fewer words")
        source = text.replace("\0", " ").encode("utf-8", "replace").decode()  # what a file name can hold, no index can
        reader = _Reader(source)
        for token in tokens(source):
            reader.take(token)
        return reader.query()

    @property
    def seen(self) -> tuple[Part, ...]:
        """What the picture should show."""
        return ((Part(self.text),) if self.text else ()) + self.parts

    @property
    def spoken(self) -> str:
        """The words to look for in what is said: those of ``said:``, or else all that is looked for."""
        return " ".join(self.said) or " ".join(part.text for part in self.seen)

    @property
    def called(self) -> str:
        """The words to look for in file names: those of ``name:``, or else all that is looked for."""
        return " ".join(self.names) or " ".join(part.text for part in self.seen)

    def __bool__(self) -> bool:
        """Whether it looks for anything; filters and things to avoid alone do not."""
        return bool(self.seen or self.phrases or self.said or self.names)

    def __str__(self) -> str:
        """The query in its one canonical spelling; reading that gives an equal query."""
        out = [escaped(word) for word in self.text.split()]
        out += [_weighted(part) for part in self.parts]
        out += [quoted(phrase) for phrase in self.phrases]
        out += [f"said:{_value(words)}" for words in self.said]
        out += [f"-{p.text if p.weight == 1 and _WORD.fullmatch(p.text) else _weighted(p)}" for p in self.avoid]
        out += [f"-said:{_value(words)}" for words in self.unsaid]
        out += [f"name:{_value(words)}" for words in self.names]
        out += [f"in:{_value(glob)}" for glob in self.within]
        out += [f"-in:{_value(glob)}" for glob in self.outside]
        out += [f"after:{self.after}"] * (self.after is not None)
        out += [f"before:{self.before}"] * (self.before is not None)
        return " ".join(out)


_WORD = re.compile(r"[^\W\d_]\w*")
_BARE = re.compile(r"[\w*?/.!\[\]-]+")


def _weighted(part: Part) -> str:
    number = f"{part.weight:.4f}".rstrip("0").rstrip(".")
    return f"{number}:{part.text if _WORD.fullmatch(part.text) else quoted(part.text)}"


def _value(text: str) -> str:
    return text if _BARE.fullmatch(text) else quoted(text)


class _Reader:
    """Sorts tokens into the fields of a query."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.words: list[str] = []
        self.lists: dict[str, list[Any]] = {}
        self.dates: dict[str, str] = {}

    def take(self, token: Token) -> None:
        if token.key in ("before", "after"):
            self._date(token)
        elif token.key:
            self._keyed(token)
        elif token.weight is not None:
            self._weighted(token)
        elif token.minus:
            self._add("avoid", token, Part(token.value))
            if token.quoted:
                self._add("unsaid", token, self._spoken(token))
        elif token.quoted:
            self._add("phrases", token, self._spoken(token))
        else:
            self.words.append(token.value)

    def query(self) -> Query:
        fields: dict[str, Any] = {name: tuple(values) for name, values in self.lists.items()} | self.dates
        return Query(text=" ".join(self.words), **fields)

    def _add(self, field: str, token: Token, value: object) -> None:
        values = self.lists.setdefault(field, [])
        if value not in values:
            values.append(value)
        if sum(map(len, self.lists.values())) > MOST_PARTS:
            raise QueryError(self.source, token.at, f"more than {MOST_PARTS} special parts", "ask for less at once")

    def _keyed(self, token: Token) -> None:
        fields = {
            ("said", False): "said",
            ("said", True): "unsaid",
            ("in", False): "within",
            ("in", True): "outside",
            ("name", False): "names",
        }
        field = fields.get((str(token.key), token.minus))
        if field is None:
            raise QueryError(self.source, token.at, f"-{token.key}:", "leave videos out with -in:GLOB")
        self._add(field, token, token.value if token.key == "in" else self._spoken(token))

    def _weighted(self, token: Token) -> None:
        assert token.weight is not None
        if not token.weight:
            raise QueryError(self.source, token.at, "a weight of 0", f"leave it out, or avoid it: -{token.value}")
        self._add("avoid" if token.minus else "parts", token, Part(token.value, token.weight))

    def _spoken(self, token: Token) -> str:
        if not words(token.value):
            raise QueryError(self.source, token.at, "no word to look for", "write letters or digits there")
        return token.value

    def _date(self, token: Token) -> None:
        key = str(token.key)
        if token.minus:
            other = "before" if key == "after" else "after"
            raise QueryError(self.source, token.at, f"-{key}:", f"write {other}: instead")
        if key in self.dates:
            raise QueryError(self.source, token.at, f"a second {key}:", "give one of each")
        try:
            interval(token.value)
        except ValueError:
            raise QueryError(self.source, token.at, f"{key}: without a date", HOW) from None
        self.dates[key] = token.value
