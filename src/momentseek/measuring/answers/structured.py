"""Read times from JSON in a model's answer: the whole answer, a code fence, within prose, or truncated."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from momentseek.measuring.answers.times import Clip, find_ranges, find_times

_OF_KEY = r"(?:time(?:stamp)?|sec(?:onds?)?|frame|ms|percent|fraction)?"
START_KEY = re.compile(rf"(?:frame|time|t)?(?:start|begin){_OF_KEY}|from|s")
END_KEY = re.compile(rf"(?:frame|time|t)?(?:end|finish|stop){_OF_KEY}|to|e")
LENGTH_KEYS = ("duration", "length", "durationseconds", "durationsec")
TIME_KEYS = re.compile(
    r"time|interval|segment|span|window|moment|range|answer|prediction|result|grounding|event|clip|occurrence|match"
)
SCORE_KEYS = ("confidence", "confidencescore", "score", "probability", "conf", "certainty")
FOUND_KEYS = ("found", "present", "exists", "answerable", "occurs", "detected", "visible")
_OPENING = re.compile(r"[{\[]")
MAX_UNCLOSED = 50
"""Number of unclosed brackets after which the search for JSON stops."""
KEY_UNITS = (("frame", "frame"), ("ms", "ms"), ("milli", "ms"), ("percent", "%"), ("fraction", "fraction"))


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """A moment that an answer names, in seconds, not cut to the video, with its confidence (NaN if none is given)."""

    start: float
    end: float
    confidence: float = math.nan


@dataclass(frozen=True)
class StructuredTimes:
    """The spans in the JSON of an answer, and whether it says that there are none."""

    spans: tuple[AnswerSpan, ...] = ()
    absent: bool = False


def read_structured(text: str, clip: Clip) -> StructuredTimes | None:
    """Return the times in the JSON of an answer, or None if it has no JSON about times.

    >>> read_structured('Sure! ```json\\n[{"start": "00:12", "end": 20.5, "confidence": 0.8}]\\n```', Clip()).spans
    (AnswerSpan(start=12.0, end=20.5, confidence=0.8),)
    >>> read_structured('{"timestamps": []}', Clip()).absent, read_structured("[a dog] runs", Clip())
    (True, None)
    """
    spans: list[AnswerSpan] = []
    absent = False
    for value in _values(text):
        found = list(_spans(value, clip, None))
        absent |= _says_absent(value) and not found
        spans += found
    if not spans and not absent:
        return None
    denied = any(isinstance(value, Mapping) and _is_denied(value) for value in _values(text))
    return StructuredTimes((), True) if denied else StructuredTimes(tuple(spans), absent)


def _values(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects and lists of a text; Python's quotes and trailing commas are accepted."""
    position = unclosed = 0
    while (match := _OPENING.search(text, position)) is not None and unclosed < MAX_UNCLOSED:
        end = _closing(text, match.start())
        unclosed += not end
        value = _loads(text[match.start() : end]) if end else None
        if value is None:
            position = match.start() + 1
        else:
            yield value
            position = end


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at ``start``; 0 if it never closes."""
    depth, quote = 0, ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c == '"':
            quote = c
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if not depth:
                return i + 1
    return 0


def _loads(text: str) -> Any:
    forgiven = re.sub(r",\s*([}\]])", r"\1", re.sub(r"(?<![A-Za-z])'|'(?![A-Za-z])", '"', text))
    forgiven = re.sub(r"\bNone\b", "null", re.sub(r"\bFalse\b", "false", re.sub(r"\bTrue\b", "true", forgiven)))
    for candidate in (text, forgiven):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def _spans(value: Any, clip: Clip, unit: str | None, depth: int = 0) -> Iterator[AnswerSpan]:
    if depth > 8:
        return
    if isinstance(value, Mapping):
        yield from _object_spans({_key(k): v for k, v in value.items()}, clip, unit, depth)
    elif isinstance(value, list):
        span = _pair(value, clip, unit)
        if span is not None:
            yield span
            return
        for entry in value:
            if isinstance(entry, str):
                yield from (AnswerSpan(*ends) for ends in find_ranges(f"at {entry}", clip))
            elif isinstance(entry, Mapping | list):
                yield from _spans(entry, clip, unit, depth + 1)


def _object_spans(entry: dict[str, Any], clip: Clip, unit: str | None, depth: int) -> Iterator[AnswerSpan]:
    unit = {"frames": "frame", "percent": "%"}.get(str(entry.get("unit", entry.get("units", ""))).lower(), unit)
    score = next((_score(entry[k]) for k in SCORE_KEYS if k in entry), math.nan)
    first, last = (
        min(filter(keys.fullmatch, entry), key=lambda k: (k in ("from", "to", "s", "e"), len(k)), default=None)
        for keys in (START_KEY, END_KEY)
    )
    length = next((k for k in LENGTH_KEYS if k in entry), None)
    if first is not None and (last or length):
        start = _seconds(entry[first], clip, _key_unit(first) or unit)
        end = _seconds(entry[last or length], clip, _key_unit(last or "") or unit)  # type: ignore[index]
        if start is not None and end is not None:
            yield AnswerSpan(start, end if last else start + end, score)
            return
    for key, value in entry.items():
        timed = TIME_KEYS.search(key)
        if isinstance(value, str) and timed:
            found = [AnswerSpan(*ends) for ends in find_ranges(f"at {value}", clip)]
        elif isinstance(value, Mapping) or (isinstance(value, list) and (timed or _holds_objects(value))):
            found = list(_spans(value, clip, _key_unit(key) or unit, depth + 1))
        else:
            continue
        yield from (AnswerSpan(s.start, s.end, score if math.isnan(s.confidence) else s.confidence) for s in found)


def _pair(value: list[Any], clip: Clip, unit: str | None) -> AnswerSpan | None:
    """Read a list of two times, or of two times and a score as in QVHighlights."""
    if len(value) not in (2, 3) or (len(value) == 3 and any(isinstance(v, str | bool | None) for v in value)):
        return None
    times = [_seconds(v, clip, unit) for v in value[:2]]
    if times[0] is None or times[1] is None:
        return None
    return AnswerSpan(times[0], times[1], _score(value[2]) if len(value) == 3 else math.nan)


def _seconds(value: Any, clip: Clip, unit: str | None) -> float | None:
    """Convert one time to seconds: a number, or a text with exactly one time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return clip.seconds(float(value), unit)
    if not isinstance(value, str):
        return None
    times = find_times(value)
    return clip.seconds(times[0].value, times[0].unit or unit) if len(times) == 1 else None


def _score(value: Any) -> float:
    if isinstance(value, str) and (times := find_times(value)):
        return times[0].value / 100 if times[0].unit == "%" else times[0].value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) / 100 if value > 1 else float(value)
    return math.nan


def _says_absent(value: Any) -> bool:
    """Whether JSON without times says that there are none: it is empty, or has null in place of times."""
    if value == [] or value == {}:
        return True
    if not isinstance(value, Mapping):
        return False
    entry = {_key(k): v for k, v in value.items()}
    empty = [k for k, v in entry.items() if v in (None, [], "", "none", "None", "N/A", "n/a", "null", "not found")]
    return _is_denied(value) or any(TIME_KEYS.search(k) or START_KEY.fullmatch(k) for k in empty)


def _is_denied(value: Mapping[str, Any]) -> bool:
    entry = {_key(k): v for k, v in value.items()}
    return any(entry.get(k) is False or str(entry.get(k, "")).lower() in ("no", "false") for k in FOUND_KEYS)


def _holds_objects(value: list[Any]) -> bool:
    return any(isinstance(v, Mapping) for v in value)


def _key(name: Any) -> str:
    return re.sub(r"[^a-z]", "", str(name).lower())


def _key_unit(key: str) -> str | None:
    return next((unit for word, unit in KEY_UNITS if word in key and not (word == "ms" and "timestamp" in key)), None)
