"""Annotations as TVR-Ranking sees them: queries on one side, moments with captions on the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from momentseek.construct.changing_distribution.merging import require_one_annotator
from momentseek.errors import MomentseekError
from momentseek.formats.writing import require_durations, row_videos, spans
from momentseek.moments import Judgements
from momentseek.moments.arrays import IntArray


@dataclass(frozen=True, slots=True)
class CaptionedMoment:
    """A moment and the caption that describes it."""

    video: str
    start: float
    end: float
    duration: float
    """Length of the whole video, in seconds."""
    caption: str


@dataclass(frozen=True)
class CaptionedMoments:
    """Queries with their texts, and all captioned moments that may answer them, in the order of the files."""

    queries: Mapping[str, str]
    moments: Sequence[CaptionedMoment]
    own: Mapping[str, tuple[int, ...]]
    """Places in ``moments`` of the moments that each query was written for, by query id."""

    @cached_property
    def moment(self) -> IntArray:
        """The number of each captioned moment's (video, start, end): one moment may have several captions."""
        numbers: dict[tuple[str, float, float], int] = {}
        return np.array([numbers.setdefault((m.video, m.start, m.end), len(numbers)) for m in self.moments], np.int64)

    @property
    def size(self) -> int:
        """Number of different moments, by video, start and end."""
        return int(self.moment.max(initial=-1)) + 1


def collect_moments(truths: Sequence[Judgements]) -> CaptionedMoments:
    """Collect the queries and captioned moments of several truths.

    A moment's caption is the file's own (TVR-Ranking's files have them), else the query written for it. The same
    moment with the same caption counts once; a moment without a caption is left out.

    >>> truth = Judgements.from_groups(
    ...     ["1", "2"], [1, 1], ["a", "b"], [0, 4], [5, 9], durations={"a": 20, "b": 30}, queries=["runs", "sits"])
    >>> collection = collect_moments([truth])
    >>> collection.moments[1], collection.own["2"]
    (CaptionedMoment(video='b', start=4.0, end=9.0, duration=30.0, caption='sits'), (1,))
    """
    queries: dict[str, str] = {}
    places: dict[CaptionedMoment, int] = {}
    own: dict[str, tuple[int, ...]] = {}
    for truth in truths:
        if truth.queries is None:
            raise MomentseekError(f"{truth.source}: has no words to compare; give annotations with sentences")
        require_one_annotator(truth)
        seconds = require_durations(truth, "tvr-ranking")
        captions = _captions(truth)
        rows = list(zip(row_videos(truth), spans(truth), truth.video.tolist(), captions, strict=True))
        for query, text in zip(truth.query_ids, truth.queries, strict=True):
            if query in queries:
                raise MomentseekError(f"{truth.source}: query {query} is in another file too; give each file once")
            queries[query] = text
            found = [
                CaptionedMoment(v, s, e, seconds[c], words)
                for v, (s, e), c, words in rows[truth.rows(query)]
                if words.strip()
            ]
            own[query] = tuple(places.setdefault(moment, len(places)) for moment in found)
    if not places:
        raise MomentseekError(f"{truths[0].source}: no moment has a caption; give annotations with sentences")
    return CaptionedMoments(queries, tuple(places), own)


def _captions(truth: Judgements) -> list[str]:
    assert truth.queries is not None
    texts = [truth.queries[q] for q in truth.row_query.tolist()]
    given = truth.columns.get("caption", [None] * len(texts))
    return [c if isinstance(c, str) else text for c, text in zip(given, texts, strict=True)]


def hours(collection: CaptionedMoments, places: Iterable[int]) -> float:
    """Total length of some moments in hours (Table 1's M.Dur); each counts once, however many captions it has."""
    spans = {(m.video, m.start, m.end) for m in (collection.moments[p] for p in places)}
    return math.fsum(sorted(end - start for _, start, end in spans)) / 3600
