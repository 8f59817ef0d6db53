"""What a coordinator asks a shard, and what the shard answers: small, in columns, and safe to send elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.cluster.word_counts import RankedTexts, WordCounts
from momentseek.library.catalog import EncoderRow
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.search.fusion import Candidate, StreamPlaces
from momentseek.search.hit import StreamHit
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.session import Times
from momentseek.search.state import Ids, KeyedRows, SampledRows
from momentseek.search.streams.span_search import SearchedVideos, VideoList
from momentseek.search.streams.speech import MeaningQuery, MeantCues
from momentseek.search.streams.timed_text import SoundMatch
from momentseek.search.streams.vision import VisionQuery

SampleKind = Literal["vision", "speech", "videos", "windows"]
TextKind = Literal["cues", "lines", "spellings", "captions", "names"]
"""Texts in which words are looked for; the spellings are lines too, found by words with a letter wrong."""


@dataclass(frozen=True)
class ShardCounts:
    """How much a shard holds, and in which state it is."""

    generation: tuple[int, int] = (0, 0)
    """Changes whenever the shard does."""
    videos: int = 0
    clips: int = 0
    cue_vectors: int = 0
    span_rows: int = 0
    windows: int = 0
    encoders: tuple[EncoderRow, ...] = ()


@dataclass(frozen=True, eq=False)
class ScanRequest:
    """What scans look for, a row for each, and how many videos each of them lists."""

    probes: Vectors
    reach: int

    def same(self, other: ScanRequest | None) -> bool:
        """Whether another one looks for the same."""
        return other is not None and self.reach == other.reach and np.array_equal(self.probes, other.probes)


@dataclass(frozen=True, eq=False)
class WordRequest:
    """The first question: how much is there, how often do words occur, and which videos look best?"""

    query: Query
    now: float
    """The time from which ``before:`` and ``after:`` count, in seconds since 1970."""
    words: Mapping[TextKind, Sequence[str]] = field(default_factory=dict)
    """The words that are looked for, by where."""
    misspelt: Sequence[str] = ()
    """Words of which other spellings are wanted."""
    scan: ScanRequest | None = None
    """What the pictures are scanned for, where that is known before it is known what is usual."""


@dataclass(frozen=True, eq=False)
class ShardStatistics:
    """What a shard adds to what is global in a search."""

    counts: ShardCounts
    allowed: int | None
    """Number of videos that pass the filters; None where the query has none."""
    words: Mapping[TextKind, WordCounts] = field(default_factory=dict)
    spellings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For a word, those that differ from it in one letter."""
    lists: tuple[VideoList, ...] | None = None
    """The videos that scans list here; None where none was asked for, or its rows do not fit the vectors here."""


@dataclass(frozen=True)
class SampleRequest:
    """A question for a shard's part of a sample."""

    kind: SampleKind
    step: int


@dataclass(frozen=True, eq=False)
class ShardSample:
    """A shard's part of a sample: rows of clips or cues, or parts of videos."""

    rows: SampledRows | None = None
    parts: tuple[KeyedRows, ...] = ()


@dataclass(frozen=True, eq=False)
class ShardRequest:
    """The second question: what is found here?"""

    query: Query
    options: SearchOptions
    now: float
    vision: VisionQuery | None = None
    videos: Ids | None = None
    """The videos here that are among the best of all shards …"""
    page: int = 0
    """… on which spans are sought until a page has so many."""
    reach: int = 0
    """Number of videos that each plane of a map model lists."""
    meaning: MeaningQuery | None = None
    words: Mapping[TextKind, tuple[Sequence[str], WordCounts]] = field(default_factory=dict)
    """The words that are looked for, by where, and how often they occur in all shards."""
    sounds: str = ""
    """What sounds are looked for."""


class TextRows(NamedTuple):
    """Texts that hold words, best first: cues, lines, captions or names; numbers in one table, to be sent as one."""

    table: NDArray[np.float64]
    """(7, n): number of the text, video, BM25, start, end, time of the frame to show, whether a recogniser made it."""
    texts: list[str]

    @classmethod
    def of(
        cls, ranked: RankedTexts, start: ArrayLike, end: ArrayLike, at: ArrayLike, heard: ArrayLike, texts: list[str]
    ) -> TextRows:
        """Texts from columns."""
        columns = [np.asarray(one, np.float64) for one in (*ranked, start, end, at, heard)]
        return cls(np.stack(columns), texts)

    @property
    def ranked(self) -> RankedTexts:
        """The texts' numbers, videos and scores."""
        return RankedTexts(self.table[0].astype(np.int64), self.table[1].astype(np.int64), self.table[2])

    @property
    def times(self) -> NDArray[np.float64]:
        """(3, n): start, end, and time of the frame to show."""
        return self.table[3:6]

    @property
    def heard(self) -> NDArray[np.bool_]:
        """Whether a recogniser made each text."""
        return np.asarray(self.table[6] > 0, np.bool_)


class PhraseRows(NamedTuple):
    """Where phrases are said, best first; ``bounded`` are the times of their words, where these are known."""

    video: Ids
    score: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    bounded_start: NDArray[np.float64]
    bounded_end: NDArray[np.float64]


class VideoCards(NamedTuple):
    """What ranking has to know of videos, by id."""

    ids: Ids
    durations: NDArray[np.float64]
    hashes: list[str]


@dataclass(frozen=True, eq=False)
class ShardAnswer:
    """What a shard found."""

    looked: SearchedVideos | None = None
    planes: tuple[VideoList, ...] = ()
    """The videos that each plane of a map model lists."""
    phrases: PhraseRows | None = None
    texts: Mapping[TextKind, TextRows] = field(default_factory=dict)
    meant: MeantCues | None = None
    sounds: tuple[SoundMatch, ...] = ()
    cards: VideoCards | None = None
    damaged: bool = False


@dataclass(frozen=True, eq=False)
class DetailRequest:
    """A further question about videos that a shard has: the best spans of some, and what must not be in others."""

    query: Query
    options: SearchOptions
    vision: VisionQuery | None
    spans: Sequence[int] = ()
    unwanted: Sequence[int] = ()
    moments: Sequence[int] = ()
    """Videos of which a map model's moments are wanted."""
    seen: Sequence[int] = ()
    """Videos on which all spans are wanted."""


@dataclass(frozen=True, eq=False)
class ShardDetails:
    """What a shard says of single videos."""

    spans: dict[int, Candidate] = field(default_factory=dict)
    unwanted: Times = field(default_factory=dict)
    moments: dict[int, list[StreamHit]] = field(default_factory=dict)
    seen: dict[int, list[StreamHit]] = field(default_factory=dict)


@dataclass(frozen=True)
class BoundRequest:
    """A question for the times of words in moments that a shard has."""

    hits: tuple[StreamHit, ...]
    said: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RerankRequest:
    """A question for what a re-ranking model reads of the videos of candidates."""

    query: Query
    options: SearchOptions
    vision: VisionQuery | None
    firsts: tuple[Candidate, ...]


@dataclass(frozen=True, eq=False)
class ShowRequest:
    """The last question: what is to be shown of these candidates, each with its rank in the whole answer?"""

    query: Query
    options: SearchOptions
    vision: VisionQuery | None
    ranks: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    places: StreamPlaces
    unsaid: Times


@dataclass(frozen=True)
class ExampleRequest:
    """A question for the vector of a moment of one of the shard's videos."""

    video: int
    start: float
    end: float
