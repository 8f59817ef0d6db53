"""From cues as written to cues worth searching: tidied, then joined into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from momentseek.media.cue import Cue
from momentseek.media.subtitles import markup
from momentseek.media.subtitles.rolling import unrolled

LONGEST_SECONDS = 10.0
LONGEST_CHARACTERS = 200
"""A joined cue stays within both, so that it still says *when*; one cue that is longer by itself is left whole."""
LONGEST_TEXT = 10_000
"""Characters of one cue that are looked at; no player could show more."""
PAUSE = 1.0
"""Seconds of silence that end a sentence, whatever its last character."""
_CLOSED = re.compile(r"""[.!?…。!?।؟♪)\]:;»”"][»”"'’)\]♪]?$""")
_CONTINUES = re.compile(r"""(?:\.\.\.|…|,|-|–|—)$""")


def tidy(cues: Iterable[Cue]) -> list[Cue]:
    """Plain text, in order of time, each line once, every end after its start, nothing empty.

    The cues are those of one file, so of one language. Times before the video are cut off at 0. A cue without a usable
    end lasts as long as reading it takes, at most to the next one.

    >>> tidy([Cue(5, 4, "<b>Two</b>"), Cue(-1, 2, "One"), Cue(3, 4, "♪"), Cue(-2, -1, "Zero")])
    [Cue(start=0.0, end=2, text='One', language=None), Cue(start=5, end=6.0, text='Two', language=None)]
    """
    cues = list(cues)
    language = cues[0].language if cues else None
    written = sorted((cue for cue in cues if cue.end > 0 or cue.start >= 0), key=lambda cue: (cue.start, cue.end))
    shown = [(max(cue.start, 0.0), cue.end, markup.lines(cue.text[:LONGEST_TEXT])) for cue in written]
    ended = _ended([(start, end, lines) for start, end, lines in shown if lines])
    found = [replace(cue, language=language) for cue in unrolled(_once(ended)) if cue.end > cue.start]
    return sorted(found, key=lambda cue: (cue.start, cue.end))


def joined(cues: Sequence[Cue]) -> list[Cue]:
    """Fragments of one sentence put together, from the first one's start to the last one's end.

    Subtitles break a sentence where the screen is full; a search for its meaning needs it whole. Two cues are joined
    while the first does not close a sentence, the pause between them is short, no new speaker begins, and the whole
    stays within 10 seconds and 200 characters.

    >>> [cue.text for cue in joined([Cue(0, 2, "I put the keys"), Cue(2, 4, "on the table."), Cue(4, 5, "Why?")])]
    ['I put the keys on the table.', 'Why?']
    """
    found: list[Cue] = []
    for cue in cues:
        if found and _belong(found[-1], cue):
            last = found[-1]
            found[-1] = replace(last, end=max(last.end, cue.end), text=f"{last.text} {cue.text}")
        else:
            found.append(cue)
    return found


def _belong(last: Cue, cue: Cue) -> bool:
    closed = _CLOSED.search(last.text) is not None and _CONTINUES.search(last.text) is None
    return (
        not closed
        and last.language == cue.language
        and cue.start - last.end <= PAUSE
        and max(last.end, cue.end) - last.start <= LONGEST_SECONDS
        and len(last.text) + 1 + len(cue.text) <= LONGEST_CHARACTERS
        and not cue.text.startswith(("- ", "– ", "— ", "[", "(", "♪", ">>"))
    )


Lines = tuple[float, float, list[str]]


def _ended(cues: list[Lines]) -> list[Lines]:
    found = []
    for place, (start, end, lines) in enumerate(cues):
        if end <= start:
            end = start + min(max(sum(map(len, lines)) / 15, 1.0), 6.0)
            following = next((later for later, _, _ in cues[place + 1 : place + 9] if later > start), end)
            end = min(end, following)
        found.append((start, end, lines))
    return found


def _once(cues: list[Lines]) -> list[Lines]:
    """The same lines at the same time once: scripts layer a text for its shadow, players show two tracks."""
    found: list[Lines] = []
    place: dict[tuple[str, ...], int] = {}
    for start, end, lines in cues:
        key = tuple(lines)
        before = place.get(key)
        if before is not None and start < found[before][1]:
            found[before] = (found[before][0], max(found[before][1], end), lines)
        else:
            place[key] = len(found)
            found.append((start, end, lines))
    return found
