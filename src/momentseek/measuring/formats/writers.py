"""Helpers of writers: ids and numbers as community files have them, and checks of what a format can hold."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import MomentTable
from momentseek.measuring.formats import checked
from momentseek.measuring.formats.document import Document

LONGEST_NUMBER = 18
"""Maximum number of digits that every JSON reader accepts as a whole number."""


def dump(value: Any) -> bytes:
    """Encode one JSON value with Python's default separators and no final newline."""
    return json.dumps(value).encode()


def dump_lines(values: Iterable[Any]) -> bytes:
    """Encode JSON Lines without a final newline, like TVR's and QVHighlights' own files."""
    return "\n".join(map(json.dumps, values)).encode()


def write_id(query_id: str) -> int | str:
    """Return a query id as community files have it: as a number if possible.

    >>> write_id("90200"), write_id("3MSZA:2"), write_id("007")
    (90200, '3MSZA:2', '007')
    """
    plain = query_id.isascii() and query_id.isdigit() and len(query_id) <= LONGEST_NUMBER
    return int(query_id) if plain and str(int(query_id)) == query_id else query_id


def numeric_ids(table: MomentTable, format: str, key: str) -> list[int]:
    """Return all query ids as numbers, for formats that only have numbers."""
    ids = [write_id(q) for q in table.query_ids]
    for query in ids:
        if isinstance(query, str):
            raise MomentseekError(
                f"{format} needs whole numbers as {key}, but {table.source} has query {query!r}; "
                "write native instead, which takes any id"
            )
    return ids  # type: ignore[return-value]


def whole(value: float) -> int | float:
    """Return a number as an integer if it is whole.

    >>> whole(150.0), whole(2.5)
    (150, 2.5)
    """
    return int(value) if value.is_integer() else value


def texts(table: MomentTable) -> Sequence[str]:
    """Return the texts of the queries, empty if unknown."""
    return table.queries if table.queries is not None else [""] * len(table)


def groups(table: MomentTable, values: Sequence[Any]) -> list[Sequence[Any]]:
    """Split ``values``, one per row, by query."""
    bounds = table.offsets.tolist()
    return [values[a:b] for a, b in itertools.pairwise(bounds)]


def spans(table: MomentTable) -> list[list[float]]:
    """Return ``[start, end]`` of every row."""
    result: list[list[float]] = np.column_stack([table.start, table.end]).tolist()
    return result


def row_videos(table: MomentTable) -> list[str]:
    """Return the name of every row's video."""
    return [table.videos[code] for code in table.video.tolist()]


def query_videos(table: MomentTable, format: str) -> list[str | None]:
    """Return the single video of each query's moments (None for a query without moments)."""
    found: list[str | None] = []
    for query, videos in zip(table.query_ids, groups(table, row_videos(table)), strict=True):
        if len(set(videos)) > 1:
            raise MomentseekError(
                f"{format} keeps a query to one video, but {table.source} has query {query} in {len(set(videos))}"
            )
        found.append(videos[0] if videos else None)
    return found


def require_ungraded(truth: Judgements, format: str) -> None:
    """Raise an error for relevance levels other than 1."""
    other = truth.relevance[truth.relevance != 1]
    if len(other):
        raise MomentseekError(
            f"{format} has no relevance levels, but {truth.source} has moments of relevance {other[0]}; "
            "write tvr-ranking or native instead"
        )


def require_one_moment(truth: Judgements, format: str) -> None:
    """Raise an error for queries with no moment or several."""
    for query, count in zip(truth.query_ids, truth.counts.tolist(), strict=True):
        if count != 1:
            raise MomentseekError(
                f"{format} has exactly one moment per query, but {truth.source} has {count or 'none'} for query {query}"
            )


def require_one_annotator(truth: Judgements, format: str) -> None:
    """Raise an error for a truth whose hits depend on agreement between annotators."""
    if truth.agreement is not None and (truth.agreement > 1).any():
        raise MomentseekError(
            f"{format} cannot say that a hit needs {truth.agreement.max()} annotators, as {truth.source} does; "
            "write tvr, didemo or native instead"
        )


def require_durations(truth: Judgements, format: str) -> list[float]:
    """Return the seconds of each of ``videos``; raise an error if one that is used is unknown."""
    used = np.unique(truth.video)
    unknown = used[np.isnan(truth.durations[used])]
    if len(unknown):
        raise MomentseekError(
            f"{format} needs every video's duration, and {truth.source} has none for {truth.videos[unknown[0]]}; "
            f"give a list of videos ({parameter('videos')})"
        )
    return [float(seconds) for seconds in truth.durations]


def single(runs: Sequence[Run], format: str) -> Run:
    """Return the only run, for formats that hold one; raise an error unless it has moments and finite scores."""
    if len(runs) != 1:
        tasks = ", ".join(r.task for r in runs)
        raise MomentseekError(f"{format} holds one list of predictions, but {runs[0].source} has {len(runs)} ({tasks})")
    if runs[0].task == "VR":
        raise MomentseekError(f"{format} holds moments, but {runs[0].source} ranks whole videos (VR)")
    finite_scores(runs[0], format)
    return runs[0]


def finite_scores(run: Run, format: str) -> None:
    """Raise an error for scores that JSON cannot represent."""
    bad = np.flatnonzero(~np.isfinite(run.score))
    if len(bad):
        query = run.query_ids[int(run.row_query[bad[0]])]
        raise MomentseekError(f"{format} cannot hold the score {run.score[bad[0]]} of query {query} in {run.source}")
    if run.saliency is not None and not np.isfinite(run.saliency.scores).all():
        raise MomentseekError(f"{format} cannot hold the saliency scores in {run.source} that are not finite numbers")


def looks_like_captions(document: Document) -> bool:
    """Whether the first video has sentences and timestamps."""
    return checked.has_keys(checked.first_value(document), "timestamps", "sentences")


@dataclass(frozen=True)
class Captions:
    """All videos' sentences in the file's order."""

    entries: dict[str, dict[str, Any]]
    counts: list[int]
    """Number of sentences of each video."""
    videos: list[str]
    """The video of each sentence."""
    sentences: list[str]
    times: FloatArray

    @property
    def ids(self) -> list[str]:
        """``VIDEO:i``, counting each video's sentences from 0."""
        return checked.flatten([f"{v}:{i}" for i in range(n)] for v, n in zip(self.entries, self.counts, strict=True))

    def per_sentence(self, key: str, document: Document) -> list[Any]:
        """Return another list of each video that has one entry per sentence."""
        values = checked.lists(list(self.entries.values()), key, document)
        _same_length(self.entries, values, self.counts, key, document)
        return checked.flatten(values)


def read_captions(document: Document) -> Captions:
    """Read the part that all files of captions by video have in common."""
    entries = checked.mapping(document)
    for video, entry in entries.items():
        if not checked.has_keys(entry, "timestamps", "sentences"):
            checked.wrong(document, f"video {video}", entry, "an object with timestamps and sentences")
    document.reject_repeats("sentences", len(entries))
    found = list(entries.values())
    sentences = checked.lists(found, "sentences", document)
    times = checked.lists(found, "timestamps", document)
    counts = list(map(len, sentences))
    _same_length(entries, times, counts, "timestamps", document)
    return Captions(
        entries,
        counts,
        checked.flatten([v] * n for v, n in zip(entries, counts, strict=True)),
        checked.check_types(checked.flatten(sentences), {str}, document, "sentences", "text"),
        checked.matrix(checked.flatten(times), 2, document, "timestamp"),
    )


def _same_length(
    entries: dict[str, Any], values: list[list[Any]], counts: list[int], key: str, document: Document
) -> None:
    for video, some, count in zip(entries, values, counts, strict=True):
        if len(some) != count:
            sentences = "1 sentence" if count == 1 else f"{count} sentences"
            listed = f"1 entry in {key}" if len(some) == 1 else f"{len(some)} entries in {key}"
            raise MomentseekError(f"{document.path}: video {video} has {sentences}, but {listed}")


@dataclass(frozen=True)
class VideoCaptions:
    """The queries of one video, for a writer: their positions, times and sentences."""

    video: str
    positions: list[int]
    times: list[list[float]]
    sentences: list[str]


def by_video(truth: Judgements, format: str) -> list[VideoCaptions]:
    """Return the queries of each video; raise an error for whatever this structure cannot hold."""
    require_ungraded(truth, format)
    require_one_annotator(truth, format)
    require_one_moment(truth, format)
    times, sentences = spans(truth), texts(truth)
    videos: dict[str, VideoCaptions] = {}
    for position, video in enumerate(query_videos(truth, format)):
        assert video is not None
        entry = videos.setdefault(video, VideoCaptions(video, [], [], []))
        entry.positions.append(position)
        entry.times.append(times[position])
        entry.sentences.append(sentences[position])
    return list(videos.values())
