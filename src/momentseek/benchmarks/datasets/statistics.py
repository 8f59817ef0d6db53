"""Statistics and checks of a dataset (TVR, Table 1; TVR-Ranking, Tables 1 and 4).

A moment counts once even if several queries have it: durations and ratios are over different moments (video and times),
as the figures of TVR-Ranking's two tables show (29.48 h / 12,191 moments = 8.71 s). Videos count once too. The checks
find impossible times, repeated entries, leaks between splits and queries that break TVR's own rules (section 3.1: at
least 8 words, and not copied from the subtitles).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np

from momentseek.benchmarks.datasets.common import Decision, normalise, tokens, words
from momentseek.core.errors import MomentseekError
from momentseek.core.language import verbs
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import count
from momentseek.measuring.formats.checked import has_keys, lists, records, strings
from momentseek.measuring.formats.document import open_document


@dataclass(frozen=True, slots=True)
class LengthSummary:
    """Smallest, mean and largest of some lengths, and their sum; None if there are none."""

    least: float | None
    mean: float | None
    most: float | None
    total: float

    @classmethod
    def of(cls, values: FloatArray | IntArray) -> LengthSummary:
        """Summarise an array of lengths."""
        if not len(values):
            return cls(None, None, None, 0.0)
        return cls(float(values.min()), float(values.mean()), float(values.max()), float(values.sum()))


@dataclass(frozen=True, eq=False)
class AnnotationSplit:
    """One truth file, with its texts split into words only once."""

    name: str
    truth: Judgements

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the queries; empty if the file has none."""
        given = self.truth.queries or ()
        return given if any(given) else ()

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of every query."""
        return [words(text) for text in self.texts]

    @cached_property
    def token_counts(self) -> IntArray:
        """Number of words and punctuation marks of each query."""
        return np.array([len(tokens(text)) for text in self.texts], dtype=np.int64)

    @cached_property
    def verbs(self) -> list[list[str]]:
        """The verbs of every query, by a small rule (see ``language.verbs``)."""
        return [verbs(text) for text in self.texts]


LabelCounts = dict[int, int]
"""Number of queries by the number that a person gave them."""


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The figures of one split, or of several together."""

    name: str
    queries: int
    pairs: int
    """Number of query–moment pairs (rows of the file)."""
    moments: int
    """Number of different moments."""
    videos: int
    relevant_per_query: float
    """Mean number of pairs with a relevance of 1 or more per query."""
    levels: dict[str, int]
    words: LengthSummary
    """Words per query, without punctuation."""
    tokens_per_query: float | None
    """Mean number of words and punctuation marks per query, as TVR's Table 1 counts."""
    vocabulary: int
    verbs: int
    """Number of different verbs."""
    verbs_per_query: float | None
    moment_seconds: LengthSummary
    video_seconds: LengthSummary
    """Lengths of the videos whose duration is known, in seconds."""
    ratio: float | None
    """Mean of moment duration / video duration."""
    types: dict[str, tuple[int, int]]
    """Number of queries and number of their videos, by query type (TVR, Table 13)."""
    labels: dict[str, LabelCounts]
    """Number of labelled queries by value, for each label given by hand (TVR, Table 2)."""


def compute_statistics(
    splits: Sequence[AnnotationSplit], name: str, labels: Mapping[str, Mapping[str, int]] | None = None
) -> Statistics:
    """Compute the figures of ``splits`` taken together; moments, videos and words that they share count once.

    ``labels`` are numbers that people gave to queries, by the label's name and the query's id.

    >>> truth = Judgements.from_groups(["a", "b"], [1, 1], ["v", "v"], [0, 0], [5, 5], durations={"v": 20.0},
    ...                                queries=["A man sits down.", "he sits"])
    >>> found = compute_statistics([AnnotationSplit("s", truth)], "s")
    >>> found.queries, found.moments, found.words.mean, found.vocabulary, found.moment_seconds.mean, found.ratio
    (2, 1, 3.0, 5, 5.0, 0.25)
    """
    seconds: dict[str, float] = {}
    for split in splits:
        for video, duration in zip(split.truth.videos, split.truth.durations.tolist(), strict=True):
            if seconds.setdefault(video, duration) != seconds[video]:
                seconds[video] = duration  # unknown in the one file, known in the other
    code = {video: i for i, video in enumerate(seconds)}
    duration = np.array(list(seconds.values()))
    tables = [split.truth for split in splits if len(split.truth.video)]
    rows = [np.column_stack([np.array([code[v] for v in t.videos])[t.video], t.start, t.end]) for t in tables]
    moments = np.unique(np.concatenate([np.empty((0, 3)), *rows]), axis=0)
    length = moments[:, 2] - moments[:, 1]
    whole = duration[moments[:, 0].astype(np.int64)]
    relevance = np.concatenate([split.truth.relevance for split in splits])
    queries = sum(len(split.truth) for split in splits)
    texts = [w for split in splits for w in split.words]
    acts = [v for split in splits for v in split.verbs]
    counts = np.concatenate([split.token_counts for split in splits])
    known = whole > 0
    return Statistics(
        name=name,
        queries=queries,
        pairs=len(relevance),
        moments=len(moments),
        videos=len(seconds),
        relevant_per_query=float((relevance > 0).sum()) / queries,
        levels={str(level): int(n) for level, n in enumerate(np.bincount(relevance)) if n},
        words=LengthSummary.of(np.array([len(w) for w in texts], dtype=np.int64)),
        tokens_per_query=float(counts.mean()) if len(counts) else None,
        vocabulary=len({word for w in texts for word in w}),
        verbs=len({verb for v in acts for verb in v}),
        verbs_per_query=sum(map(len, acts)) / len(acts) if acts else None,
        moment_seconds=LengthSummary.of(length),
        video_seconds=LengthSummary.of(duration[np.isfinite(duration)]),
        ratio=float((length[known] / whole[known]).mean()) if known.any() else None,
        types=_types(splits),
        labels=_count_labels(splits, labels or {}),
    )


def _count_labels(splits: Sequence[AnnotationSplit], labels: Mapping[str, Mapping[str, int]]) -> dict[str, LabelCounts]:
    asked = {query for split in splits for query in split.truth.query_ids}
    found = {name: Counter(n for query, n in given.items() if query in asked) for name, given in labels.items()}
    return {name: dict(sorted(counts.items())) for name, counts in found.items() if counts}


def _types(splits: Sequence[AnnotationSplit]) -> dict[str, tuple[int, int]]:
    typed = [(split.truth, split.truth.fields["type"]) for split in splits if "type" in split.truth.fields]
    queries = Counter(kind for _, kinds in typed for kind in kinds)
    videos = {(kinds[q], t.videos[v]) for t, kinds in typed for q, v in zip(t.row_query, t.video, strict=True)}
    return {kind: (n, sum(of == kind for of, _ in videos)) for kind, n in queries.items()}


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

    >>> from momentseek import Judgements
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
