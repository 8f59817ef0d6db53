"""The vectors that one stream searches, and a sample of them that shows which scores are usual for a query.

Scores are judged by how the query scores on the library in general, so a few thousand clips are sampled: every
``step``-th clip of each video, from an offset that is computed from the video's vectors. So the sample depends on the
videos, not on how they are stored, and the samples of the parts of a library make up the sample of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.core.native.kernels import float_copy
from momentseek.library.scan.scan import Scan
from momentseek.library.segments import Segment, locate
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import BoundaryHead
from momentseek.recognition.exported.moment_map import MomentMap
from momentseek.recognition.exported.span_head import SpanHead
from momentseek.search.localise.height import Layout

SAMPLE_CLIPS = 8192
"""Approximate number of clips in the sample."""
SAMPLE_MOMENTS = 1 << 15
"""Approximate number of rows in the sample of moments, if a model keeps vectors of moments …"""
MIN_SAMPLE_WINDOWS = 32
"""… from at least this many windows."""
BLOCK_VALUES = 1 << 24
"""Largest number of vector components that are read at a time."""

Ids = NDArray[np.int64]
"""Ids of videos in the catalog."""
Keys = NDArray[np.uint64]
KeyedRows = tuple[tuple[int, int], Vectors]
"""Rows of a sample, with the key by which they are sorted."""
SampleKind = Literal["clips", "videos", "windows"]


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Sampled rows of vectors, sorted by the key of their video and their position in it."""

    keys: Keys
    places: NDArray[np.int64]
    rows: Vectors

    @classmethod
    def join(cls, parts: Sequence[SampledRows]) -> SampledRows:
        """Join several samples, sorted; parts without rows are ignored, because their width is unknown."""
        filled = [part for part in parts if len(part.rows)] or parts[:1]
        if not filled:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros((0, 0), np.float32))
        keys, places = (np.concatenate([getattr(p, name) for p in filled]) for name in ("keys", "places"))
        order = np.lexsort((places, keys))
        return cls(keys[order], places[order], np.concatenate([part.rows for part in filled])[order])


@dataclass(frozen=True, eq=False)
class SamplePart:
    """The share of a part of a library in a sample: rows of clips or cues, or stretches of videos."""

    rows: SampledRows | None = None
    stretches: tuple[KeyedRows, ...] = ()


class VideoRows(NamedTuple):
    """The vectors of several videos, one video after another."""

    ids: list[int]
    offsets: NDArray[np.int64]
    """Where each video begins, and where the last one ends."""
    rows: Vectors

    @classmethod
    def of(cls, ids: list[int], parts: Sequence[NDArray[np.float16]]) -> VideoRows:
        """Join videos with their vectors as they are stored."""
        return cls(ids, np.cumsum([0, *map(len, parts)]), float_copy(np.concatenate(parts)))


@dataclass(frozen=True, eq=False)
class StreamIndex:
    """The vectors that one stream searches: its segments, in one state of the library."""

    segments: tuple[Segment, ...]
    gone: Ids
    """Videos in the segments that are no longer in the library."""
    clip_seconds: float
    plan: Path | None = None
    """Folder of the plan for scanning a large library, if it has one."""
    damaged_videos: set[int] = field(default_factory=set)
    """Videos found so far whose vectors are not finite, because a file was damaged."""
    spans: tuple[Segment, ...] = ()
    """Vectors with which a trained model finds spans: a row for each clip, or for each moment of a map model."""
    head: BoundaryHead | SpanHead | None = None
    """The head of the trained model, which finds spans, if there is one."""
    moments: MomentMap | None = None
    """The moments of which a map model keeps vectors, if there is one."""
    layouts: dict[int, Layout] = field(default_factory=dict)
    """Cached layouts of the clips of searched videos."""

    @cached_property
    def scan(self) -> Scan:
        """The search for the videos with the best clips."""
        return Scan(self.segments) if self.plan is None else Scan.open(self.segments, self.plan)

    @cached_property
    def moment_scan(self) -> Scan:
        """The search for the videos with the best moments, if a model keeps vectors of moments."""
        return Scan(self.spans)

    @cached_property
    def ids(self) -> Ids:
        """Ids of the videos in all segments, in their order."""
        return np.concatenate([np.asarray(s.ids) for s in self.segments] or [np.zeros(0, np.int64)])

    @cached_property
    def _sorted_ids(self) -> tuple[Ids, Ids]:
        """The ids in ascending order, and the position of each in ``ids``."""
        order = np.argsort(self.ids, kind="stable")
        return self.ids[order], order

    @cached_property
    def _first_videos(self) -> Ids:
        """The position in ``ids`` at which each segment begins."""
        return np.cumsum([0, *(len(s.ids) for s in self.segments)])

    def places(self, videos: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Video → its segment and its position there; videos in no segment are left out."""
        ids, order = self._sorted_ids
        wanted = np.asarray(videos, np.int64)
        near = np.searchsorted(ids, wanted)
        here = near < len(ids)
        here[here] = ids[near[here]] == wanted[here]
        at = order[near[here]]
        segment = np.searchsorted(self._first_videos, at, side="right") - 1
        pairs = zip(segment.tolist(), (at - self._first_videos[segment]).tolist(), strict=True)
        return dict(zip(wanted[here].tolist(), pairs, strict=True))

    def place(self, video: int) -> tuple[int, int] | None:
        """The segment of a video and its position there; None if it is in no segment."""
        return self.places([video]).get(video)

    @cached_property
    def clips(self) -> int:
        """Number of clips of all videos that have not been removed."""
        return self._count_rows(self.segments)

    @cached_property
    def span_count(self) -> int:
        """Number of rows for spans of all videos that have not been removed."""
        return self._count_rows(self.spans)

    def _count_rows(self, segments: Sequence[Segment]) -> int:
        return int(sum(np.diff(s.offsets)[~np.isin(s.ids, self.gone)].sum() for s in segments))

    @cached_property
    def clip_counts(self) -> dict[int, int]:
        """Number of clips of each video, by its id."""
        return {
            id: clips
            for s in self.segments
            for id, clips in zip(s.ids.tolist(), np.diff(s.offsets).tolist(), strict=True)
        }

    @cached_property
    def window_count(self) -> int:
        """Number of windows of all videos if a model keeps vectors of moments, otherwise 0."""
        if self.moments is None:
            return 0
        gone = set(self.gone.tolist())
        return sum(self.moments.count(clips) for id, clips in self.clip_counts.items() if id not in gone)

    def rows(self, video: int) -> Vectors | None:
        """The vectors of a video's clips (or cues); None if it has none."""
        place = self.place(video)
        return None if place is None else self.segments[place[0]].vectors(place[1])

    def read(self, videos: Sequence[int]) -> Iterator[VideoRows]:
        """Read the vectors of videos in large blocks; videos without vectors are left out."""
        ids: list[int] = []
        parts: list[NDArray[np.float16]] = []
        values = 0
        for id, (segment, at) in self.places(videos).items():
            offsets = self.segments[segment].offsets
            part = self.segments[segment].half[offsets[at] : offsets[at + 1]]
            if values + part.size > BLOCK_VALUES and ids:
                yield VideoRows.of(ids, parts)
                ids, parts, values = [], [], 0
            if len(part):
                ids.append(id)
                parts.append(part)
                values += part.size
        if ids:
            yield VideoRows.of(ids, parts)

    def span_rows(self, video: int) -> Vectors | None:
        """The vectors with which a trained model finds a video's spans; None if it has none."""
        place = locate(self.spans, video)
        return None if place is None else self.spans[place[0]].vectors(place[1])

    def allowed_mask(self, allowed: Ids | None) -> NDArray[np.bool_] | None:
        """Mask of the videos in the segments that are among ``allowed``, for a scan; None means all."""
        return None if allowed is None else np.isin(self.ids, allowed)

    # this part's share of a sample

    def sample_part(self, kind: SampleKind, step: int) -> SamplePart:
        """The share of a sample from here: every ``step``-th clip, video, or window of moments."""
        if kind == "clips":
            return SamplePart(self.sampled_clips(step))
        found = self.sampled_videos(step) if kind == "videos" else self.sampled_windows(step)
        return SamplePart(stretches=tuple(found))

    def sampled_clips(self, step: int) -> SampledRows:
        """Sample every ``step``-th clip of each video; damaged ones are left out."""
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
        """Sample every ``step``-th video, in windows of the model's length, each with its key in the sample."""
        window = self.head.window if self.head is not None else SAMPLE_CLIPS
        parts: list[KeyedRows] = []
        gone = set(self.gone.tolist())
        for segment in self.segments:
            keys = video_keys(segment)
            for at in np.flatnonzero(keys % np.uint64(step) == 0).tolist():
                rows = segment.vectors(at)
                if int(segment.ids[at]) not in gone and len(rows) and np.isfinite(rows).all():
                    firsts = range(0, len(rows), window)
                    parts += [((int(keys[at]), first), rows[first : first + window]) for first in firsts]
        return sorted(parts, key=lambda part: part[0])

    def sampled_windows(self, step: int) -> list[KeyedRows]:
        """Sample the moments of every ``step``-th window of each video, each window with its key in the sample."""
        parts: list[KeyedRows] = []
        if self.moments is None:
            return parts
        gone = set(self.gone.tolist())
        for segment in self.spans:
            keys = video_keys(segment).tolist()
            for place, (id, key) in enumerate(zip(segment.ids.tolist(), keys, strict=True)):
                clips = 0 if id in gone else self.clip_counts.get(id, 0)
                chosen = range(key % step, self.moments.count(clips), step) if clips else range(0)
                if not chosen:
                    continue
                found, owner = segment.vectors(place), self.moments.of(clips).window
                if len(found) != len(owner) or not np.isfinite(found).all():
                    self.damaged_videos.add(id)
                    continue
                parts += [((key, window), found[owner == window]) for window in chosen]
        return sorted(parts, key=lambda part: part[0])


@dataclass(frozen=True, eq=False)
class SampledIndex:
    """The size of one stream of a library, and samples of it, fetched when they are first needed."""

    fetch: Callable[[SampleKind, int], Sequence[SamplePart]]
    """Fetches a sample with a given step from all parts of the library."""
    clips: int
    span_count: int = 0
    window_count: int = 0
    head: BoundaryHead | SpanHead | None = None
    moments: MomentMap | None = None
    find_blocks: Callable[[], tuple[tuple[str, int], ...]] = tuple

    @classmethod
    def of(cls, index: StreamIndex) -> SampledIndex:
        """The sampled index of a library in one part."""
        return cls(
            lambda kind, step: [index.sample_part(kind, step)],
            index.clips,
            index.span_count,
            index.window_count,
            index.head,
            index.moments,
        )

    @cached_property
    def sample(self) -> Vectors:
        """Clips (or cues) taken at even steps from all videos, always the same ones."""
        parts = self.fetch("clips", sample_step(self.clips))
        return SampledRows.join([part.rows for part in parts if part.rows is not None]).rows

    @cached_property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """Name and number of columns of each encoder if two made the vectors together; empty otherwise."""
        return self.find_blocks()

    @cached_property
    def block_edges(self) -> list[int]:
        """The column at which the second encoder begins; empty if one encoder made the vectors."""
        return list(accumulate(columns for _, columns in self.blocks[:-1]))

    @cached_property
    def sample_blocks(self) -> list[tuple[Vectors, NDArray[np.bool_]]]:
        """The columns of each encoder in the sample, and which clips it has encoded."""
        parts = np.split(self.sample, self.block_edges, axis=1)
        return [(np.ascontiguousarray(part), np.asarray(part.any(axis=1))) for part in parts]

    @cached_property
    def sample_videos(self) -> list[Vectors]:
        """Videos sampled evenly from the whole library, split into windows of the model's length."""
        return self._stretches("videos", sample_step(self.clips))[:SAMPLE_CLIPS]

    @cached_property
    def sample_windows(self) -> list[Vectors]:
        """The moments of windows sampled evenly from all videos, all moments of each window."""
        return self._stretches("windows", window_step(self.span_count, self.window_count))

    def _stretches(self, kind: SampleKind, step: int) -> list[Vectors]:
        found = sorted((one for part in self.fetch(kind, step) for one in part.stretches), key=lambda one: one[0])
        return [rows for _, rows in found]


def sample_step(clips: int) -> int:
    """The step at which a sample is taken from this many clips.

    >>> sample_step(100), sample_step(SAMPLE_CLIPS + 1)
    (1, 2)
    """
    return max(1, -(-clips // SAMPLE_CLIPS))


def window_step(rows: int, windows: int) -> int:
    """The step at which windows of moments are sampled, given the number of moments and of windows."""
    return max(1, min(-(-rows // SAMPLE_MOMENTS), windows // MIN_SAMPLE_WINDOWS))


def video_keys(segment: Segment) -> Keys:
    """A hash of each video's vectors in a segment, evenly distributed; 0 without rows.

    It is computed from the scales of the video's rows, which are stored together and read by every scan anyway.

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
    """Hash numbers so that they are evenly distributed over 64 bits (SplitMix64, Steele et al. 2014).

    >>> splitmix64(np.array([1, 2], np.uint64)).tolist()
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


def row_products(rows: Vectors, vector: Vectors) -> NDArray[np.float32]:
    """``rows @ vector``, computed row by row: with BLAS the last bits of a row depend on the other rows.

    >>> row_products(np.eye(3, dtype=np.float32), np.array([3, 4, 5], np.float32)).tolist()
    [3.0, 4.0, 5.0]
    """
    return np.asarray(np.vecdot(rows, vector))
