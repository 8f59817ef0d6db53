"""Where in a text the words of a query stand."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.library.words import WordMatcher
from momentseek.search.hit import Hit
from momentseek.search.query import Query
from momentseek.search.snippets import sought
from momentseek.server.answers import SaidOut, text

ON, OFF = "\x02", "\x03"


def said(hits: Sequence[Hit], query: Query) -> list[list[SaidOut]]:
    """What is said in each hit, with the query's words marked; one small index for all of them."""
    cues = [cue for hit in hits for cue in hit.said]
    places = iter(marks([cue.text for cue in cues], sought(query)))
    return [
        [SaidOut(start=c.start, end=c.end, text=_plain(c.text), marks=next(places)) for c in hit.said] for hit in hits
    ]


def marks(texts: Sequence[str], terms: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Character ranges ``[first, end)`` of the words found in each text.

    >>> marks(["Dogs were running.", "No cats"], ["run", "dog"])
    [[(0, 4), (10, 17)], []]
    """
    if not texts or not terms:
        return [[] for _ in texts]
    return [_ranges(marked) for marked in WordMatcher([_plain(one) for one in texts]).mark(list(terms), ON, OFF)]


def _ranges(marked: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = start = 0
    for c in marked:
        if c == ON:
            start = at
        elif c == OFF:
            found.append((start, at))
        else:
            at += 1
    return found


def _plain(one: str) -> str:
    """Without the characters that mark; of the same length."""
    return text(one).replace(ON, " ").replace(OFF, " ")
