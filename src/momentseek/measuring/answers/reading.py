"""Parse a prose answer into moments, or into the reason why it has none.

Nothing is repaired silently. A span is dropped if it is reversed (its start is after its end), has no length or lies
outside the video. A span that extends beyond the video is cut at the video's ends. Both are reported. A query whose
answer has no span gets an empty list and one of ``REASONS``.
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
}
_LEFT_OUT |= {"unknown unit": "a span of unknown unit"}
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−~〜～→⟶➔"), "-")
_PLAIN_SIGNS = {"’": "'", "“": '"', "”": '"', "秒": " s ", "分钟": " min ", "到": " to ", "至": " to ", "从": " from "}
_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i can(?:'t|not)|i (?:do not|don't) have (?:access|the ability)|"
    r"as an ai|"
    r"unable to (?:view|watch|process|access|see|analy[sz]e|determine|locate|identify|provide)|"
    r"cannot (?:view|watch|process|access|assist|provide|determine)|can(?:'t|not) (?:help|assist)|"
    r"no video (?:was|is|has been) (?:provided|attached|uploaded)|please (?:provide|upload|share) the video|"
    r"(?:difficult|hard|impossible|not possible) to (?:determine|say|tell|identify|pinpoint)|"
    r"(?:not|n't) (?:\w+ )?(?:contain |provide |have )?(?:enough|sufficient)|"
    r"insufficient (?:information|context|frames))",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"\b(?:(?:does|do|did|is|are|was|were)(?: not|n't) (?:actually )?(?:occur|happen|appear|contain|show|shown|present|"
    r"depict|depicted|include|visible|found|seen|feature|take place|exist|there|match|any|answerable|in the video)|"
    r"(?:does|do|did)(?: not|n't) \w+ (?:anywhere )?(?:in|during) (?:this|the) (?:video|clip)|"
    r"no (?:such|relevant|matching|corresponding|clear) \w+|"
    r"no (?:scene|part|point|moment|time|evidence|sign|indication|instance|trace) (?:of|where|when|in|at)|"
    r"no \w+(?: \w+)? (?:appears?|occurs?|happens?|is shown|is visible|can be seen)|(?:nobody|no one) \w+|"
    r"never (?:occurs|happens|appears|shown|seen)|there (?:is|are|was) no\b|there (?:isn't|aren't|wasn't) (?:any|a)\b|"
    r"not (?:present|found|shown|visible|depicted|applicable)|none of the (?:frames|segments)|absent from|"
    r"(?:do not|don't|did not|didn't|could not|couldn't|can't|cannot) (?:see|find|locate|detect|observe) "
    r"(?:any(?:one|body|thing)?|an?|the|that|this|it|such)|"
    r"cannot be (?:matched|found|located|seen|identified))\b|"
    r"^\W*(?:n/?a|none|null|nothing|not found|unanswerable|no answer|no(?: moments?| match)?)\W*$",
    re.IGNORECASE,
)
_TOO_LITTLE = re.compile(r"\b(?:enough|sufficient)\b", re.IGNORECASE)
_STILL = re.compile(
    r"\b(?:until|till|before|after|however|but|closest|nearest|most likely|likely|instead|probably)\b", re.IGNORECASE
)
_WHOLE = re.compile(
    r"\b(?:throughout|(?:entire|whole|full) (?:video|clip|duration|length|footage|time)|"
    r"for the duration of the video|all through)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:(?:at|in|near|towards?|around|by|until|from) the (?:very )?"
    r"(?:beginning|start|middle|end|first|second|last|latter|final|opening|closing)|early in|late in|halfway|midway|"
    r"(?:opening|closing|final|initial|last|first) (?:scenes?|shots?|moments?|part))\b",
    re.IGNORECASE,
)
_CONFIDENCE = re.compile(
    r"\b(?:confidence|certainty|probability)(?: score| level)?\W{0,4}(?:of |is )?(\d*\.?\d+)\s*(%?)", re.IGNORECASE
)
_FINAL = re.compile(r"\b(?:final answer|answer|in conclusion|therefore|in summary)\b\W{0,4}", re.IGNORECASE)
_FPS = re.compile(r"(\d+(?:\.\d+)?)\s*(?:fps|frames per second)\b", re.IGNORECASE)


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
        clip = Clip(clip.duration, clip.fps or float(fps[1]), clip.units)
    structured = read_structured(said, clip)
    plain = _plain_prose(said)
    if structured is not None:
        found = _settle(structured.spans, clip) if structured.spans else ParsedAnswer((), "absent")
        return ParsedAnswer((), "absent") if found.reason == "zero length" and _ABSENT.search(plain) else found
    expanded = expand_words(plain, clip)
    spans = _prose_spans(expanded, clip)
    if _is_absent(expanded, clip):
        return ParsedAnswer((), "absent")
    if spans:
        return _settle(spans, clip)
    if _WHOLE.search(plain) and not _REFUSAL.search(plain):
        return _whole_video(clip)
    return ParsedAnswer((), _reason(plain, unfinished))


def _final_words(text: str) -> tuple[str, bool]:
    """Return an answer without its reasoning and markup, and whether it ends in the middle of its reasoning."""
    said = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).translate(_DASHES)
    for sign, word in _PLAIN_SIGNS.items():
        said = said.replace(sign, word)
    said = re.sub(r"(\d{9})\d+", r"\1", said)  # no time has more digits, and long digit strings are slow to search
    said = re.sub(r"(?<=[\ds])\.\.+(?=\d)", " - ", said)
    said = re.sub(r"<(think|thinking|reasoning)>.*?</\1>", " ", said, flags=re.DOTALL | re.IGNORECASE)
    said, *unfinished = re.split(r"<(?:think|thinking|reasoning)>", said, maxsplit=1, flags=re.IGNORECASE)
    inner = re.findall(r"<answer>(.*?)(?:</answer>|$)", said, flags=re.DOTALL | re.IGNORECASE)
    said = inner[-1] if inner and inner[-1].strip() else said
    return plain_tokens(said), bool(unfinished)


def _plain_prose(said: str) -> str:
    plain = re.sub(r"[*`]+|(?<!\w)_|_(?!\w)", "", said)
    return plain_numbers(re.sub(r"\b(start|end|begin|stop)_(time|sec|frame)", r"\1 \2", plain, flags=re.IGNORECASE))


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
    """Whether a sentence without a time says that there is no such moment, and no other sentence names one."""
    sentences = re.split(r"(?<=[.!?])\s+|\n+", said)
    for i, sentence in enumerate(sentences):
        if _ABSENT.search(sentence) and not _TOO_LITTLE.search(sentence) and not find_ranges(sentence, clip):
            rest = " ".join(sentences[i:])
            return not (_STILL.search(rest) and find_ranges(rest, clip)) and not find_ranges(
                " ".join(sentences[:i]), clip
            )
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


def _settle(spans: Sequence[AnswerSpan], clip: Clip) -> ParsedAnswer:
    """Drop impossible spans and cut the others to the video.

    If no span is left, the answer takes the reason of the first one.
    """
    kept: dict[tuple[float, float], AnswerSpan] = {}
    notes: list[str] = []
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
                notes.append(
                    "a span cut at the start of the video" if start < 0 else "a span cut at the end of the video"
                )
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
