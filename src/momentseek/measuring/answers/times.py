"""Find times in prose (seconds, clock times, frames, fractions of a video) and pair them into ranges."""

from __future__ import annotations

import re
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
_OF_VIDEO = re.compile(r"(?i:\s+of\s+(?:the|its)\s+(?:\w+\s+)?(?:video|clip|duration|length)\b)")
_MARK = r"-|\b(?:to|until|till|through|bis|à)\b"
_NO_MARKS = ("", *"[(<{])>}")
_COMMA_NUMBER = re.compile(
    rf"(?i)((?:[\[(<{{]|{_MARK})\s*)?(?<![\d.,:])(\d+),(\d{{1,3}})(?![\d:]|[.,]\d)(?=\s*(?:{_UNIT})?\s*([\])>}}]|{_MARK})?)"
)
_SHARES = re.compile(r"(?i)normali[sz]ed|\b(?:fractions?|proportions?|relative)\b")
_CLOCK = re.compile(
    r"(?i)(?:(\d{1,2}):)?(\d{1,3}):(\d{2}(?:[.,]\d{1,3})?)(?!\d|:\d)(?:\s*(?:s|secs?|seconds?|mins?|minutes?)\b)?"
)
_PARTS = re.compile(
    r"(?i)(?:(\d+)\s*(?:h|hrs?|hours?)\s*(?:,|and)?\s*)?(\d+)\s*(?:m|mins?|minutes?)\s*(?:,|and)?\s*"
    rf"({_NUMBER})\s*(?:s|secs?|seconds?)\b"
)
_PLAIN = re.compile(
    r"(?i)(?:\b(?P<before>(?<!time )frames?(?:\s*(?:no\.?|number|\#))?|secs?\.?|seconds?|ms|percent)[\s):=\#]*)?"
    rf"(?<![A-Za-z0-9_.])(?P<number>{_NUMBER})"
    rf"(?:\s*-?\s*(?P<unit>{_UNIT})(?![a-z])|(?:st|nd|rd|th)\s+(?P<ordinal>second|minute|frame)|\s*(?P<frames>frames?)\b"
    r"|(?:st|nd|rd|th)(?=(?:\s+(?:to|and|until)|\s*-)\s+(?:the\s+)?\d+(?:st|nd|rd|th)\s+(?:second|minute|frame)))?"
)
_FILL = (
    r"(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|the|at|an?|time(?:stamp)?s?|marks?|of|into|in|point"
    r"|it|t\s*=|\(start\)|\(end\)|~|\#|\[|\]|\(|\)|<|>|:|=|\"|'|\||\s|video|clip|second|seconds|minute|frame|number|s\b)*"
)
_CONNECT = re.compile(
    rf"(?i){_FILL}(?:<?-+>?|=>|\.\.+|to|until|till|through|thru|up\s+to|bis|hasta|à|,?\s*and\s+(?:lasts|continues|goes)\s+(?:until|till|to|on\s+to))"
    rf"{_FILL}"
)
_AND = re.compile(rf"(?i){_FILL},?\s*and{_FILL}")
_COMMA = re.compile(r"\s*[\"']?\s*[,;]\s*[\"']?\s*")
_CELLS = re.compile(r"[\s|,;]+")
_LISTED = re.compile(
    r"(?i)[\s\])>\"']*(?:[,;&\n]|\b(?:and|or)\b)(?:[\s\[(<\"'*•-]|\b(?:and|or|also|again|then|from|at|between|in|during)\b)*"
)
_MINUS = re.compile(r"(?i)(?:^|[\[(<:=,\"'][ \t]*|\b(?:from|to|at|between|and|until|is)\s+)-$")
_NOT = re.compile(
    r"(?i)(?:(?:\bnot|n't)(?:\s+(?:think|believe)\s+(?:it|this|that)\s+\w+)?|\brather\s+than|\binstead\s+of)\s+(?:(?:from|between|at|in|during|within|around|about|the)\s+)*[\[(\"']*$"
)
_WRONG = re.compile(
    r"(?i)[\s,;.)\]\"'-]*(?:but\s+)?(?:(?:that|this|which|it)\s+)?(?:(?:is|was|are|were|seems)(?:\s+not|n't)\s+(?:the\s+)?"
    r"(?:right|correct)|(?:is|was|are|were|seems)\s+(?:wrong|incorrect|too\s+(?:early|late)))\b|\s*\?\s*no\b"
)
_APART = re.compile(
    r"(?i)[,;:.!?\n\d]|\b(?:and|but|until|till|before|after|when|while|where|that|than|which|who|because|as|so|closest|nearest"
    r"|likely|instead|except|outside|besides|apart|only)\b"
)
_WHO = re.compile(r"\s*,?\s*((?:[\w']+\s+){0,3})")
_OTHERS = re.compile(r"(?i)\b(?:other|else)\b")
_HEADER = re.compile(r"(?i)\bstart\w*[\W_]{1,12}(?:time\W{1,8})?end")
_LASTING = re.compile(
    rf"(?i)(?:{_FILL}[,;]?\s*(?:and\s+)?(?:it\s+)?(?:for|lasts?(?:\s+for)?|lasting(?:\s+for)?|with\s+a\s+duration\s+of)"
    rf"|[\s,;|(]*duration(?:\s+of)?){_FILL}"
)
_STARTS = re.compile(r"(?i)\b(?:start\w*|begin\w*|onset|from|first\s+seen|appears)\b")
_ENDS = re.compile(r"(?i)\b(?:ends?|ending|end_?time|finish\w*|until|till|stops?|stopping|conclud\w+)\b")
_OPENING = re.compile(
    rf"(?i)(?:^|[.;:!?\n]\s*)(?:(?:so|also|and|but|then|however),?\s+)?(?:from|between|in|during|within|at|for)\b{_FILL}$"
)
_BETWEEN = re.compile(rf"(?i)\bbetween\b{_FILL}$")
_CUE = re.compile(
    r"(?i)(?:\b(?:from|between|at|during|in|is|interval|times?|timestamps?|windows?|segments?|ranges?|starts?|starting|begins?"
    r"|seconds?|moments?|spans?|clips?|occurs?|happens?|answer|frames?|t(?=\s*=))\b|\ba:)[^.\n]{0,12}$"
)
_PLAIN_NEXT = re.compile(
    r"(?i)\s*(?:$|[^\sA-Za-z]|(?:in|on|of|and|the|is|are|was|where|when|which|as|during|while|with|an?|he|she|they|it|for|within"
    r"|at|to|this|then|who|because|shows?|showing|match\w*|best|corresponds?|contains?|or|but|so|both|total)\b)"
)
_AMOUNT = re.compile(
    r"(?i)\b(?:scores?|changes?|rises?|increases?|drops?|falls?|grows?|counts?|temperature|price|levels?|numbers?|aged?)\b[^.\n]{0,20}$"
)
ABSENT = re.compile(
    r"(?i)\b(?:(?:does|do|did|is|are|was|were)(?: not|n't) (?:actually )?(?:occur|happen|appear|contain|show|shown|"
    r"present|depict|depicted|include|visible|found|seen|feature|take place|exist|there|match|any|answerable|"
    r"in the video)|(?:does|do|did)(?: not|n't) \w+ (?:anywhere )?(?:in|during) (?:this|the) (?:video|clip)|no (?:such|"
    r"relevant|matching|corresponding|clear) \w+|no (?:scene|part|point|moment|time|evidence|sign|indication|instance|"
    r"trace) (?:of|where|when|in|at)|no \w+(?: \w+)? (?:appears?|occurs?|happens?|is shown|is visible|can be seen)|"
    r"(?:nobody|no one) \w+|never (?:occurs|happens|appears|shown|seen)|there (?:is|are|was) no\b|there (?:isn't|"
    r"aren't|wasn't) (?:any|a)\b|not (?:present|found|shown|visible|depicted|applicable)|none of the (?:frames|"
    r"segments)|absent from|(?:do not|don't|did not|didn't|could not|couldn't|can't|cannot) (?:see|find|locate|detect|"
    r"observe) (?:any(?:one|body|thing)?|an?|the|that|this|it|such)|cannot be (?:matched|found|located|seen|"
    r"identified))\b|^\W*(?:n/?a|none|null|nothing|not found|unanswerable|no answer|no(?: moments?| match)?)\W*$"
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
    found: list[TimeToken] = []
    position = 0
    while (match := _PLAIN.search(text, position)) is not None:
        at = match.start("number")
        if clock := _CLOCK.match(text, at) or _PARTS.match(text, at):
            hours, minutes, seconds = clock.groups(default="0")
            value = int(hours) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))
        else:
            value = float(match["number"])
        position = (clock or match).end()
        minus = _MINUS.search(text, max(0, at - 15), at) is not None
        begin = min(at - minus, at if clock else match.start())
        found.append(TimeToken(begin, position, -value if minus else value, "s" if clock else _unit(match)))
    return found


def _unit(match: re.Match[str]) -> str | None:
    word = (match["unit"] or match["ordinal"] or match["frames"] or match["before"] or "").lower()
    if not word:
        return None
    for unit, start in (("frame", "frame"), ("ms", ("ms", "milli")), ("s", "s"), ("min", "m"), ("h", "h")):
        if word.startswith(start):
            return unit
    return "%"


def find_ranges(text: str, clip: Clip, denied: bool = False) -> list[tuple[float, float]]:
    """Return the time ranges in a text, in seconds and in order; NaN where a unit cannot be converted.

    Bare ranges of a list count if one of them does, and share its unit. Ranges that the text denies are left out.

    >>> find_ranges("It starts at 0:12 and ends at 0:20, with 2-3 people; again between 31 and 35.5 seconds.", Clip())
    [(12.0, 20.0), (31.0, 35.5)]
    >>> find_ranges("from 13 to 42, not from 50 to 60", Clip(duration=50.0, units="hundredths"))
    [(6.5, 21.0)]
    """
    found: list[_Range] = []
    taken = -1
    shares = _SHARES.search(text) is not None
    denials = [m.span() for m in ABSENT.finditer(text) if not _OTHERS.search(text, m.start(), m.end() + 6)]
    for i, (first, second) in enumerate(pairwise(find_times(text))):
        if i <= taken:
            continue
        last = found[-1] if found and _LISTED.fullmatch(text, found[-1].second.end, first.begin) else None
        how = _join_of(text, first, second, listed=last is not None and last.how == "between")
        if how is None:
            continue
        small = clip.units == "seconds" and max(first.value, second.value) <= 1
        share = "fraction" if small and (shares or _OF_VIDEO.match(text, second.end)) else None
        unit = second.unit or first.unit or share
        if unit is None and not _is_plain(text, first, second):
            continue
        sure = unit is not None or _is_cued(text, first, second) or (last is not None and last.sure)
        too = last is not None and last.denied and re.search(r"\b(?:and|or)\b", text[last.second.end : first.begin])
        no = bool(too) or _is_denied(text, first, second, denials)
        found.append(_Range(first, second, how, unit or (last.unit if last else None), sure, no, last))
        taken = i + 1
    for entry in reversed(found):  # "3-8, 25-31 and 40-44 seconds": the unit of the last is that of all
        if (last := entry.last) is not None and last.unit is None and entry.first.unit is None and entry.unit:
            last.unit, last.sure = entry.unit, True
    return [entry.seconds(clip) for entry in found if entry.sure and (denied or not entry.denied)]


@dataclass(slots=True)
class _Range:
    """Two times that may be a range; ``last`` is the one before it in a list of ranges."""

    first: TimeToken
    second: TimeToken
    how: str
    unit: str | None
    sure: bool
    denied: bool
    last: _Range | None

    def seconds(self, clip: Clip) -> tuple[float, float]:
        start = clip.seconds(self.first.value, self.first.unit or self.unit)
        end = clip.seconds(self.second.value, self.second.unit or self.unit)
        return start, start + end if self.how == "lasting" else end


def _is_denied(text: str, first: TimeToken, second: TimeToken, denials: list[tuple[int, int]]) -> bool:
    """Whether a text says that a range is not the answer: "not from 3 to 5 s", "from 3 to 5 s, no dog appears"."""
    before = text[max(0, first.begin - LONGEST_GAP) : first.begin]
    if _NOT.search(before) or _WRONG.match(text, second.end):
        return True
    for begin, end in denials:
        if first.begin - LONGEST_GAP < end <= first.begin and not _APART.search(text, end, first.begin):
            return True
        if second.end <= begin < second.end + LONGEST_GAP and (who := _WHO.fullmatch(text, second.end, begin)):
            return _OPENING.search(before) is not None and not _APART.search(who[1])
    return False


def _join_of(text: str, first: TimeToken, second: TimeToken, listed: bool) -> str | None:
    """How two times form a range: ``range``, ``between`` (a range with "and"), ``lasting`` (start, length), or None."""
    gap = text[first.end : second.begin]
    if len(gap) > LONGEST_GAP:
        return None
    if "frame" in (first.unit, second.unit) and None not in (first.unit, second.unit) and first.unit != second.unit:
        return None
    before = text[max(0, first.begin - 60) : first.begin]
    if _AND.fullmatch(gap) and (listed or _BETWEEN.search(before)):
        return "between"
    after = text[second.end : second.end + LONGEST_GAP].lstrip(" \"'")
    bracketed = before.rstrip(" \"'").endswith(("[", "(", "<")) and after.startswith(("]", ")", ">"))
    if _CONNECT.fullmatch(gap) or (bracketed and _COMMA.fullmatch(gap)):
        return "range"
    if _CELLS.fullmatch(gap) and "\n" not in gap and _HEADER.search(text[max(0, first.begin - 1000) : first.begin]):
        return "range"
    if "between" in gap.lower():
        return None
    if _STARTS.search(before) and _ENDS.search(gap) and not _STARTS.search(_ENDS.split(gap)[-1]):
        return "range"
    timed = second.unit in ("s", "ms", "min") or (second.unit is None and "duration" in gap)
    return "lasting" if timed and _LASTING.fullmatch(gap) else None


def _is_plain(text: str, first: TimeToken, second: TimeToken) -> bool:
    """Whether two bare numbers are no amount of a thing, like "2 to 3 people" or "a score of 2-3"."""
    before = text[max(0, first.begin - LONGEST_GAP) : first.begin]
    return _PLAIN_NEXT.match(text, second.end) is not None and not _AMOUNT.search(before)


def _is_cued(text: str, first: TimeToken, second: TimeToken) -> bool:
    """Whether the context shows that two bare numbers are times."""
    before, after = text[max(0, first.begin - LONGEST_GAP) : first.begin], text[second.end : second.end + LONGEST_GAP]
    if not re.search(r"[A-Za-z]", before + after) or before.rstrip(" \"'")[-1:] in ("[", "<", "\n", ""):
        return True
    return bool(_CUE.search(before) or _STARTS.search(before[-30:]))


def expand_words(text: str, clip: Clip) -> str:
    """Replace words such as "the beginning" or "the last 5 seconds" by times; some need the duration.

    >>> expand_words("from the beginning until 0:12", Clip()), expand_words("the last 5 seconds", Clip(duration=30.0))
    ('from 0 s until 0:12', 'from 25 s to 30 s')
    """
    fraction = rf"\b(\d+)\s*[/⁄]\s*([1-9]\d*)(?=[^.\n]{{0,25}}?{_OF_VIDEO.pattern})"
    text = re.sub(fraction, lambda m: f"{100 * int(m[1]) / int(m[2]):.6f}%", text)
    text = re.sub(rf"\bframes?\s*#?\d+\s*\(\s*(({_NUMBER})\s*({_UNIT}))\s*\)", r"\1", text, flags=re.I)
    text = re.sub(r",?\s+(?:and\s+)?onwards?\b(?=,?\s+(?:to|until|till)\b)", "", text, flags=re.I)
    video = r"(?:\s+of\s+the\s+(?:video|clip|footage|recording))?"
    begins = rf"\bthe\s+(?:very\s+)?(?:beginning|start){video}(?=\s*(?:to|until|till|through|-))"
    text = re.sub(begins, "0 s", text, flags=re.I)
    text = re.sub(rf"\b(?:the\s+)?first\s+({_NUMBER})\s*({_UNIT})(?![a-z])", r"from 0 s to \1 \2", text, flags=re.I)
    text = _PART.sub(_part_range, text)
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


_PART = re.compile(
    r"(?i)\b(?:the\s+)?(first|second|middle(?=\s+third)|last|latter|final)\s+(half|third|quarter)\s+of\s+the\s+(?:video|clip|footage)"
)


def _part_range(match: re.Match[str]) -> str:
    parts = {"half": 2, "third": 3, "quarter": 4}[match[2].lower()]
    i = {"first": 0, "second": 1, "middle": 1}.get(match[1].lower(), parts - 1)
    return f"from {100 * i / parts:.6f}% to {100 * (i + 1) / parts:.6f}%"


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
    time = r"(\d[\d:.]*\s*[a-z]*)"
    text = re.sub(rf"<(time\w*|t)>\s*{time}\s*</\1>\s*(?:to|,|-)?\s*<\1>\s*{time}\s*</\1>", r"from \2 to \3", text)
    text = re.sub(r"(?<![\w'])(\d{1,3})'(\d{2})(?!\d)(?:''|\"(?!\s*[,}\]]))?", r"\1:\2", text)

    def share(number: str) -> str:
        return f"{100 * int(number) / 99:.6f}%"

    text = re.sub(r"<t(\d{1,2})>\s*<t(\d{1,2})>", lambda m: f"from {share(m[1])} to {share(m[2])}", text)
    return plain_commas(re.sub(r"<t(\d{1,2})>", lambda m: share(m[1]), text))


def plain_commas(text: str) -> str:
    """Replace decimal commas by points and leave out commas of thousands; lists and bracketed pairs keep theirs.

    >>> plain_commas("12,5 to 20,3; frames 1,200 to 1,500; 12-20,30-35; (12,20)")
    '12.5 to 20.3; frames 1200 to 1500; 12-20,30-35; (12,20)'
    """

    def plain(match: re.Match[str]) -> str:
        before, after = ((match[i] or "").strip() for i in (1, 4))
        listed = (before in _NO_MARKS) == (after in _NO_MARKS) and (before or after)
        return match[0] if listed else match[0].replace(",", "" if len(match[3]) == 3 else ".")

    return _COMMA_NUMBER.sub(plain, text)


def plain_numbers(text: str) -> str:
    """Replace number words by digits before a unit or a range word.

    >>> plain_numbers("from five to twenty seconds, one person")
    'from 5 to 20 seconds, one person'
    >>> plain_numbers("twenty-five to thirty seconds")
    '25 to 30 seconds'
    """
    words, tens, digits = "|".join(_NUMBER_WORDS), "|".join(_TENS), "|".join(_DIGITS)
    after = r"(?=[\s-]*(?:seconds?|minutes?|to|until|through|and)\b)"
    pattern = rf"\b(?:({tens})[\s-](?=(?:{digits})\b))?({words})\b{after}"
    return re.sub(pattern, lambda m: str(sum(_NUMBER_WORDS[w.lower()] for w in m.groups() if w)), text, flags=re.I)
