"""What searches read of a library, kept warm while the library stays as it is: vectors, videos, encoded texts.

A query is judged by how it scores on the library in general, so a few thousand clips are sampled: of every video each
``step``-th clip, beginning at a place that follows from the video's own vectors. So the sample depends on what the
videos are, not on how they are stored, and samples of parts of a library make up the sample of the whole.
"""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.encoders import LibraryEncoders
from momentseek.library.reader import LibraryReader, Snapshot
from momentseek.library.scan.scan import Scan
from momentseek.library.segments import Segment, locate
from momentseek.library.video import Video
from momentseek.library.words import content_words
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import BoundaryHead

if TYPE_CHECKING:
    from momentseek.recognition.exported.manifest import EncoderManifest
    from momentseek.recognition.exported.moment_map import MomentMap


Keys = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Some rows of vectors, each with the number of its video and its place in the video, by which they are sorted."""

    keys: Keys
    places: NDArray[np.int64]
    rows: Vectors

    @classmethod
    def join(cls, parts: list[SampledRows]) -> SampledRows:
        """Several samples as one, sorted; a part without rows says nothing about their width."""
        filled = [part for part in parts if len(part.rows)] or parts[:1]
        if not filled:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros((0, 0), np.float32))
        keys, places = (np.concatenate([getattr(p, name) for p in filled]) for name in ("keys", "places"))
        order = np.lexsort((places, keys))
        return cls(keys[order], places[order], np.concatenate([part.rows for part in filled])[order])


def video_keys(segment: Segment) -> Keys:
    """A number for each video of a segment that follows from its vectors alone and is spread evenly; 0 without rows.

    It is made of the scales of the video's rows, which lie together and are read by every scan anyway.

    >>> from momentseek.library.segments import build_segment
    >>> rows = [np.float32([[3, 4]]), np.float32([[1, 0], [0, 2]])]
    >>> ones, others = build_segment("vision", [7, 9], rows), build_segment("vision", [1, 4], rows[::-1])
    >>> bool((video_keys(ones) == video_keys(others)[::-1]).all())
    True
    """
    lengths = np.diff(segment.offsets)
    filled = np.flatnonzero(lengths)
    keys = np.zeros(len(lengths), np.uint64)
    if len(filled):
        bits = np.asarray(segment.scales).view(np.uint32)
        keys[filled] = splitmix64(np.add.reduceat(bits, segment.offsets[:-1][filled], dtype=np.uint64))
    return keys


def splitmix64(numbers: Keys) -> Keys:
    """Numbers made even over all 64 bits, the same ones from the same (SplitMix64, Steele et al. 2014).

    >>> spread(np.array([1, 2], np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    z = numbers.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z


def chosen_rows(keys: Keys, lengths: NDArray[np.int64], step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every ``step``-th row of each of some videos: which video, and which of its rows.

    >>> video, row = chosen_rows(np.array([1, 5], np.uint64), np.array([4, 2]), 3)
    >>> video.tolist(), row.tolist()
    ([0], [1])
    >>> [each.tolist() for each in chosen_rows(np.array([1, 5], np.uint64), np.array([1, 2]), 1)]
    [[0, 1, 1], [0, 0, 1]]
    """
    first = (keys % np.uint64(step)).astype(np.int64)
    counts = np.maximum(0, -(-(lengths - first) // step))
    video = np.repeat(np.arange(len(keys)), counts)
    nth = np.arange(len(video)) - np.repeat(np.cumsum(counts) - counts, counts)
    return video, first[video] + nth * step


SAMPLE_CLIPS = 8192
"""Clips from which it is judged what is usual for a query."""
SAMPLE_MOMENTS = 1 << 15
"""Rows of moments from which the same is judged where a model keeps vectors of moments …"""
MIN_SAMPLE_WINDOWS = 32
"""… those of so many windows at least."""
MAX_REMEMBERED_TEXTS = 512

Encode = Callable[[Sequence[str]], Vectors]
"""Turns texts into vectors, one row each."""
Evidence = Callable[[Vectors], Vectors]
"""Says how surely clips show what a query names, 0 to 1 for each, given their vectors."""
Ids = NDArray[np.int64]
"""Ids of videos in the catalogue."""
KeyedRows = tuple[tuple[int, int], Vectors]
"""Rows of a sample, with the place that they have in it."""


class SampledIndex(Protocol):
    """What a query is judged by: a sample of the vectors of one stream, and what made them."""

    @property
    def clips(self) -> int: ...

    @property
    def sample(self) -> Vectors: ...

    @property
    def head(self) -> BoundaryHead | None: ...

    @property
    def moments(self) -> MomentMap | None: ...

    @property
    def sample_videos(self) -> list[Vectors]: ...

    @property
    def sample_windows(self) -> list[Vectors]: ...

    @property
    def window_count(self) -> int: ...


@dataclass(frozen=True, eq=False)
class StreamIndex:
    """The vectors that one stream searches: its segments, in one state of the library."""

    segments: tuple[Segment, ...]
    gone: Ids
    """Videos in the segments that are no longer in the library."""
    clip_seconds: float
    plan: Path | None = None
    """Folder of the plan by which a large library is scanned, if it has one."""
    damaged_videos: set[int] = field(default_factory=set)
    """Videos met so far whose vectors are not finite, because their file was damaged."""
    spans: tuple[Segment, ...] = ()
    """What a trained model finds spans by: a row for each clip, or for each moment if it keeps vectors of moments."""
    head: BoundaryHead | None = None
    """The trained model's head that finds spans, if it has one."""
    moments: MomentMap | None = None
    """The moments of which a trained model keeps vectors, if it does."""

    @cached_property
    def scan(self) -> Scan:
        """The search for the videos with the best clips."""
        return Scan(self.segments) if self.plan is None else Scan.open(self.segments, self.plan)

    @cached_property
    def moment_scan(self) -> Scan:
        """The search for the videos with the best moments, where a model keeps vectors of moments."""
        return Scan(self.spans)

    @cached_property
    def ids(self) -> Ids:
        """Ids of the videos in all segments, in their order."""
        return np.concatenate([np.asarray(s.ids) for s in self.segments] or [np.zeros(0, np.int64)])

    @cached_property
    def _sorted_ids(self) -> tuple[Ids, Ids]:
        """The ids in order, and where each is among all."""
        order = np.argsort(self.ids, kind="stable")
        return self.ids[order], order

    def places(self, videos: Ids) -> dict[int, tuple[int, int]]:
        """In which segment each of some videos is, and where; those that are in none are missing."""
        ids, order = self._sorted_ids
        if not len(ids):
            return {}
        near = np.minimum(np.searchsorted(ids, videos), len(ids) - 1)
        there = ids[near] == videos
        at = order[near[there]]
        begins = np.cumsum([0, *(len(s.ids) for s in self.segments)])
        segment = np.searchsorted(begins, at, side="right") - 1
        columns = (column.tolist() for column in (videos[there], segment, at - begins[segment]))
        return {id: (one, place) for id, one, place in zip(*columns, strict=True)}

    @cached_property
    def clips(self) -> int:
        """Number of clips of all videos that have not been removed."""
        return int(
            sum(length[~np.isin(s.ids, self.gone)].sum() for s in self.segments for length in [np.diff(s.offsets)])
        )

    @cached_property
    def clip_counts(self) -> dict[int, int]:
        """Number of clips of each video, by its id."""
        return {
            id: clips
            for s in self.segments
            for id, clips in zip(s.ids.tolist(), np.diff(s.offsets).tolist(), strict=True)
        }

    def rows(self, video: int) -> Vectors | None:
        """The vectors of a video's clips (or cues); None if it has none here."""
        return _rows(self.segments, video)

    def span_rows(self, video: int) -> Vectors | None:
        """The vectors by which a trained model finds a video's spans; None if it has none here."""
        return _rows(self.spans, video)

    def allowed_mask(self, allowed: Ids | None) -> NDArray[np.bool_] | None:
        """Which videos of the segments are among ``allowed``, as a scan takes it; None stands for all."""
        return None if allowed is None else np.isin(self.ids, allowed)

    @cached_property
    def window_count(self) -> int:
        """Number of windows of all videos, where a model keeps vectors of moments."""
        assert self.moments is not None
        gone = set(self.gone.tolist())
        return sum(self.moments.count(clips) for id, clips in self.clip_counts.items() if id not in gone)

    @cached_property
    def span_count(self) -> int:
        """Number of rows by which a trained model finds the spans of videos that have not been removed."""
        return int(sum(length[~np.isin(s.ids, self.gone)].sum() for s in self.spans for length in [np.diff(s.offsets)]))

    @cached_property
    def sample(self) -> Vectors:
        """Clips taken at even steps from all videos, always the same ones; damaged ones are left out."""
        return self.sampled_clips(sample_step(self.clips)).rows

    @cached_property
    def sample_videos(self) -> list[Vectors]:
        """Videos taken at even steps from the whole library, long ones in parts as long as a model reads at a time."""
        return [rows for _, rows in self.sampled_videos(sample_step(self.clips))][:SAMPLE_CLIPS]

    @cached_property
    def sample_windows(self) -> list[Vectors]:
        """The moments of windows taken at even steps from all videos, all moments of each window."""
        return [rows for _, rows in self.sampled_windows(window_step(self.span_count, self.window_count))]

    def sampled_clips(self, step: int) -> SampledRows:
        """Every ``step``-th clip of each video."""
        parts = []
        for segment in self.segments:
            there = np.flatnonzero(~np.isin(segment.ids, self.gone))
            keys = video_keys(segment)[there]
            video, row = chosen_rows(keys, np.diff(segment.offsets)[there], step)
            vectors = segment.half[segment.offsets[there[video]] + row].astype(np.float32)
            whole = np.isfinite(vectors).all(axis=1)
            self.damaged_videos.update(np.asarray(segment.ids)[there[video[~whole]]].tolist())
            parts.append(SampledRows(keys[video[whole]], row[whole], vectors[whole]))
        return SampledRows.join(parts)

    def sampled_videos(self, step: int) -> list[KeyedRows]:
        """Every ``step``-th video, in parts as long as a model reads at a time, each with its place in the sample."""
        window = self.head.window if self.head is not None else SAMPLE_CLIPS
        parts: list[KeyedRows] = []
        gone = set(self.gone.tolist())
        for segment in self.segments:
            keys = video_keys(segment)
            for at in np.flatnonzero(keys % np.uint64(step) == 0).tolist():
                rows = segment.vectors(at)
                if int(segment.ids[at]) not in gone and len(rows) and np.isfinite(rows).all():
                    parts += [
                        ((int(keys[at]), first), rows[first : first + window]) for first in range(0, len(rows), window)
                    ]
        return sorted(parts, key=lambda part: part[0])

    def sampled_windows(self, step: int) -> list[KeyedRows]:
        """The moments of every ``step``-th window of each video, each window with its place in the sample."""
        assert self.moments is not None
        parts: list[KeyedRows] = []
        gone = set(self.gone.tolist())
        for segment in self.spans:
            keys = video_keys(segment).tolist()
            for place, (id, key) in enumerate(zip(segment.ids.tolist(), keys, strict=True)):
                clips = self.clip_counts.get(id, 0)
                if not clips or id in gone:
                    continue
                chosen = range(key % step, self.moments.count(clips), step)
                if not chosen:
                    continue
                found, owner = segment.vectors(place), self.moments.of(clips).window
                if len(found) != len(owner) or not np.isfinite(found).all():
                    self.damaged_videos.add(id)
                    continue
                parts += [((key, window), found[owner == window]) for window in chosen]
        return sorted(parts, key=lambda part: part[0])


def _head(about: EncoderManifest) -> BoundaryHead:

    return BoundaryHead.of(about)


def sample_step(clips: int) -> int:
    """The step at which a sample is taken from so many clips.

    >>> sample_step(100), sample_step(SAMPLE_CLIPS + 1)
    (1, 2)
    """
    return max(1, -(-clips // SAMPLE_CLIPS))


def window_step(rows: int, windows: int) -> int:
    """The step at which windows of moments are sampled, given the number of moments and of windows."""
    return max(1, min(-(-rows // SAMPLE_MOMENTS), windows // MIN_SAMPLE_WINDOWS))


def _rows(segments: Sequence[Segment], video: int) -> Vectors | None:
    place = locate(segments, video)
    return None if place is None else segments[place[0]].vectors(place[1])


class QueryEncoder:
    """Encodes texts as queries to the streams of a library, and remembers the vectors of the last ones."""

    def __init__(self, encoders: LibraryEncoders) -> None:
        self._encoders = encoders
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()

    def encode(self, stream: str, texts: Sequence[str]) -> Vectors:
        """The vectors of texts for a stream (``vision``, ``speech``, or a trained model's ``spans``), a row each."""
        new = [text for text in dict.fromkeys(texts) if (stream, text) not in self._vectors]
        if new:
            for text, row in zip(new, self._encoders.for_queries(stream).encode(new), strict=True):
                self._vectors[stream, text] = row
        for text in texts:
            self._vectors.move_to_end((stream, text))
        out = np.stack([self._vectors[stream, text] for text in texts])
        while len(self._vectors) > MAX_REMEMBERED_TEXTS:
            self._vectors.popitem(last=False)
        return out

    def knows_words(self, stream: str, texts: Iterable[str]) -> bool:
        """Whether a stream's encoder knows any word of the texts; if it cannot tell, whether they have letters."""
        knows = getattr(self._encoders.for_queries(stream), "knows", None)
        return any(map(knows or _is_legible, texts))

    def evidence(self, stream: str, text: str) -> Evidence | None:
        """What a stream's encoder can tell of things that a text names; None if it knows nothing by name."""
        tell = getattr(self._encoders.for_queries(stream), "evidence", None)
        found: Evidence | None = None if tell is None else tell(text)
        return found

    def unknown_words(self, stream: str, texts: Iterable[str]) -> list[str]:
        """The words of texts that a stream's encoder does not know, each once; none if it cannot tell."""
        find = getattr(self._encoders.for_queries(stream), "unknown_words", None)
        return [] if find is None else list(dict.fromkeys(word for text in texts for word in find(text)))

    def unfamiliar_words(self, stream: str, texts: Iterable[str]) -> tuple[str, ...]:
        """The words of texts for which a stream's encoder has no label; none if it does not work by labels."""
        unfamiliar = getattr(self._encoders.for_queries(stream), "unfamiliar", None)
        if unfamiliar is None:
            return ()
        return tuple(unfamiliar(list(dict.fromkeys(word for text in texts for word in content_words(text)))))

    def forget(self) -> None:
        """Forget all vectors, because another encoder now makes the library's."""
        self._vectors.clear()


def _is_legible(text: str) -> bool:
    """Whether a text has letters, digits or pictograms.

    >>> [_is_legible(text) for text in ("a dog", "😀", "* ...")]
    [True, True, False]
    """
    return any(c.isalnum() or unicodedata.category(c) == "So" for c in text)


@dataclass(frozen=True, eq=False)
class LibraryState:
    """A library in one state: all that the streams ask."""

    catalog: Catalog
    snapshot: Snapshot
    vision: StreamIndex
    speech: StreamIndex
    encoder: QueryEncoder
    known_videos: dict[int, Video] = field(default_factory=dict)

    @classmethod
    def open(cls, library: LibraryReader, snapshot: Snapshot, encoder: QueryEncoder) -> LibraryState:
        """A snapshot of a library, ready to be searched."""
        model = library.encoders.model if snapshot.spans else None
        moments = None if model is None else model.about.moments
        vision = StreamIndex(
            snapshot.vision,
            snapshot.gone,
            library.clip_seconds,
            library.paths.plan,
            spans=snapshot.spans,
            head=None if model is None or moments is not None else _head(model.about),
            moments=moments,
        )
        speech = StreamIndex(snapshot.speech, snapshot.gone, library.clip_seconds)
        return cls(library.catalog, snapshot, vision, speech, encoder)

    @property
    def damaged(self) -> bool:
        """Whether vectors were met that are not finite."""
        return bool(self.vision.damaged_videos or self.speech.damaged_videos)

    def videos(self, ids: Iterable[int]) -> dict[int, Video]:
        """Videos by their ids; those that have just been removed are missing."""
        wanted = list(dict.fromkeys(ids))
        new = [id for id in wanted if id not in self.known_videos]
        if new:
            self.known_videos.update((video.id, video) for video in self.catalog.videos(new))
        return {id: self.known_videos[id] for id in wanted if id in self.known_videos}


BLOCK_VALUES = 1 << 17
"""Values of a block, fewer than BLAS shares among threads."""


def row_products(rows: Vectors, vector: Vectors) -> NDArray[np.float32]:
    """``rows @ vector``.

    >>> row_products(np.eye(3, dtype=np.float32), np.array([3, 4, 5], np.float32)).tolist()
    [3.0, 4.0, 5.0]
    """
    if rows.size <= BLOCK_VALUES:
        return np.asarray(rows @ vector)
    step = max(1, BLOCK_VALUES // rows.shape[1])
    return np.concatenate([rows[at : at + step] @ vector for at in range(0, len(rows), step)])
