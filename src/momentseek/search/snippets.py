"""What was said in a hit, in one line, with the words that were found marked."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from momentseek.library.words import WordMatcher, content_words, words
from momentseek.search.hit import Hit
from momentseek.search.query import Query
from momentseek.tables import width

ON, OFF = "\u2061", "\u2062"
"""Marks around a word found: invisible and of no width, so that tables stay aligned till they turn bold."""
JOINERS = "\u200c\u200d"


def sought(query: Query) -> list[str]:
    """The words a query looks for in what is said.

    >>> sought(Query.parse('a dog "sit down" said:good'))
    ['good', 'sit', 'down']
    """
    spoken = [] if query.phrases and not query.said else content_words(query.speech_text)
    return list(dict.fromkeys([*spoken, *(word for text in query.phrases for word in words(text))]))


def snippets(hits: Sequence[Hit], query: Query, room: int) -> list[str]:
    """For each hit the cue with most of the query's words, cut to ``room`` columns about the first of them."""
    cues = [(at, tidy(cue.text)) for at, hit in enumerate(hits) for cue in hit.said]
    out = [""] * len(hits)
    most = [-1] * len(hits)
    if not cues:
        return out
    for (at, _), text in zip(cues, WordMatcher([t for _, t in cues]).mark(sought(query), ON, OFF), strict=True):
        found = text.count(ON)
        if found > most[at]:
            most[at], out[at] = found, shortened(text, room)
    return out


def shortened(text: str, room: int) -> str:
    """A marked text cut to ``room`` columns, its first mark kept in sight.

    >>> shortened("what a very good dog", 10)
    'what a ve…'
    >>> shortened(f"what a very good {ON}dog{OFF}", 11).replace(ON, "[").replace(OFF, "]")
    '…y good [dog]'
    """
    letters: list[tuple[str, bool]] = []
    bold = False
    for c in text:
        if c in (ON, OFF):
            bold = c == ON
        else:
            letters.append((c, bold))
    plain = "".join(c for c, _ in letters)
    if width(plain) <= room:
        return text
    first = next((i for i, (_, b) in enumerate(letters) if b), 0)
    last = next((i for i in range(first, len(letters)) if not letters[i][1]), len(letters))
    start = 0
    if width(plain[:last]) + 1 > room:
        start = last
        while start > 0 and width(plain[start - 1 : last]) + 1 + (last < len(plain)) <= room:
            start -= 1
        start = min(start, first)
    end = len(plain)
    while end > start and (start > 0) + width(plain[start:end]) + (end < len(plain)) > room:
        end -= 1
    out = "…" * (start > 0)
    bold = False
    for c, b in letters[start:end]:
        out += (ON if b else OFF) * (b != bold) + c
        bold = b
    return out + OFF * bold + "…" * (end < len(plain))


def tidy(text: str) -> str:
    r"""One line without characters that could command a terminal.

    >>> tidy("a\n\x1b[31mred  \u202eword")
    'a [31mred word'
    """
    kept = (c if c in JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co") else " " for c in text)
    return " ".join("".join(kept).split())
