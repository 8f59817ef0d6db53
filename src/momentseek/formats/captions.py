"""The shape ActivityNet Captions made common: ``{video: {timestamps, sentences, …}}``, one moment per sentence.

Charades-CD, TACoS and MVMR use it with other keys beside these; queries have no ids in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document
from momentseek.formats.values import check_types, first_value, flatten, has_keys, lists, mapping, matrix, wrong
from momentseek.formats.writing import (
    query_videos,
    require_one_annotator,
    require_one_moment,
    require_ungraded,
    spans,
    texts,
)
from momentseek.moments import Judgements
from momentseek.moments.arrays import FloatArray


def looks_like_captions(document: Document) -> bool:
    """Whether the first video has sentences and timestamps."""
    return has_keys(first_value(document), "timestamps", "sentences")


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
        return flatten([f"{v}:{i}" for i in range(n)] for v, n in zip(self.entries, self.counts, strict=True))

    def per_sentence(self, key: str, document: Document) -> list[Any]:
        """A further list that each video has, one entry per sentence."""
        values = lists(list(self.entries.values()), key, document)
        _same_length(self.entries, values, self.counts, key, document)
        return flatten(values)


def read_captions(document: Document) -> Captions:
    """The common part of all such files."""
    entries = mapping(document)
    for video, entry in entries.items():
        if not has_keys(entry, "timestamps", "sentences"):
            wrong(document, f"video {video}", entry, "an object with timestamps and sentences")
    document.reject_repeats("sentences", len(entries))
    found = list(entries.values())
    sentences = lists(found, "sentences", document)
    times = lists(found, "timestamps", document)
    counts = list(map(len, sentences))
    _same_length(entries, times, counts, "timestamps", document)
    return Captions(
        entries,
        counts,
        flatten([v] * n for v, n in zip(entries, counts, strict=True)),
        check_types(flatten(sentences), {str}, document, "sentences", "text"),
        matrix(flatten(times), 2, document, "timestamp"),
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
    """What a writer needs of one video: its queries by place, and their times and sentences."""

    video: str
    places: list[int]
    times: list[list[float]]
    sentences: list[str]


def by_video(truth: Judgements, format: str) -> list[VideoCaptions]:
    """The queries of each video, after refusing whatever this shape cannot carry."""
    require_ungraded(truth, format)
    require_one_annotator(truth, format)
    require_one_moment(truth, format)
    times, sentences = spans(truth), texts(truth)
    videos: dict[str, VideoCaptions] = {}
    for place, video in enumerate(query_videos(truth, format)):
        assert video is not None
        entry = videos.setdefault(video, VideoCaptions(video, [], [], []))
        entry.places.append(place)
        entry.times.append(times[place])
        entry.sentences.append(sentences[place])
    return list(videos.values())
