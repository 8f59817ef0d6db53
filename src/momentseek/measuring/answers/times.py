"""Find times in prose (seconds, clock times, frames, fractions of a video) and pair them into ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

Units = Literal["seconds", "hundredths", "fraction", "percent", "frames"]
"""What a number without a unit means. VTimeLLM counts in hundredths of the video ("from 13 to 42")."""
UNITS: tuple[str, ...] = get_args(Units)
SECONDS_OF = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
SHARE_OF = {"%": 0.01, "fraction": 1.0, "percent": 0.01, "hundredths": 0.01}

_NUMBER = r"\d+(?:\.\d+)?|\.\d+"
_UNIT = r"ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|%|percent|per\s?cent"
_CLOCK = re.compile(r"(?:(\d{1,2}):)?(\d{1,3}):(\d{2}(?:[.,]\d{1,3})?)(?!\d|:\d)")
_PARTS = re.compile(
    r"(?:(\d+)\s*(?:h|hrs?|hours?)\s*(?:,|and)?\s*)?(\d+)\s*(?:m|mins?|minutes?)\s*(?:,|and)?\s*"
    rf"({_NUMBER})\s*(?:s|secs?|seconds?)\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    rf"(?:\b(?P<before>frames?(?:\s*(?:no\.?|number|\#))?|secs?\.?|seconds?)\s*\#?\s*)?(?<![A-Za-z0-9_.])(?P<number>{_NUMBER})"
    rf"(?:\s*-?\s*(?P<unit>{_UNIT})(?![a-z])|(?:st|nd|rd|th)\s+(?P<ordinal>second|minute|frame)|\s*(?P<frames>frames?)\b"
    r"|(?:st|nd|rd|th)(?=(?:\s+(?:to|and|until)|\s*-)\s+(?:the\s+)?\d+(?:st|nd|rd|th)\s+(?:second|minute|frame)))?",
    re.IGNORECASE,
)
_FILL = (
    r"(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|the|at|an?|time(?:stamp)?s?|marks?|of|into|in|point"
    r"|it|t\s*=|\(start\)|\(end\)|~|\#|\[|\]|\(|\)|<|>|:|=|\"|'|\||\s|video|clip|second|seconds|minute|frame|number|s\b)*"
)
_CONNECT = re.compile(
    rf"{_FILL}(?:<?-+>?|=>|\.\.+|to|until|till|through|thru|up\s+to|,?\s*and\s+(?:lasts|continues|goes)\s+(?:until|till|to|on\s+to))"
    rf"{_FILL}",
    re.IGNORECASE,
)
_AND = re.compile(rf"{_FILL},?\s*and{_FILL}", re.IGNORECASE)
_COMMA = re.compile(r"\s*[\"']?\s*[,;]\s*[\"']?\s*")
_CELLS = re.compile(r"[\s|,;]+")
_HEADER = re.compile(r"\bstart\w*[\W_]{1,12}(?:time\W{1,8})?end", re.IGNORECASE)
_LASTING = re.compile(
    rf"{_FILL}[,;]?\s*(?:and\s+)?(?:it\s+)?(?:for|lasts?(?:\s+for)?|lasting(?:\s+for)?|with\s+a\s+duration\s+of){_FILL}",
    re.IGNORECASE,
)
_STARTS = re.compile(r"\b(?:start\w*|begin\w*|onset|from|first\s+seen|appears)\b", re.IGNORECASE)
_ENDS = re.compile(r"\b(?:ends?|ending|end_?time|finish\w*|until|till|stops?|stopping|conclud\w+)\b", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween\b{_FILL}$", re.IGNORECASE)
_CUE = re.compile(
    r"(?:\b(?:from|between|at|during|in|is|interval|times?|timestamps?|windows?|segments?|ranges?|starts?|starting|begins?"
    r"|seconds?|moments?|spans?|clips?|occurs?|happens?|answer|frames?)\b|\ba:)[^.\n]{0,12}$",
    re.IGNORECASE,
)
_PLAIN_NEXT = re.compile(
    r"\s*(?:$|[^\sA-Za-z]|(?:in|on|of|and|the|is|are|was|where|when|which|as|during|while|with|an?|he|she|they|it|for|within"
    r"|at|to|this|then|who|because|shows?|showing|match\w*|best|corresponds?|contains?|or|but|so|both|total)\b)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\b(?:scores?|changes?|rises?|increases?|drops?|falls?|grows?|counts?|temperature|price|levels?|numbers?|aged?)\b[^.\n]{0,20}$",
    re.IGNORECASE,
)
LONGEST_GAP = 90
"""Maximum number of characters between a start and its end, and number of characters examined around them."""


@dataclass(frozen=True, slots=True)
class Clip:
    """What is known about the video of a question."""

    duration: float | None = None
    fps: float | None = None
    units: Units = "seconds"

    def seconds(self, value: float, unit: str | None) -> float:
        """Convert a value to seconds; NaN if that needs a duration or frame rate that is not known.

        >>> clip = Clip(duration=200.0, fps=25.0, units="hundredths")
        >>> clip.seconds(50, "frame"), clip.seconds(25, "%"), clip.seconds(13, None), clip.seconds(1.5, "min")
        (2.0, 50.0, 26.0, 90.0)
        """
        unit = unit or {"seconds": "s", "frames": "frame"}.get(self.units, self.units)
        if unit in SECONDS_OF:
            return value * SECONDS_OF[unit]
        if unit == "frame":
            return value / self.fps if self.fps else float("nan")
        return value * SHARE_OF[unit] * self.duration if self.duration else float("nan")


@dataclass(frozen=True, slots=True)
class TimeToken:
    """One time in a text: its position, its value and its unit (None for a bare number)."""

    begin: int
    end: int
    value: float
    unit: str | None


def find_times(text: str) -> list[TimeToken]:
    """Return all numbers of a text that may be times, in order.

    >>> [(t.value, t.unit) for t in find_times("from 1:05 to 1 min 20 s, frame 30 at 25% and 7")]
    [(65.0, 's'), (80.0, 's'), (30.0, 'frame'), (25.0, '%'), (7.0, None)]
    """
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[TimeToken]:
    position = 0
    while (match := _PLAIN.search(text, position)) is not None:
        at = match.start("number")
        if clock := _CLOCK.match(text, at):
            hours, minutes, seconds = clock.groups(default="0")
            value = int(hours) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))
            unit = re.compile(r"\s*(?:s|secs?|seconds?|mins?|minutes?)\b", re.IGNORECASE).match(text, clock.end())
            position = unit.end() if unit else clock.end()
            yield TimeToken(at, position, value, "s")
        elif parts := _PARTS.match(text, at):
            hours, minutes, seconds = parts.groups(default="0")
            yield TimeToken(at, parts.end(), int(hours) * 3600 + int(minutes) * 60 + float(seconds), "s")
            position = parts.end()
        else:
            yield TimeToken(match.start(), match.end(), float(match["number"]), _unit(match))
            position = match.end()


def _unit(match: re.Match[str]) -> str | None:
    word = (match["unit"] or match["ordinal"] or match["frames"] or match["before"] or "").lower()
    if not word:
        return None
    for unit, start in (("frame", "frame"), ("ms", ("ms", "milli")), ("s", "s"), ("min", "m"), ("h", "h")):
        if word.startswith(start):
            return unit
    return "%"


def find_ranges(text: str, clip: Clip) -> list[tuple[float, float]]:
    """Return the time ranges in a text, in seconds and in order; NaN where a unit cannot be converted.

    >>> find_ranges("It starts at 0:12 and ends at 0:20, with 2-3 people; again between 31 and 35.5 seconds.", Clip())
    [(12.0, 20.0), (31.0, 35.5)]
    >>> find_ranges("from 13 to 42", Clip(duration=50.0, units="hundredths"))
    [(6.5, 21.0)]
    """
    found: list[tuple[float, float]] = []
    taken = -1
    times = find_times(text)
    for i, (first, second) in enumerate(pairwise(times)):
        if i <= taken:
            continue
        how = _join_of(text, first, second)
        if how is None:
            continue
        one, two = first.unit or second.unit, second.unit or first.unit
        if one is None:
            one = two = _bare_unit(text, first, second, clip)
            if one is None and not _is_cued(text, first, second):
                continue
        start = clip.seconds(first.value, one)
        length = clip.seconds(second.value, two)
        found.append((start, start + length if how == "lasting" else length))
        taken = i + 1
    return found


def _join_of(text: str, first: TimeToken, second: TimeToken) -> str | None:
    """How two consecutive times form a range: ``range`` (start, end), ``lasting`` (start, length), or None."""
    gap = text[first.end : second.begin]
    if len(gap) > LONGEST_GAP:
        return None
    if "frame" in (first.unit, second.unit) and None not in (first.unit, second.unit) and first.unit != second.unit:
        return None
    before = text[max(0, first.begin - 60) : first.begin]
    if _CONNECT.fullmatch(gap) or (_AND.fullmatch(gap) and _BETWEEN.search(before)):
        return "range"
    bracketed = before.rstrip(" \"'")[-1:] in ("[", "(", "<") and text[second.end :].lstrip(" \"'")[:1] in (
        "]",
        ")",
        ">",
    )
    if bracketed and _COMMA.fullmatch(gap):
        return "range"
    if _CELLS.fullmatch(gap) and "\n" not in gap and _HEADER.search(text[max(0, first.begin - 1000) : first.begin]):
        return "range"
    if "between" in gap.lower():
        return None
    if _STARTS.search(before) and _ENDS.search(gap) and not _STARTS.search(_ENDS.split(gap)[-1]):
        return "range"
    if _LASTING.fullmatch(gap) and second.unit in ("s", "ms", "min"):
        return "lasting"
    return None


def _bare_unit(text: str, first: TimeToken, second: TimeToken, clip: Clip) -> str | None:
    """Return ``fraction`` if the text says that two bare numbers are fractions of the video, else None."""
    said = re.search(r"normali[sz]ed|\bfractions?\b|\bproportions?\b|\brelative\b", text, re.IGNORECASE) or re.match(
        r"\s+of\s+(?:the|its)\s+(?:\w+\s+)?(?:video|clip|duration|length)\b", text[second.end :], re.IGNORECASE
    )
    return "fraction" if said and max(first.value, second.value) <= 1 and clip.units == "seconds" else None


def _is_cued(text: str, first: TimeToken, second: TimeToken) -> bool:
    """Whether the context shows that two bare numbers are times, unlike "2 to 3 people"."""
    before, after = text[max(0, first.begin - LONGEST_GAP) : first.begin], text[second.end : second.end + LONGEST_GAP]
    if not _PLAIN_NEXT.match(after) or _AMOUNT.search(before):
        return False
    stripped = before.rstrip(" \"'")
    return (
        not re.search(r"[A-Za-z]", before + after)
        or stripped[-1:] in ("[", "<", "\n", "")
        or bool(_CUE.search(before) or _STARTS.search(before[-30:]))
    )


def expand_words(text: str, clip: Clip) -> str:
    """Replace words such as "the beginning" or "the last 5 seconds" by times; some need the duration.

    >>> expand_words("from the beginning until 0:12", Clip()), expand_words("the last 5 seconds", Clip(duration=30.0))
    ('from 0 s until 0:12', 'from 25 s to 30 s')
    """
    text = re.sub(rf"\bframes?\s*#?\d+\s*\(\s*(({_NUMBER})\s*({_UNIT}))\s*\)", r"\1", text, flags=re.I)
    text = re.sub(r",?\s+(?:and\s+)?onwards?\b(?=,?\s+(?:to|until|till)\b)", "", text, flags=re.I)
    video = r"(?:\s+of\s+the\s+(?:video|clip|footage|recording))?"
    text = re.sub(
        rf"\bthe\s+(?:very\s+)?(?:beginning|start){video}(?=\s*(?:to|until|till|through|-))", "0 s", text, flags=re.I
    )
    text = re.sub(rf"\b(?:the\s+)?first\s+({_NUMBER})\s*({_UNIT})(?![a-z])", r"from 0 s to \1 \2", text, flags=re.I)
    for words, (start, end) in _SHARES.items():
        text = re.sub(
            rf"\b(?:the\s+)?{words}\s+of\s+the\s+(?:video|clip|footage)", f"from {start}% to {end}%", text, flags=re.I
        )
    if clip.duration is None:
        return text
    end_ = f"{clip.duration:g} s"
    text = re.sub(rf"\b(to|until|till|through)\s+the\s+(?:very\s+)?end\b{video}", rf"\1 {end_}", text, flags=re.I)
    text = re.sub(rf"(?<=[\ds%])[ \t]*-[ \t]*(?:the\s+)?end\b(?!\s*[:=\w]){video}", f" - {end_}", text, flags=re.I)
    text = re.sub(r",?\s+(?:and\s+)?onwards?\b", f" to {end_}", text, flags=re.I)
    last = re.compile(rf"\b(?:the\s+)?(?:last|final)\s+({_NUMBER})\s*({_UNIT})(?![a-z])", re.I)

    def tail(match: re.Match[str]) -> str:
        (token,) = find_times(f"{match[1]} {match[2]}")
        return f"from {max(0.0, (clip.duration or 0.0) - clip.seconds(token.value, token.unit)):g} s to {end_}"

    return last.sub(tail, text)


_SHARES = {
    "first\\s+half": (0, 50),
    "second\\s+half": (50, 100),
    "(?:last|latter)\\s+half": (50, 100),
    "first\\s+third": (0, 33.333333),
    "(?:middle|second)\\s+third": (33.333333, 66.666667),
    "(?:last|final)\\s+third": (66.666667, 100),
    "first\\s+quarter": (0, 25),
    "(?:last|final)\\s+quarter": (75, 100),
}
_DIGITS = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
_TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = {word.lower(): i for i, word in enumerate((*_DIGITS, *_TEENS))} | {
    word: 10 * i for i, word in enumerate(_TENS, 2)
}


def plain_tokens(text: str) -> str:
    """Replace the time tokens of known models by times: VTG-LLM's digits, Whisper's seconds, LITA's hundredths.

    >>> plain_tokens("<TIME_ONE><TIME_TWO><TIME_DOT><TIME_FIVE> - <TIME_TWO><TIME_ZERO> seconds")
    '12.5 - 20 seconds'
    >>> plain_tokens("<|12.0|> a dog runs <|20.0|>"), plain_tokens("<t0> <t99>")
    ('from 12.0 s to 20.0 s', 'from 0.000000% to 100.000000%')
    """

    def digits(match: re.Match[str]) -> str:
        names = re.findall(r"<TIME_([A-Z]+|\d)>", match[0])
        return "".join("." if n == "DOT" else n if n.isdigit() else str(_DIGITS.index(n)) for n in names)

    text = re.sub(rf"(?:<TIME_(?:{'|'.join(_DIGITS)}|DOT|\d)>\s?)+(?<!\s)", digits, text)
    text = re.sub(r"<\|(\d+(?:\.\d+)?)\|>.*?<\|(\d+(?:\.\d+)?)\|>", r"from \1 s to \2 s", text, flags=re.DOTALL)

    def share(number: str) -> str:
        return f"{100 * int(number) / 99:.6f}%"

    text = re.sub(r"<t(\d{1,2})>\s*<t(\d{1,2})>", lambda m: f"from {share(m[1])} to {share(m[2])}", text)
    return re.sub(r"<t(\d{1,2})>", lambda m: share(m[1]), text)


def plain_numbers(text: str) -> str:
    """Replace number words by digits before a unit or a range word.

    >>> plain_numbers("from five to twenty seconds, one person")
    'from 5 to 20 seconds, one person'
    """
    words = "|".join(_NUMBER_WORDS)
    after = r"(?=[\s-]*(?:seconds?|minutes?|to|until|through|and)\b)"
    return re.sub(rf"\b({words})\b{after}", lambda m: str(_NUMBER_WORDS[m[1].lower()]), text, flags=re.IGNORECASE)
