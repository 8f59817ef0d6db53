"""Checks of a dataset: impossible times, repeated entries, leaks between splits, queries that break TVR's rules.

TVR's own rules (section 3.1): at least 8 words, and not copied from the subtitles. Public files break other rules:
2,286 of Charades-STA's ends lie beyond the video, and four of ActivityNet's moments start after they end.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from momentseek.construct.decisions import Decision
from momentseek.construct.statistics.counts import AnnotationSplit
from momentseek.construct.text import normalise
from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document
from momentseek.formats.values import has_keys, lists, records, strings
from momentseek.moments.arrays import BoolArray
from momentseek.tables import count

MIN_QUERY_WORDS = 8


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """A query, one of its moments, or a video that breaks a rule; fields that the rule is not about are None.

    >>> RuleViolation("q", "v", 3.0, 9.0, 8.0).words()
    'q: 3–9 s of v, which lasts 8 s'
    >>> RuleViolation("q", text="he sits", repeats="p").words()
    'q repeats p: he sits'
    """

    query_id: str | None = None
    video: str | None = None
    start: float | None = None
    end: float | None = None
    duration: float | None = None
    text: str | None = None
    repeats: str | None = None
    """The earlier query of which this one is an exact duplicate."""

    @property
    def subject(self) -> str:
        """The query's id; for a video that is in two splits, its name."""
        return self.query_id if self.query_id is not None else str(self.video)

    def words(self) -> str:
        """The violation in words."""
        if self.query_id is None:
            return str(self.video)
        if self.text is not None:
            return f"{self.query_id}{f' repeats {self.repeats}' if self.repeats is not None else ''}: {self.text}"
        # Eight digits: an end may lie a hundredth of a second beyond the video.
        lasts = "" if self.duration is None else f", which lasts {self.duration:.8g} s"
        return f"{self.query_id}: {self.start:.8g}–{self.end:.8g} s of {self.video}{lasts}"


@dataclass(frozen=True, slots=True)
class Check:
    """One rule on one split, and what breaks it; ``one`` and ``many`` name that in the singular and plural."""

    check: str
    split: str
    found: tuple[RuleViolation, ...]
    one: str
    many: str

    @property
    def count(self) -> int:
        """Number of violations of the rule."""
        return len(self.found)


Rule = Callable[[AnnotationSplit], Iterable[RuleViolation]]


def run_checks(
    splits: Sequence[AnnotationSplit],
    *,
    min_words: int = MIN_QUERY_WORDS,
    subtitles: Mapping[str, str] | None = None,
) -> list[Check]:
    """Check every rule on every split, in the order of ``splits``; rules that nothing breaks are included.

    ``subtitles`` (video → normalised text) is needed to find queries that are copied from them.

    >>> from momentseek.moments import Judgements
    >>> truth = Judgements.from_groups(["q"], [1], ["v"], [3], [9], durations={"v": 8.0}, queries=["he sits"])
    >>> {c.check: [f.words() for f in c.found] for c in run_checks([AnnotationSplit("s", truth)]) if c.count}
    {'end beyond the video': ['q: 3–9 s of v, which lasts 8 s'], 'fewer than 8 words': ['q: he sits']}
    """
    few = f"fewer than {count(min_words, 'word')}"
    repeat, subs = "(video, times, words)", "copied from the subtitles"
    rules: list[tuple[str, str, str, Rule]] = [
        (*_name_rule("end", "beyond the video"), lambda s: _wrong_moments(s, s.truth.end > _durations(s))),
        (*_name_rule("start", "beyond the video"), lambda s: _wrong_moments(s, s.truth.start >= _durations(s))),
        (
            "start >= end",
            "moment with start >= end",
            "moments with start >= end",
            lambda s: _wrong_moments(s, s.truth.start >= s.truth.end),
        ),
        ("negative start", "negative start", "negative starts", lambda s: _wrong_moments(s, s.truth.start < 0)),
        (*_name_rule("exact duplicate", repeat), find_duplicates),
        (few, f"query of {few}", f"queries of {few}", lambda s: _wrong_queries(s, lambda w: len(w) < min_words)),
    ]
    if subtitles is not None:
        rules.append((subs, f"query {subs}", f"queries {subs}", lambda s: find_copied(s, subtitles)))
    if len(splits) > 1:
        videos = Counter(v for s in splits for v in s.truth.videos)
        texts = Counter(text for s in splits for text in {" ".join(w) for w in s.words})
        asked = "also asked in another split"
        rules += [
            (
                *_name_rule("video", "also in another split"),
                lambda s: (
                    RuleViolation(video=v, duration=_or_none(d))
                    for v, d in zip(s.truth.videos, s.truth.durations.tolist(), strict=True)
                    if videos[v] > 1
                ),
            ),
            (
                f"words {asked}",
                f"query with words {asked}",
                f"queries with words {asked}",
                lambda s: _wrong_queries(s, lambda w: texts[" ".join(w)] > 1),
            ),
        ]
    return [Check(name, s.name, tuple(rule(s)), one, many) for name, one, many, rule in rules for s in splits]


def find_duplicates(split: AnnotationSplit) -> list[RuleViolation]:
    """Find queries that repeat an earlier query's video, times and words."""
    truth, texts = split.truth, split.texts
    if not texts:
        return []
    seen: dict[tuple[str, float, float, str], int] = {}
    found = []
    for q, v, start, end in zip(
        truth.row_query.tolist(), truth.video.tolist(), truth.start.tolist(), truth.end.tolist(), strict=True
    ):
        first = seen.setdefault((truth.videos[v], start, end, texts[q]), q)
        if first != q:
            place = (truth.videos[v], start, end, _or_none(float(truth.durations[v])))
            found.append(RuleViolation(truth.query_ids[q], *place, texts[q], truth.query_ids[first]))
    return found


def find_copied(split: AnnotationSplit, subtitles: Mapping[str, str]) -> list[RuleViolation]:
    """Find queries whose words are, in this order, in the subtitles of their video."""
    truth = split.truth
    found = []
    for q in range(len(split.texts)):
        wanted = " ".join(split.words[q])
        videos = {truth.videos[v] for v in truth.video[truth.offsets[q] : truth.offsets[q + 1]].tolist()}
        if wanted and any(f" {wanted} " in f" {subtitles.get(v, '')} " for v in videos):
            found.append(_query_violation(split, q))
    return found


def as_decisions(checks: Iterable[Check]) -> list[Decision]:
    """Every violation as a decision for the report: the query (or video), the rule, and the values."""
    return [Decision(f.subject, "found", c.check, {"split": c.split, **asdict(f)}) for c in checks for f in c.found]


def _name_rule(noun: str, rest: str) -> tuple[str, str, str]:
    """A rule's name, and what breaks it in the singular and plural."""
    return f"{noun} {rest}", f"{noun} {rest}", f"{noun}s {rest}"


def _durations(split: AnnotationSplit) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Each row's video duration; NaN, which no time exceeds, where unknown."""
    return split.truth.durations[split.truth.video]


def _or_none(seconds: float) -> float | None:
    return None if seconds != seconds else seconds


def _wrong_queries(split: AnnotationSplit, wrong: Callable[[list[str]], bool]) -> Iterable[RuleViolation]:
    return (_query_violation(split, q) for q, found in enumerate(split.words) if wrong(found))


def _query_violation(split: AnnotationSplit, q: int) -> RuleViolation:
    """A query and its words; with its moment if it has just one."""
    truth = split.truth
    rows = range(int(truth.offsets[q]), int(truth.offsets[q + 1]))
    if len(rows) != 1:
        return RuleViolation(truth.query_ids[q], text=split.texts[q])
    return replace(_moment_violation(split, rows[0]), text=split.texts[q])


def _wrong_moments(split: AnnotationSplit, wrong: BoolArray) -> list[RuleViolation]:
    return [_moment_violation(split, r) for r in np.flatnonzero(wrong).tolist()]


def _moment_violation(split: AnnotationSplit, row: int) -> RuleViolation:
    truth, video = split.truth, int(split.truth.video[row])
    return RuleViolation(
        truth.query_ids[truth.row_query[row]],
        truth.videos[video],
        float(truth.start[row]),
        float(truth.end[row]),
        _or_none(float(truth.durations[video])),
    )


SPEAKER_PATTERN = re.compile(r"\([^()]{1,40}:\)")
"""Speakers' names in TVQA's cues, ``(Rachel:)``, which nobody says aloud."""


def read_subtitles(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read what is said in every video (normalised) from a file of TVR's subtitles.

    The file is JSON Lines: ``{"vid_name": …, "sub": [{"text": …, "start": …, "end": …}, …]}``.
    """
    document = open_document(path)
    if not document.is_json:
        raise MomentseekError(f"{path}: not subtitles in TVR's form; expected JSON Lines with vid_name and sub")
    rows = records(document)
    said: dict[str, list[str]] = {}
    for video, cues in zip(strings(rows, "vid_name", document), lists(rows, "sub", document), strict=True):
        if not all(has_keys(cue, "text") and isinstance(cue["text"], str) for cue in cues):
            raise MomentseekError(f"{path}: a cue of {video} has no text; every cue is an object with text, start, end")
        said.setdefault(video, []).extend(cue["text"] for cue in cues)
    return {
        video: normalise(" ".join(SPEAKER_PATTERN.sub(" ", text) for text in texts)) for video, texts in said.items()
    }
