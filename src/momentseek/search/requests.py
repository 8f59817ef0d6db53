"""What a search asks of a library, and what the library answers: small, in columns, and safe to send elsewhere.

A library may lie in several parts, each with some of the videos; the answers of all parts together are those of the
same videos in one part. So every score that depends on the library as a whole is computed from the statistics of all
parts: how much they hold, how often words occur, which clips stand for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import EncoderRow
from momentseek.library.word_counts import WordCounts
from momentseek.search.fusion import Candidate
from momentseek.search.hit import Results, StreamHit
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.stream_index import Ids
from momentseek.search.streams.sounds import SoundMatch
from momentseek.search.streams.span_search import SearchedVideos, VideoList
from momentseek.search.streams.speech import MeantCues
from momentseek.search.streams.timed_text import TextKind, TextMatch
from momentseek.search.streams.vision import VisionQuery

Times = dict[int, list[tuple[float, float]]]
"""Starts and ends by video."""


class Questions(Protocol):
    """One search's way to ask the parts of a library; one that fails is left out from then on."""

    parts: list[int]
    """Numbers of the parts that have answered so far."""
    failed: dict[int, str]
    """Parts that did not answer, and why."""

    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Call a method of :class:`momentseek.search.part.LibraryPart` on some parts, each with its own arguments."""

    def finish(self, results: Results) -> None:
        """Say in the results what part of the library they lack."""


class SearchSource(Protocol):
    """A library that can be searched, wherever its parts are."""

    def begin(self) -> Questions:
        """A way to ask all parts during one search."""


# statistics: what is global in a search


@dataclass(frozen=True)
class PartCounts:
    """How much a part holds, and in which state it is."""

    generation: tuple[int, int] = (0, 0)
    """Changes whenever the part does."""
    clips: int = 0
    cue_vectors: int = 0
    span_rows: int = 0
    windows: int = 0
    encoders: tuple[EncoderRow, ...] = ()


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """What every question of a search says."""

    query: Query
    options: SearchOptions
    now: float
    """The time from which ``before:`` and ``after:`` count, in seconds since 1970."""
    vision: VisionQuery | None = None


@dataclass(frozen=True, eq=False)
class PartStatistics:
    """What a part adds to what is global in a search."""

    counts: PartCounts
    allowed: int | None
    """Number of videos that pass the filters; None where the query has none."""
    words: Mapping[TextKind, WordCounts] = field(default_factory=dict)
    spellings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For a word, those that differ from it in one letter."""
    sounds: tuple[str, ...] = ()
    """Labels of the sounds that were heard."""
    outdated: str = ""
    """Why what this part holds may be old; empty if it is not."""


class TextRows(NamedTuple):
    """Texts that hold words, best first; numbers in one table, to be sent as one."""

    table: NDArray[np.float64]
    """(7, n): number of the text, video, BM25, start, end, time of the frame to show, whether a recogniser made it."""
    texts: list[str]

    @classmethod
    def join(cls, parts: Sequence[TextRows], limit: int) -> TextRows:
        """The ``limit`` texts of all parts that match best, best first; ties by video and number."""
        table = np.concatenate([part.table for part in parts], axis=1)
        texts = [text for part in parts for text in part.texts]
        order = np.lexsort((table[0], table[1], -table[2]))[:limit]
        return cls(table[:, order], [texts[at] for at in order.tolist()])

    @property
    def videos(self) -> list[int]:
        """The video of each text."""
        found: list[int] = self.table[1].astype(np.int64).tolist()
        return found

    def matches(self) -> list[TextMatch]:
        """The texts one by one."""
        id, video, bm25, start, end, at, transcribed = self.table.tolist()
        columns = (map(int, id), map(int, video), bm25, start, end, at, map(bool, transcribed), self.texts)
        return [TextMatch(*row) for row in zip(*columns, strict=True)]


class PhraseHits(NamedTuple):
    """Where phrases are said, best first; ``bounded`` has the times of their words, where these are known."""

    hits: list[StreamHit]
    bounded: list[StreamHit]


class VideoCard(NamedTuple):
    """What ranking has to know of a video, and which part has it."""

    id: int
    duration: float
    hash: str
    part: int = 0


class VideoCards(NamedTuple):
    """What ranking has to know of videos, in columns."""

    ids: Ids
    durations: NDArray[np.float64]
    hashes: list[str]


@dataclass(frozen=True, eq=False)
class FoundMoments:
    """What a part found."""

    searched: SearchedVideos | None = None
    planes: tuple[VideoList, ...] = ()
    """The videos that each plane of a map model lists."""
    phrases: PhraseHits | None = None
    texts: Mapping[TextKind, TextRows] = field(default_factory=dict)
    meant: MeantCues | None = None
    sounds: tuple[SoundMatch, ...] = ()
    cards: VideoCards | None = None
    damaged: bool = False


class CardIndex:
    """The cards of the videos that answers mention; looked up one by one, since few of them are needed."""

    def __init__(self) -> None:
        self._answers: list[tuple[int, VideoCards]] = []
        self._known: dict[int, VideoCard] = {}

    def add(self, answers: Mapping[int, FoundMoments]) -> None:
        """Take the cards of further answers."""
        self._answers += [(part, answer.cards) for part, answer in answers.items() if answer.cards is not None]

    def find(self, ids: Iterable[int]) -> dict[int, VideoCard]:
        """The cards of videos by their ids; those that no part knows are missing."""
        wanted = list(dict.fromkeys(ids))
        if new := [id for id in wanted if id not in self._known]:
            for part, cards in self._answers:
                for at in np.flatnonzero(np.isin(cards.ids, new)).tolist():
                    id = int(cards.ids[at])
                    self._known[id] = VideoCard(id, float(cards.durations[at]), cards.hashes[at], part)
        return {id: self._known[id] for id in wanted if id in self._known}

    def by_part(self, ids: Iterable[int]) -> dict[int, list[int]]:
        """Part → those of some videos that it has."""
        out: dict[int, list[int]] = {}
        for id, card in self.find(ids).items():
            out.setdefault(card.part, []).append(id)
        return out


@dataclass(frozen=True, eq=False)
class VideoDetails:
    """What a part says of single videos."""

    best: dict[int, Candidate] = field(default_factory=dict)
    unwanted: Times = field(default_factory=dict)
    spans: dict[int, list[StreamHit]] = field(default_factory=dict)
    """The spans, or a map model's moments, on videos."""
    spoken: list[StreamHit] = field(default_factory=list)
