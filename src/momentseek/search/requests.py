"""Requests of a search to a library, and the answers: small, in columns, and picklable.

A library may have several parts, each with some of the videos. All parts together must answer as one library with the
same videos would. So every score that depends on the whole library is computed from statistics of all parts: their
sizes, how often words occur, and a sample of clips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import EncoderRow
from momentseek.library.video import VideoCard
from momentseek.library.word_counts import TextRows, WordCounts
from momentseek.search.fusion import Candidate
from momentseek.search.hit import Results, StreamHit
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.stream_index import Ids
from momentseek.search.streams.sounds import SoundMatch
from momentseek.search.streams.span_search import SearchedVideos, VideoList
from momentseek.search.streams.speech import MeantCues
from momentseek.search.streams.timed_text import TextKind
from momentseek.search.streams.vision import VisionQuery

Times = dict[int, list[tuple[float, float]]]
"""Starts and ends by video."""


class Questions(Protocol):
    """Sends the requests of one search to the parts of a library; a part that fails is not asked again."""

    parts: list[int]
    """Numbers of the parts that have answered so far."""
    failed: dict[int, str]
    """Parts that did not answer, and why."""

    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Call a method of :class:`momentseek.search.part.LibraryPart` on some parts, each with its own arguments."""

    def finish(self, results: Results) -> None:
        """Note in the results which parts of the library are missing."""


class SearchSource(Protocol):
    """A library that can be searched, in this process or elsewhere."""

    def begin(self) -> Questions:
        """Begin a search: return an object that sends requests to all parts."""


# statistics of the whole library


@dataclass(frozen=True)
class PartCounts:
    """The size of a part, and its state."""

    generation: tuple[int, int] = (0, 0)
    """Changes whenever the part does."""
    clips: int = 0
    cue_vectors: int = 0
    span_rows: int = 0
    windows: int = 0
    encoders: tuple[EncoderRow, ...] = ()


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """The arguments that all requests of a search have in common."""

    query: Query
    options: SearchOptions
    now: float
    """The reference time for ages in ``before:`` and ``after:``, in seconds since 1970."""
    vision: VisionQuery | None = None


@dataclass(frozen=True, eq=False)
class PartStatistics:
    """What a part contributes to the statistics of the whole library."""

    counts: PartCounts
    allowed: int | None
    """Number of videos that pass the filters; None if the query has no filters."""
    words: Mapping[TextKind, WordCounts] = field(default_factory=dict)
    spellings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Word → words that differ from it in one letter."""
    sounds: tuple[str, ...] = ()
    """Labels of the sounds that were detected."""
    outdated: str = ""
    """Why this part may be outdated; empty if it is current."""


class VideoCards(NamedTuple):
    """The properties of videos that ranking needs, in columns."""

    ids: Ids
    durations: NDArray[np.float64]
    hashes: list[str]


@dataclass(frozen=True, eq=False)
class FoundMoments:
    """The moments that a part found."""

    searched: SearchedVideos | None = None
    planes: tuple[VideoList, ...] = ()
    """The videos that each plane of a map model lists."""
    phrases: tuple[tuple[StreamHit, StreamHit], ...] = ()
    """Moments in which phrases are said, best first, and each with the times of the words if they are known."""
    texts: Mapping[TextKind, TextRows] = field(default_factory=dict)
    meant: MeantCues | None = None
    sounds: tuple[SoundMatch, ...] = ()
    cards: VideoCards | None = None
    """Of all mentioned videos, if they were requested."""
    damaged: bool = False


class CardIndex:
    """The cards of the videos in answers; looked up one by one, because few are needed."""

    def __init__(self) -> None:
        self._answers: list[tuple[int, VideoCards]] = []
        self._known: dict[int, VideoCard] = {}

    def add(self, answers: Mapping[int, VideoCards | None]) -> None:
        """Add the cards of further answers, by their parts."""
        self._answers += [(part, cards) for part, cards in answers.items() if cards is not None]

    def find(self, ids: Iterable[int]) -> dict[int, VideoCard]:
        """The cards of videos by their ids; those that no part knows are missing."""
        wanted = list(dict.fromkeys(ids))
        if new := [id for id in wanted if id not in self._known]:
            for part, cards in self._answers:
                places = np.flatnonzero(np.isin(cards.ids, new))
                hashes = [cards.hashes[at] for at in places.tolist()]
                columns = cards.ids[places].tolist(), cards.durations[places].tolist(), hashes
                self._known |= {row[0]: VideoCard(*row, part=part) for row in zip(*columns, strict=True)}
        return {id: self._known[id] for id in wanted if id in self._known}

    def by_part(self, ids: Iterable[int]) -> dict[int, list[int]]:
        """Part → the given videos that it has."""
        out: dict[int, list[int]] = {}
        for id, card in self.find(ids).items():
            out.setdefault(card.part, []).append(id)
        return out


@dataclass(frozen=True, eq=False)
class VideoDetails:
    """Details of single videos."""

    best: dict[int, Candidate] = field(default_factory=dict)
    unwanted: Times = field(default_factory=dict)
    spans: dict[int, list[StreamHit]] = field(default_factory=dict)
    """The spans, or a map model's moments, on videos."""
    spoken: list[StreamHit] = field(default_factory=list)
