"""The papers' tables about a dataset: counts, lengths and words (TVR, Table 1; TVR-Ranking, Tables 1 and 4).

Moments count once however many queries have them: durations and ratios are over different moments (video and times),
as the figures of TVR-Ranking's two tables show (29.48 h / 12,191 moments = 8.71 s). Videos count once as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from momentseek.construct.text import tokens, words
from momentseek.language.verbs import verbs
from momentseek.moments import Judgements
from momentseek.moments.arrays import FloatArray, IntArray


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


@dataclass(frozen=True)
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


def compute_statistics(splits: Sequence[AnnotationSplit], name: str) -> Statistics:
    """Compute the figures of ``splits`` taken together; moments, videos and words that they share count once.

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
    rows = [
        np.column_stack([np.array([code[v] for v in t.videos])[t.video], t.start, t.end])
        if len(t.video)
        else _NO_MOMENTS
        for t in (split.truth for split in splits)
    ]
    moments = np.unique(np.concatenate(rows), axis=0)
    length = moments[:, 2] - moments[:, 1]
    whole = duration[moments[:, 0].astype(np.int64)]
    relevance = np.concatenate([split.truth.relevance for split in splits])
    queries = sum(len(split.truth) for split in splits)
    texts = [w for split in splits for w in split.words]
    acts = [v for split in splits for v in split.verbs]
    counts = np.concatenate([split.token_counts for split in splits])
    known = whole > 0
    return Statistics(
        name,
        queries,
        len(relevance),
        len(moments),
        len(seconds),
        float((relevance > 0).sum()) / queries,
        {str(level): int(n) for level, n in enumerate(np.bincount(relevance)) if n},
        LengthSummary.of(np.array([len(w) for w in texts], dtype=np.int64)),
        float(counts.mean()) if len(counts) else None,
        len({word for w in texts for word in w}),
        len({verb for v in acts for verb in v}),
        sum(map(len, acts)) / len(acts) if acts else None,
        LengthSummary.of(length),
        LengthSummary.of(duration[np.isfinite(duration)]),
        float((length[known] / whole[known]).mean()) if known.any() else None,
        _types(splits),
    )


_NO_MOMENTS = np.empty((0, 3))


def _types(splits: Sequence[AnnotationSplit]) -> dict[str, tuple[int, int]]:
    queries: dict[str, int] = {}
    videos: dict[str, set[str]] = {}
    for truth in (split.truth for split in splits):
        kinds = truth.fields.get("type", ())
        for kind in kinds:
            queries[kind] = queries.get(kind, 0) + 1
        if kinds:
            for q, v in zip(truth.row_query.tolist(), truth.video.tolist(), strict=True):
                videos.setdefault(kinds[q], set()).add(truth.videos[v])
    return {kind: (n, len(videos.get(kind, ()))) for kind, n in queries.items()}
