"""Re-annotations of a truth's queries: matched by video and sentence, one truth per annotator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments import Judgements
from momentseek.moments.arrays import FloatArray, IntArray

_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Reannotation:
    """``place``: the truth's queries that were annotated anew; start and end in seconds, (queries, annotators).

    Annotators are numbered by their order within each query: number 1 of two queries may be two people.
    """

    place: IntArray
    start: FloatArray
    end: FloatArray
    asked: int
    notes: tuple[str, ...] = ()

    @property
    def annotators(self) -> int:
        """How many there are for every query."""
        return int(self.start.shape[1])

    def truth_of(self, truth: Judgements, annotator: int) -> Judgements:
        """The matched queries with this annotator's moments as the only relevant ones."""
        video = truth.video[truth.offsets[self.place]]
        return Judgements(
            query_ids=tuple(truth.query_ids[i] for i in self.place),
            offsets=np.arange(len(self.place) + 1, dtype=np.int64),
            videos=truth.videos,
            video=video,
            start=self.start[:, annotator],
            end=self.end[:, annotator],
            relevance=np.ones(len(self.place), dtype=np.int8),
            durations=truth.durations,
            source=f"annotator {annotator + 1}",
        )


def normalise(sentence: str) -> str:
    """Lower case, letters and digits only, so that punctuation and spaces do not hinder a match.

    >>> normalise(" Person opens the door. ")
    'personopensthedoor'
    """
    return _OTHER.sub("", sentence.lower())


def match_reannotations(tables: Sequence[Judgements], truth: Judgements) -> Reannotation:
    """Find each re-annotated query in the truth, and turn its annotators' times into seconds.

    Times are taken as shares of the length that the table gives its videos (100 for percent). Queries with another
    number of annotators than most, or with an impossible moment among theirs, are left out and noted.
    """
    if truth.queries is None:
        raise MomentseekError(f"{truth.source}: has no sentences, by which re-annotated queries are recognised")
    wanted: dict[tuple[str, str], list[int]] = {}
    for i, sentence in enumerate(truth.queries):
        if truth.offsets[i] < truth.offsets[i + 1]:
            video = truth.videos[truth.video[truth.offsets[i]]]
            wanted.setdefault((video.removeprefix("v_"), normalise(sentence)), []).append(i)
    found: list[tuple[int, FloatArray, FloatArray]] = []
    asked = 0
    for table in tables:
        for query in range(len(table)):
            rows = slice(int(table.offsets[query]), int(table.offsets[query + 1]))
            asked += 1
            if rows.start == rows.stop:
                continue
            video = table.videos[table.video[rows.start]].removesuffix(".mp4").removeprefix("v_")
            key = (video, normalise(table.queries[query] if table.queries else ""))
            if wanted.get(key):
                seconds = table.durations[table.video[rows]]
                scale = np.where(np.isnan(seconds), 100.0, seconds)
                found.append((wanted[key].pop(0), table.start[rows] / scale, table.end[rows] / scale))
    if not found:
        raise MomentseekError(f"none of the {asked:,} re-annotated queries is in {truth.source}")
    return _in_seconds(found, asked, truth)


def _in_seconds(found: list[tuple[int, FloatArray, FloatArray]], asked: int, truth: Judgements) -> Reannotation:
    counts = np.array([len(start) for _, start, _ in found])
    usual = int(np.bincount(counts).argmax())
    whole = [entry for entry, n in zip(found, counts, strict=True) if n == usual]
    place = np.array([entry[0] for entry in whole], dtype=np.int64)
    seconds = truth.durations[truth.video[truth.offsets[place]]]
    if np.isnan(seconds).any():
        raise MomentseekError(
            f"{truth.source}: re-annotations are shares of the video, so its videos' durations are needed (`videos`)"
        )
    start = np.array([entry[1] for entry in whole]) * seconds[:, None]
    end = np.array([entry[2] for entry in whole]) * seconds[:, None]
    sound = np.all((start >= 0) & (start < end), axis=1)
    notes = []
    if len(whole) < len(found):
        notes.append(f"{len(found) - len(whole):,} queries without {usual} annotators left out")
    if not sound.all():
        notes.append(f"{int((~sound).sum()):,} queries left out, where an annotator's moment has no length")
    if not sound.any():
        raise MomentseekError("no re-annotated query is left, as each has an annotator's moment without length")
    return Reannotation(place[sound], start[sound], end[sound], asked, tuple(notes))
