"""Cues (timed text) and their time stamps; tidy cues, and join them into sentences.

Scrolling captions repeat themselves: each cue shows the last line again, or the same line with another word. YouTube's
automatic captions do the first (and show every finished line once more for 10 ms), live television does the second.
Unchanged, every sentence would appear two or three times, with wrong times; ``unroll`` keeps each line once.
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


class SpokenWord(NamedTuple):
    """A word and its time in seconds of the video; ``text`` includes the space before it, if there is one."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Cue:
    """Timed text: words spoken, shown or describing a video from ``start`` to ``end``, in seconds.

    The other fields depend on the source: speech has ``words``, text on screen a ``frame`` and a ``box``, a sound a
    ``score``.

    >>> Cue(1.0, 2.5, "Anybody home?").text
    'Anybody home?'
    """

    start: float
    end: float
    text: str
    language: str | None = None
    frame: float | None = None
    """Time of the frame that shows it best; None if no frame does."""
    score: float | None = None
    """Confidence of the model, 0 to 1."""
    box: tuple[float, float, float, float] | None = None
    """Box in the frame: left, top, width and height as fractions of the frame."""
    words: tuple[SpokenWord, ...] = ()
    by: str = ""
    """The model that made it; empty for subtitles."""

    @property
    def at(self) -> float:
        """Time of the frame to show, in seconds."""
        return (self.start + self.end) / 2 if self.frame is None else self.frame


MAX_TOUCHING_SECONDS = 0.25
"""Longest pause between two cues that still count as one display."""
MAX_LINE_CHARACTERS = 400
"""Maximum length of a line that grows word by word."""


def unroll(cues: Iterable[tuple[float, float, list[str]]]) -> list[Cue]:
    """Keep each line once, from its first appearance; ``cues`` are ``(start, end, lines)`` sorted by start.

    >>> rolled = [(0, 2, ["hello everyone"]), (2, 4, ["hello everyone", "welcome back"]), (4, 6, ["welcome back"])]
    >>> [(cue.start, cue.end, cue.text) for cue in unroll(rolled)]
    [(0, 2, 'hello everyone'), (2, 6, 'welcome back')]
    >>> [cue.text for cue in unroll([(0, 1, ["so"]), (1, 2, ["so we"]), (2, 3, ["so we went"])])]
    ['so we went']
    """
    found: list[Cue] = []
    before: list[str] = []
    until = float("-inf")
    for start, end, lines in cues:
        touches = bool(found) and start <= until + MAX_TOUCHING_SECONDS
        seen, grown = _match_repeated(before, lines) if touches else (0, "")
        if seen:
            last = found[-1]
            text = last.text
            if grown and len(text) + len(grown) <= MAX_LINE_CHARACTERS:
                text, grown = text + grown, ""
            fresh = [*filter(None, [grown.strip()]), *lines[seen:]]
            until_then = max(last.end, end) if not fresh else max(min(last.end, start), last.start)
            found[-1] = Cue(last.start, until_then, text)
        else:
            fresh = lines
        if fresh:
            found.append(Cue(start, end, " ".join(fresh)))
        before = lines
        until = max(until, end) if touches else end
    return found


def _match_repeated(before: list[str], lines: list[str]) -> tuple[int, str]:
    """Return how many of the first ``lines`` repeat the last ones before, and what was appended to the last of them."""
    for count in range(min(len(before), len(lines), 8), 0, -1):
        if before[-count:-1] == lines[: count - 1] and lines[count - 1].startswith(before[-1]):
            return count, lines[count - 1][len(before[-1]) :]
    return 0, ""


MAX_JOINED_SECONDS = 10.0
MAX_JOINED_CHARACTERS = 200
"""Limits of a joined cue, so that its times stay precise; a single longer cue is not split."""
MAX_CUE_CHARACTERS = 10_000
"""Maximum length of a cue; the rest is ignored, because no player could show more."""
MAX_PAUSE_SECONDS = 1.0
"""A longer pause ends a sentence, whatever its last character."""
MAX_CUES_PER_SECOND = 10
"""Maximum average number of joined cues per second; speech has one in two or three seconds, full screens a few."""
_THINNED_SECONDS = 10
_CLOSED = re.compile(r"""[.!?…。!?।؟♪)\]:;»”"][»”"'’)\]♪]?$""")
_CONTINUES = re.compile(r"""(?:\.\.\.|…|,|-|–|—)$""")
_RUBY = re.compile(r"<rt\b[^<>]{0,99}>[^<>]*(?:</rt>|$)", re.IGNORECASE)
_VOICE = re.compile(r"<v(?:\.[^<>\s]{0,99})?\s([^<>]{1,99})>\s*", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,299}>|</>|<\d[\d:.]{0,29}>")
_OVERRIDE_CODE = re.compile(r"\{\\[^{}]{0,299}\}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,31});")
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffe]")


def tidy(cues: Iterable[Cue]) -> list[Cue]:
    """Tidy the cues of a file: plain text, in order of time, each line once, every end after its start, none empty.

    The cues come from one file, so they have one language. Times before the video are clipped to 0. A cue without a
    usable end lasts as long as reading it takes, at most until the next one.

    >>> found = tidy([Cue(5, 4, "<b>Two</b>"), Cue(-1, 2, "One"), Cue(3, 4, "♪"), Cue(-2, -1, "Zero")])
    >>> [(cue.start, cue.end, cue.text) for cue in found]
    [(0.0, 2, 'One'), (5, 6.0, 'Two')]
    """
    cues = list(cues)
    language = cues[0].language if cues else None
    written = sorted((cue for cue in cues if cue.end > 0 or cue.start >= 0), key=lambda cue: (cue.start, cue.end))
    displays = [(max(cue.start, 0.0), cue.end, plain_lines(cue.text[:MAX_CUE_CHARACTERS])) for cue in written]
    ended = _give_ends([(start, end, lines) for start, end, lines in displays if lines])
    found = [replace(cue, language=language) for cue in unroll(_drop_repeats(ended)) if cue.end > cue.start]
    return sorted(found, key=lambda cue: (cue.start, cue.end))


def plain_lines(text: str) -> list[str]:
    r"""Return the lines of a cue as plain text: no tags, codes, entities or invisible characters.

    A WebVTT voice becomes a name and a colon, as in captions for the deaf. Readings above Japanese words (``<rt>``) are
    removed, since the word is there too. Speaker dashes and sounds in brackets stay: people search for ``[applause]``.
    Lines without a letter or digit (``♪ ♪``) are removed.

    >>> plain_lines("<v Ann>Fish &amp; chips,<00:01.500><c> please</c>\n{\\an8}<i>- Now?</i>\n♪\n[door slams]")
    ['Ann: Fish & chips, please', '- Now?', '[door slams]']
    """
    if "<" in text:
        text = _TAG.sub("", _VOICE.sub(r"\1: ", _RUBY.sub("", text)))
    if "{" in text:
        text = _OVERRIDE_CODE.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    text = _UNSEEN.sub("", text)
    kept = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in kept if any(map(str.isalnum, line))]


def join_sentences(cues: Sequence[Cue]) -> list[Cue]:
    """Join fragments of one sentence, from the first one's start to the last one's end.

    Subtitles break a sentence where the screen is full, but semantic search needs the whole sentence. Two cues are
    joined while the first does not end a sentence, the pause between them is short, the speaker stays the same, and
    the result stays within 10 seconds and 200 characters.

    >>> cues = [Cue(0, 2, "I put the keys"), Cue(2, 4, "on the table."), Cue(4, 5, "Why?")]
    >>> [cue.text for cue in join_sentences(cues)]
    ['I put the keys on the table.', 'Why?']
    """
    found: list[Cue] = []
    for cue in cues:
        if found and _belong_together(found[-1], cue):
            last = found[-1]
            found[-1] = replace(last, end=max(last.end, cue.end), text=f"{last.text} {cue.text}")
        else:
            found.append(cue)
    return found


def thin_out(cues: Sequence[Cue], duration: float) -> list[Cue]:
    """Return all cues or, if there are too many for ``duration`` seconds of video, the first of every 10 seconds.

    Too many means more than 10 per second of video. Then at most 100 that begin in the same 10 seconds are kept, and
    none that begin after the end.

    >>> cues = [Cue(i / 50, i / 50 + 1, f"Line {i}.") for i in range(2000)]
    >>> [cue.start for cue in thin_out(cues, 20.0)][98:102]
    [1.96, 1.98, 10.0, 10.02]
    >>> len(thin_out(cues, 20.0)), len(thin_out(cues, 300.0))
    (200, 2000)
    """
    stretches = max(1, math.ceil(duration / _THINNED_SECONDS))
    if len(cues) <= stretches * _THINNED_SECONDS * MAX_CUES_PER_SECOND:
        return list(cues)
    counts: Counter[int] = Counter()
    found = []
    for cue in cues:
        stretch = int(cue.start // _THINNED_SECONDS)
        counts[stretch] += 1
        if stretch < stretches and counts[stretch] <= _THINNED_SECONDS * MAX_CUES_PER_SECOND:
            found.append(cue)
    return found


def _belong_together(last: Cue, cue: Cue) -> bool:
    closed = _CLOSED.search(last.text) is not None and _CONTINUES.search(last.text) is None
    return (
        not closed
        and last.language == cue.language
        and cue.start - last.end <= MAX_PAUSE_SECONDS
        and max(last.end, cue.end) - last.start <= MAX_JOINED_SECONDS
        and len(last.text) + 1 + len(cue.text) <= MAX_JOINED_CHARACTERS
        and not cue.text.startswith(("- ", "– ", "— ", "[", "(", "♪", ">>"))
    )


Display = tuple[float, float, list[str]]
"""Start, end and lines of a cue."""


def _give_ends(cues: list[Display]) -> list[Display]:
    found = []
    for place, (start, end, lines) in enumerate(cues):
        if end <= start:
            end = start + min(max(sum(map(len, lines)) / 15, 1.0), 6.0)
            following = next((later for later, _, _ in cues[place + 1 : place + 9] if later > start), end)
            end = min(end, following)
        found.append((start, end, lines))
    return found


def _drop_repeats(cues: list[Display]) -> list[Display]:
    """Drop lines repeated at the same time: scripts layer a text for its shadow, players show two tracks."""
    found: list[Display] = []
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


TIME_PATTERN = r"-?\s?(?:\d{1,5}\s?:\s?)?\d{1,5}\s?:\s?\d{1,5}(?:\s?[.,:]\s?\d{1,9})?"
"""Pattern of a time: hours and fraction may be missing, spaces may have been added. Repetitions are bounded, so that no
line makes the search slow."""
_PARTS = re.compile(r"(-?)(?:(\d+):)?(\d+):(\d+)(?:[.,:](\d+))?")


def seconds(stamp: str) -> float | None:
    """Return a time that matches ``TIME_PATTERN`` in seconds, or None.

    >>> seconds("01:02:03,450"), seconds("02:03.45"), seconds("-00:00:01,000"), seconds("123:00:00.0")
    (3723.45, 123.45, -1.0, 442800.0)

    Some programs write the milliseconds after a colon; two fields are minutes and seconds.

    >>> seconds("00:00:01:500"), seconds("00:01"), seconds("noon")
    (1.5, 1.0, None)
    """
    parts = _PARTS.fullmatch("".join(stamp.split()))
    if parts is None:
        return None
    sign, hours, minutes, whole, fraction = parts.groups()
    milliseconds = round(int((fraction or "0").ljust(9, "0")[:9]) / 1_000_000)
    total = ((int(hours or 0) * 60 + int(minutes)) * 60 + int(whole)) * 1000 + milliseconds
    return (-total if sign else total) / 1000


def stamp(time: float) -> str:
    """Return a time in SRT's notation, to the millisecond.

    >>> stamp(3723.45), stamp(59.9996)
    ('01:02:03,450', '00:01:00,000')
    """
    milliseconds = max(0, round(time * 1000))
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d},{rest % 1000:03d}"
