"""Parse a prose answer into moments, or into the reason why it has none.

Nothing is repaired silently. A span is dropped if it is reversed (its start is after its end), has no length, lies
outside the video or is denied ("not from 3 to 5 s"). A span that extends beyond the video is cut at the video's ends.
Both are reported. A query whose answer has no span gets an empty list and one of ``REASONS``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from momentseek.core.reports import percentage, text_table
from momentseek.measuring.answers.structured import AnswerSpan, read_structured
from momentseek.measuring.answers.times import (
    ABSENT,
    Clip,
    expand_words,
    find_ranges,
    find_times,
    plain_numbers,
    plain_tokens,
)

REASONS = {
    "answered": "names at least one moment",
    "absent": "says that the video does not show it",
    "refusal": "declines to answer, or says that it cannot see the video",
    "point": "names a time, but no end",
    "vague": "says where in words only (at the beginning, in the middle)",
    "no time": "has words, but names no time",
    "reversed": "names only spans whose start is after their end",
    "zero length": "names only spans that end where they start",
    "outside": "names only spans outside the video",
    "unknown unit": "names frames or shares of a video whose frame rate or duration is not known",
    "cut off": "ends before its answer begins",
    "empty": "has no words",
    "failed": "the request failed",
}
"""Reason → what such an answer does. Every answer has exactly one reason."""

_LEFT_OUT = {
    "reversed": "a reversed span",
    "zero length": "a span without length",
    "outside": "a span outside the video",
    "unknown unit": "a span of unknown unit",
}
_PLAIN_SIGNS = str.maketrans(
    dict.fromkeys("‐‑‒–—―−~〜～→⟶➔", "-") | dict.fromkeys("’′", "'") | dict.fromkeys("“”", '"')
)
_PLAIN_SIGNS |= str.maketrans({"秒": " s ", "到": " to ", "至": " to ", "从": " from "})
_NEARLY = re.compile(r"((?:^|[\[(:=,*-]|\b(?:from|to|at|between|and|until|is|about|around)\s)\s*)~(?=\s*\d)")
"""A tilde that says "about", not "to"."""
_REFUSAL = re.compile(
    r"(?i)\b(?:i(?:'m| am) (?:sorry|unable|not able)|i can(?:'t|not)|i (?:do not|don't) have (?:access|the ability)|"
    r"as an ai|unable to (?:view|watch|process|access|see|analy[sz]e|determine|locate|identify|provide)|cannot (?:view|"
    r"watch|process|access|assist|provide|determine)|can(?:'t|not) (?:help|assist)|no video (?:was|is|"
    r"has been) (?:provided|attached|uploaded)|please (?:provide|upload|share) the video|(?:difficult|hard|impossible|"
    r"not possible) to (?:determine|say|tell|identify|pinpoint)|(?:not|n't) (?:\w+ )?(?:contain |provide |"
    r"have )?(?:enough|sufficient)|insufficient (?:information|context|frames))"
)
_TOO_LITTLE = re.compile(r"(?i)\b(?:enough|sufficient)\b")
_STILL = re.compile(r"(?i)\b(?:until|till|before|after|however|but|closest|nearest|likely|instead|probably)\b")
_WHOLE = re.compile(
    r"(?i)\b(?:throughout|(?:entire|whole|full) (?:video|clip|duration|length|footage|time)|"
    r"for the duration of the video|all through)\b"
)
_VAGUE = re.compile(
    r"(?i)\b(?:(?:at|in|near|towards?|around|by|until|from) the (?:very )?"
    r"(?:beginning|start|middle|end|first|second|last|latter|final|opening|closing)|early in|late in|halfway|midway|"
    r"(?:opening|closing|final|initial|last|first) (?:scenes?|shots?|moments?|part))\b"
)
_CONFIDENCE = re.compile(
    r"\b(?:confidence|certainty|probability)(?: score| level)?\W{0,4}(?:of |is )?(\d*\.?\d+)\s*(%?)", re.IGNORECASE
)
_FINAL = re.compile(r"(?i)\b(?:final answer|answer|in conclusion|therefore|in summary)\b\W{0,4}")
_FPS = re.compile(r"(?i)(\d+(?:\.\d+)?)\s*(?:fps|frames per second)\b|\bfps\s*[:=]\s*(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class ParsedAnswer:
    """The moments of one answer, best first, and its reason; ``notes`` say which spans were left out or cut."""

    spans: tuple[AnswerSpan, ...]
    reason: str
    notes: tuple[str, ...] = ()


UNKNOWN_CLIP = Clip()
MAX_CHARACTERS = 20_000
"""Number of characters of an answer that are parsed; a model that repeats itself may write more."""


def parse_answer(text: str, clip: Clip = UNKNOWN_CLIP) -> ParsedAnswer:
    """Parse an answer into moments and a reason.

    >>> parse_answer("The person opens the door from 12.5 - 20.0 seconds.").spans
    (AnswerSpan(start=12.5, end=20.0, confidence=nan),)
    >>> parse_answer("I'm sorry, but I cannot watch videos.").reason, parse_answer("It happens at 0:12.").reason
    ('refusal', 'point')
    >>> parse_answer("From 25 s to 40 s.", Clip(duration=30.0)).notes
    ('a span cut at the end of the video',)
    """
    said, unfinished = _final_words(text)
    if not re.search(r"\w|\[\s*\]|\{\s*\}", re.sub(r"</?\w+>", "", said)):
        return ParsedAnswer((), "cut off" if unfinished else "empty")
    fps = _FPS.search(said)
    if fps:
        said = _FPS.sub(" ", said)
        clip = Clip(clip.duration, clip.fps or float(fps[1] or fps[2]), clip.units)
    structured = read_structured(said, clip)
    plain = _plain_prose(said)
    if structured is not None:
        found = _settle(structured.spans, clip) if structured.spans else ParsedAnswer((), "absent")
        return ParsedAnswer((), "absent") if found.reason == "zero length" and ABSENT.search(plain) else found
    expanded = expand_words(plain, clip)
    spans = _prose_spans(expanded, clip)
    if _is_absent(expanded, clip):
        return ParsedAnswer((), "absent")
    if spans:
        denied = len(find_ranges(expanded, clip, denied=True)) > len(find_ranges(expanded, clip))
        return _settle(spans, clip, ["a denied span left out"] if denied else [])
    if _WHOLE.search(plain) and not _REFUSAL.search(plain):
        return _whole_video(clip)
    return ParsedAnswer((), _reason(plain, unfinished))


def _final_words(text: str) -> tuple[str, bool]:
    """Return an answer without its reasoning and markup, and whether it ends in the middle of its reasoning."""
    said = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).replace("分钟", " min ")
    said = _NEARLY.sub(r"\1", said).translate(_PLAIN_SIGNS)
    said = re.sub(r"(\d{9})\d+", r"\1", said)  # no time has more digits, and long digit strings are slow to search
    said = re.sub(r"(?<=[\ds])\.\.+(?=\d)", " - ", said)
    said = re.sub(r"<(think|thinking|reasoning)>.*?</\1>", " ", said, flags=re.DOTALL | re.IGNORECASE)
    said, *unfinished = re.split(r"<(?:think|thinking|reasoning)>", said, maxsplit=1, flags=re.IGNORECASE)
    inner = re.findall(r"<answer>(.*?)(?:</answer>|$)", said, flags=re.DOTALL | re.IGNORECASE)
    said = inner[-1] if inner and inner[-1].strip() else said
    return plain_tokens(said), bool(unfinished)


def _plain_prose(said: str) -> str:
    plain = re.sub(r"[*`]+|(?<!\w)_|_(?!\w)", "", said)
    plain = re.sub(r"\A-(?=.*\n-)", "", plain, flags=re.DOTALL)  # a bullet, no sign
    plain = re.sub(r"\b(frame)_?(start|end)(?![a-z])", r"\2_\1", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\b(start|end|begin|stop)_?(time|sec|frame|ms|percent)", r"\1 \2", plain, flags=re.IGNORECASE)
    return plain_numbers(plain)


def _prose_spans(said: str, clip: Clip) -> tuple[AnswerSpan, ...]:
    """Return the ranges after the last "final answer", or those of the whole text if there are none after it."""
    match = _CONFIDENCE.search(said)
    score = math.nan if match is None else float(match[1]) / (100 if match[2] or float(match[1]) > 1 else 1)
    plain = _CONFIDENCE.sub(" ", said)
    parts = _FINAL.split(plain)
    for part in (parts[-1], plain) if len(parts) > 1 else (plain,):
        if ranges := find_ranges(part, clip):
            return tuple(AnswerSpan(start, end, score) for start, end in ranges)
    return ()


def _is_absent(said: str, clip: Clip) -> bool:
    """Whether all ranges are denied, or a sentence without a range denies that there is one, and no other names one."""
    if find_ranges(said, clip, denied=True) and not find_ranges(said, clip):
        return True
    sentences = re.split(r"(?<=[.!?])\s+|\n+", said)
    for i, sentence in enumerate(sentences):
        denies = ABSENT.search(sentence) and not _TOO_LITTLE.search(sentence)
        if denies and not find_ranges(sentence, clip, denied=True):
            rest = " ".join(sentences[i:])
            still = _STILL.search(rest) and find_ranges(rest, clip)
            return not still and not find_ranges(" ".join(sentences[:i]), clip)
    return False


def _whole_video(clip: Clip) -> ParsedAnswer:
    if clip.duration is None:
        return ParsedAnswer((), "unknown unit")
    return ParsedAnswer((AnswerSpan(0.0, clip.duration),), "answered", ("the whole video",))


def _reason(said: str, unfinished: bool) -> str:
    if _REFUSAL.search(said):
        return "refusal"
    if any(token.unit is not None for token in find_times(said)) or re.fullmatch(r"\W*\d+(?:\.\d+)?\W*", said):
        return "point"
    return "cut off" if unfinished else "vague" if _VAGUE.search(said) else "no time"


def _settle(spans: Sequence[AnswerSpan], clip: Clip, notes: Sequence[str] = ()) -> ParsedAnswer:
    """Drop impossible spans and cut the others to the video; if none is left, take the reason of the first one."""
    kept: dict[tuple[float, float], AnswerSpan] = {}
    notes = list(notes)
    lost: list[str] = []
    for span in spans:
        start, end = span.start, span.end
        if math.isnan(start) or math.isnan(end):
            lost.append("unknown unit")
        elif start == end:
            lost.append("zero length")
        elif start > end:
            lost.append("reversed")
        elif end <= 0 or (clip.duration is not None and start >= clip.duration):
            lost.append("outside")
        else:
            if start < 0 or (clip.duration is not None and end > clip.duration):
                notes.append(f"a span cut at the {'start' if start < 0 else 'end'} of the video")
                start, end = max(0.0, start), min(end, clip.duration or end)
            kept.setdefault((start, end), AnswerSpan(start, end, span.confidence))
    if not kept:
        return ParsedAnswer((), "absent" if spans and all(s.start == s.end == -1 for s in spans) else lost[0])
    return ParsedAnswer(
        tuple(kept.values()), "answered", tuple(dict.fromkeys([*notes, *(f"{_LEFT_OUT[w]} left out" for w in lost)]))
    )


@dataclass(frozen=True)
class AnswerReport:
    """Counts of the answers of a file that have moments, and of the reasons why the others have none."""

    source: str
    answers: int
    spans: int
    reasons: dict[str, int]
    notes: dict[str, int]
    examples: dict[str, str]
    """Reason → the first answer of that kind, shortened."""

    def as_text(self) -> str:
        """Render the counts by reason as a table, with an example of each."""
        rows = [
            [reason, f"{n:,}", percentage(n / self.answers, 1), self.examples[reason]]
            for reason, n in self.reasons.items()
        ]
        text = f"{self.source}: {self.answers:,} answers, {self.spans:,} moments\n\n"
        text += text_table(["reason", "answers", "share", "first of them"], rows, align="lrrl")
        notes = [f"{n:,} × {note}" for note, n in self.notes.items()]
        return text + ("\n\n" + "; ".join(notes) if notes else "")


def report_answers(texts: Sequence[str], parsed: Sequence[ParsedAnswer], source: str = "(memory)") -> AnswerReport:
    """Count answers by reason, in the order of ``REASONS``."""
    found = Counter(answer.reason for answer in parsed)
    first: dict[str, str] = {}
    for text, answer in zip(texts, parsed, strict=True):
        line = " ".join(text.split())
        first.setdefault(answer.reason, line if len(line) <= 60 else line[:59] + "…")
    return AnswerReport(
        source,
        len(parsed),
        sum(len(answer.spans) for answer in parsed),
        {reason: found[reason] for reason in REASONS if found[reason]},
        dict(Counter(note for answer in parsed for note in answer.notes)),
        first,
    )
