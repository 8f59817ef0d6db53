"""Hits: the moments that a search returns, with everything needed to explain, cut or export them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

from momentseek.core.moments.moment import Moment
from momentseek.core.reports import Tabular, count
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import Understanding
from momentseek.search.query import Query

Level = Literal["strong", "fair", "weak"]
"""The confidence of a hit."""
MAX_HIDDEN = 20
"""Largest number of hidden weak hits that is counted; this number means this many or more."""


class StreamHit(NamedTuple):
    """A moment as one stream (vision, speech, text or described) found it; a stream returns its hits best first."""

    video: int
    start: float
    end: float
    score: float
    """The stream's score, not comparable with that of another stream."""
    level: Level
    peak: float | None = None
    """Time in seconds of the frame to show; None for the middle of the moment."""
    meant: tuple[float, float, float] | None = None
    """Start and end of the cues that match by meaning, and their cosine; None if none do."""


@dataclass(frozen=True)
class StreamRank:
    """A rank in one stream (vision, speech, text, described, name), counted from 1, and that stream's score.

    During ranking, the rank counts all hits of the stream. In a hit it counts only the moments of this answer, on all
    pages: ``seen #2`` means that one of them matches better by what is seen.
    """

    rank: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A moment that a search found, with its rank and the reasons for it.

    >>> hit = Hit(path=Path("/films/kitchen.mp4"), name="kitchen.mp4", start=3.0, end=9.0)
    >>> hit.moment
    Moment(video='kitchen.mp4', start=3.0, end=9.0)
    """

    rank: int = 1
    """Position among the hits, counted from 1."""
    video_id: int = 0
    """Number of the video in its library."""
    path: Path
    name: str
    """The display name of the video: its path relative to the folder that was added."""
    start: float
    """Start of the moment in seconds."""
    end: float
    """End of the moment in seconds."""
    score: float = 0.0
    """The fused score, or a re-ranking model's; comparable within one search only."""
    level: Level = "fair"
    """The confidence of the hit: strong, fair or weak."""
    peak: float = 0.0
    """Time in seconds of the moment's most representative frame."""
    duration: float = 0.0
    """Length of the whole video in seconds."""
    rate: Fraction = Fraction(25)
    """Frames per second of the video."""
    said: tuple[Cue, ...] = ()
    """The cues that overlap the moment."""
    streams: Mapping[str, StreamRank] = field(default_factory=dict)
    """The streams that found the moment, each with its rank among the moments of the answer and its score."""
    curve: tuple[float, ...] = ()
    """The vision stream's score of each clip of the video, if an explanation was requested."""
    also: tuple[str, ...] = ()
    """Names of other files with the same content."""
    width: int | None = None
    """Width of the picture in pixels, as shown."""
    height: int | None = None
    """Height of the picture in pixels, as shown."""
    audio: bool = False
    """Whether the video is known to have sound."""
    first: StreamRank | None = None
    """If a model re-ranked the hit: its video's rank and fused score before that."""
    model: str = ""
    """Name of the model that re-ranked the hit; empty if none did."""
    written: tuple[Cue, ...] = ()
    """The lines of text that OCR found on screen during the moment."""
    described: tuple[Cue, ...] = ()
    """A model's descriptions of the scenes that the moment overlaps; nobody said them."""
    meant: tuple[float, float, float] | None = None
    """Start and end of the cues that match by meaning, and their cosine; None if none do."""
    encoders: Mapping[str, float] = field(default_factory=dict)
    """If an explanation was requested and two image encoders are used: how far the moment stands out by each, in
    spreads."""
    heard: tuple[Cue, ...] = ()
    """The sounds other than speech during the moment, with their labels as texts; those of the query first."""

    def meaning(self, cue: Cue) -> float | None:
        """The cosine of a cue that matches by meaning; None if it does not."""
        found = self.meant is not None and self.meant[0] <= cue.start and cue.end <= self.meant[1]
        return self.meant[2] if found and self.meant is not None else None

    @property
    def moment(self) -> Moment:
        """The moment alone: the video's name, start and end."""
        return Moment(self.name, self.start, self.end)


def heard_labels(hit: Hit) -> list[str]:
    """The labels of the sounds during a hit, each once."""
    return list(dict.fromkeys(cue.text for cue in hit.heard))


def hidden_text(hidden: int, what: str = "weaker result") -> str:
    """The number of hidden hits, in words.

    >>> hidden_text(1), hidden_text(MAX_HIDDEN)
    ('1 weaker result', '20 or more weaker results')
    """
    return count(hidden, what) if hidden < MAX_HIDDEN else f"{MAX_HIDDEN} or more {what}s"


class Results(list[Hit], Tabular):
    """The hits of a search, best match first, as a list with additional information.

    >>> results = Results([], Query.parse("a unicorn"), hidden=4, note="nothing here matches well")
    >>> len(results), results.hidden, str(results.query)
    (0, 4, 'a unicorn')
    """

    def __init__(
        self, hits: Iterable[Hit] = (), query: Query | None = None, hidden: int = 0, took: float = 0.0, note: str = ""
    ) -> None:
        super().__init__(hits)
        self.query = query or Query()
        """The query that was asked."""
        self.hidden = hidden
        """Number of hidden weak hits, independent of ``k``; counted up to :data:`MAX_HIDDEN`."""
        self.took = took
        """Seconds that the search took."""
        self.note = note
        """A remark about the answer for people; empty if there is nothing to say."""
        self.understood = Understanding()
        """What the image encoders recognise in the query."""
        self.missing: tuple[str, ...] = ()
        """Names of the parts of the library that did not answer, if it has several."""
        self.outdated = ""
        """Why the answer may be outdated (the library's store cannot be reached); empty if it is current."""

    @property
    def complete(self) -> bool:
        """Whether the whole library was searched, in its current state."""
        return not self.missing and not self.outdated

    def __repr__(self) -> str:
        hidden = f", {hidden_text(self.hidden, 'weaker one')} hidden" if self.hidden else ""
        return f"<Results for {str(self.query)!r}: {count(len(self), 'hit')}{hidden}>"

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """One row per hit, best match first; ``video`` is its name, ``start`` and ``end`` are seconds."""
        return {
            "rank": [hit.rank for hit in self],
            "video": [hit.name for hit in self],
            "start": [hit.start for hit in self],
            "end": [hit.end for hit in self],
            "score": [hit.score for hit in self],
            "level": [hit.level for hit in self],
            "said": [" ".join(cue.text for cue in hit.said) for hit in self],
            "written": [" / ".join(line.text for line in hit.written) for hit in self],
            "described": [" ".join(caption.text for caption in hit.described) for hit in self],
            "heard": [", ".join(heard_labels(hit)) for hit in self],
            "path": [str(hit.path) for hit in self],
        }
