"""One search from its streams to its hits, wherever the videos lie: in one library, or in shards on many machines.

The streams run on their own. What they find on the same moment of a video becomes one candidate, with the times that
the picture gives. Candidates are fused into one ranking, repetitions dropped, and levels decide what is shown.
:class:`RankingSession` does that; what it must ask of videos and their vectors is left to those that can tell
(:class:`momentseek.search.engine.SearchSession`, :class:`momentseek.cluster.search.session.ShardedSession`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from momentseek.search.fusion import (
    MAX_WORD_CANDIDATES,
    Candidate,
    KnownVideo,
    StreamPlaces,
    drop_copies,
    drop_repeats,
    is_same_moment,
    merge_hits,
    rank_candidates,
    stream_places,
)
from momentseek.search.hit import MAX_HIDDEN, Hit, Results, StreamHit
from momentseek.search.localise.localiser import MAP_LOCALISER, MAX_SPANS
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.rerank import rank_reranked, rerank_videos
from momentseek.search.state import QueryEncoder, SampledIndex
from momentseek.search.streams.name import NameHit
from momentseek.search.streams.vision import MAX_VIDEOS, VisionQuery, VisionResult, build_vision_query

if TYPE_CHECKING:
    from momentseek.recognition.exported.reranker import Reranker
    from momentseek.search.rerank import RerankInput


SMALL_LIBRARY_CLIPS = 200
"""Clips (five minutes) below which the nearest hits are shown even if none is sure …"""
MAX_NEAREST_HITS = 3
"""… so many of them."""
LARGE_DIFFERENCE_SPREADS = 2.0
"""Spreads between the scores of two pictures that are a large difference, where scores are fused."""
UNKNOWN_WORDS_NOTE = "the encoder of pictures knows no word of the query; ask in other words, or see docs/encoders.md"
DAMAGED_NOTE = "some of the library's vectors are damaged; run momentseek verify"
NOT_RERANKED_NOTE = "the query says nothing that a picture could show, so the moments were not re-ranked"

Times = dict[int, list[tuple[float, float]]]
"""Starts and ends by video."""


@dataclass(frozen=True)
class WordHits:
    """What the streams of words found, each best first."""

    spoken: Sequence[StreamHit] = ()
    written: Sequence[StreamHit] = ()
    sounds: Sequence[StreamHit] = ()
    told: Sequence[StreamHit] = ()

    @property
    def candidates(self) -> list[StreamHit]:
        """Those that may enter the ranking where the picture shows nothing."""
        lists = (self.spoken, self.written, self.sounds, self.told)
        return [hit for hits in lists for hit in hits[:MAX_WORD_CANDIDATES]]


@dataclass(frozen=True)
class AskedStreams:
    """Which streams a search asks, and in which words."""

    query: Query
    options: SearchOptions

    @property
    def speech(self) -> bool:
        """Whether words are looked for in what is said; phrases are found otherwise."""
        query = self.query
        wanted = "speech" in self.options.streams and not query.phrases and bool(query.speech_text)
        return wanted and not (query.names and not query.said)

    @property
    def text(self) -> bool:
        """Whether words are looked for in what is written."""
        query = self.query
        return "text" in self.options.streams and bool(query.written_text) and not (query.names and not query.written)

    @property
    def described(self) -> bool:
        """Whether words are looked for in what a model says of scenes."""
        query = self.query
        wanted = "described" in self.options.streams and bool(query.described_text)
        return wanted and not (query.names and not query.described)

    @property
    def sounds(self) -> bool:
        """Whether sounds are looked for: they are heard, as speech is."""
        return "speech" in self.options.streams and bool(self.query.picture_parts)

    @property
    def names(self) -> bool:
        """Whether words are looked for in the names of videos."""
        return "name" in self.options.streams and bool(self.query.name_text) and not self.query.phrases

    @property
    def picture_text(self) -> str:
        """All that the query says of the picture."""
        return " ".join(part.text for part in self.query.picture_parts)


class SearchedLibrary(Protocol):
    """What a session knows of the library before it asks: how to encode, and what is usual."""

    @property
    def vision(self) -> SampledIndex: ...

    @property
    def encoder(self) -> QueryEncoder: ...

    @property
    def damaged(self) -> bool: ...


class PagedSearch(Protocol):
    """A look at videos that seeks spans on as many of them as are needed."""

    def result(self, page: int) -> VisionResult:
        """The best spans by what is seen, if a page has so many; a larger page goes on from a smaller one."""
        ...


def first_page(options: SearchOptions) -> tuple[int, int]:
    """How many spans fill the first page, and on how many videos they are sought at most."""
    if options.rerank is not None:  # then it is videos that are wanted
        return MAX_SPANS * options.rerank_videos, max(MAX_VIDEOS, options.rerank_videos)
    return 2 * max(options.k, MAX_HIDDEN), MAX_VIDEOS


class RankingSession(ABC):
    """One search while it runs: :meth:`rank` asks the streams, :meth:`show` makes hits of the best candidates."""

    def __init__(self, state: SearchedLibrary, query: Query, options: SearchOptions) -> None:
        self._searched, self.query, self.options = state, query, options
        self.asks = AskedStreams(query, options)
        self.vision_query: VisionQuery | None = None
        self.vision = VisionResult([], {})
        self.unknown_words = False
        """Whether the vision stream was asked in words that its encoder does not know."""
        self.strange_words: list[str] = []
        """The words among those of which its encoder knows nothing."""
        self.unfamiliar: tuple[str, ...] = ()
        """Words of the query for which an encoder that works by labels has none."""
        self.phrases: list[StreamHit] = []
        """Where the phrases of the query are said, word for word."""
        self.unsaid: Times = {}
        """Where something is said or written that must not be, by video."""

    # what is asked of the library

    @abstractmethod
    def look(self, asked: VisionQuery, depth: int) -> PagedSearch:
        """A look at what is seen, on ``depth`` videos at most."""

    @abstractmethod
    def find_words(self) -> WordHits:
        """What the streams of words find; where phrases are asked for, ``spoken`` are those."""

    @abstractmethod
    def find_names(self) -> list[NameHit]:
        """The videos whose names have words of the query, best first."""

    @abstractmethod
    def known_videos(self, ids: Iterable[int]) -> Mapping[int, KnownVideo]:
        """Videos by their ids; those that have just been removed are missing."""

    @abstractmethod
    def best_candidates(self, ids: Sequence[int]) -> dict[int, Candidate]:
        """The best span of each of some videos, or all of it where no picture is looked for."""

    @abstractmethod
    def unwanted_times(self, videos: set[int]) -> Times:
        """When something is said, written or described in some videos that must not be."""

    @abstractmethod
    def rerank_inputs(self, model: Reranker, firsts: Sequence[Candidate]) -> dict[int, RerankInput]:
        """What a re-ranking model reads of the videos of some candidates, by video."""

    @abstractmethod
    def make_hits(self, shown: Sequence[Candidate], places: StreamPlaces) -> list[Hit]:
        """The hits of candidates, with all that is shown of them."""

    # asking the streams

    def rank(self) -> list[Candidate]:
        """Rank everything that the streams find as one list of candidates without repetitions."""
        query = self.query
        if "vision" in self.options.streams and query.picture_parts and len(self._searched.vision.sample):
            self._search_words()
        found = self.find_words()
        videos = self.known_videos(hit.video for hit in (*self.vision.hits, *found.candidates))
        candidates = merge_hits(self.vision.hits, found.spoken, videos, found.written, found.sounds, found.told)
        if query.phrases:
            candidates = [c for c in candidates if "speech" in c.ranks]
        if self.asks.names:
            self._add_names(candidates)
        self.unsaid = self.unwanted_times({c.video for c in candidates})
        return drop_repeats(self.fuse(self._without_unsaid(candidates)))

    def _search_words(self) -> None:
        """Search for what the query's words describe. Where the encoder knows none of them, nothing is sure."""
        query, index, encoder = self.query, self._searched.vision, self._searched.encoder
        encode = encoder.encode
        texts = [part.text for part in query.picture_parts]
        self.unknown_words = not encoder.knows_words("vision", texts)
        self.strange_words = encoder.unknown_words("vision", texts)
        encode_spans = partial(encode, "spans") if index.head or index.moments else None
        named = encoder.evidence("vision", self.asks.picture_text)
        self.unfamiliar = encoder.unfamiliar_words("vision", texts)
        self.search_vision(
            build_vision_query(index, query.picture_parts, query.avoid, partial(encode, "vision"), encode_spans, named)
        )
        if self.unknown_words:
            weak = [replace(hit, level="weak") for hit in self.vision.hits]
            self.vision = VisionResult(weak, self.vision.curves)

    def search_vision(self, asked: VisionQuery) -> None:
        """Search what is seen until a page of hits is full."""
        self.vision_query = asked
        page, depth = first_page(self.options)
        look = self.look(asked, depth)
        while True:
            self.vision = look.result(page)
            if self.vision.whole or len(self.vision.hits) < page or self._fills_page(self.vision.hits):
                break
            page *= 2

    def _searches_by_map(self, query: VisionQuery) -> bool:
        return query.moments is not None and self.options.localiser == MAP_LOCALISER

    def _fills_page(self, hits: Sequence[StreamHit]) -> bool:
        """Whether hits fill a page once copies of a file, and others of the same video if so asked, are left out."""
        first: dict[str | int, int] = {}
        for id, video in self.known_videos(hit.video for hit in hits).items():
            first.setdefault(video.hash or id, id)
        if self.options.rerank is not None:
            return len(first) >= self.options.rerank_videos
        own = set(first.values())
        mine = [hit for hit in hits if hit.video in own]
        if self.options.group == "video":
            sure = {hit.video for hit in mine if hit.level != "weak"}
            return len(own) >= self.options.k and len(own - sure) >= MAX_HIDDEN
        return len(mine) >= self.options.k and sum(hit.level == "weak" for hit in mine) >= MAX_HIDDEN

    def _add_names(self, candidates: list[Candidate]) -> None:
        """Let the names of videos count for the best moment of each."""
        names = self.find_names()
        videos = self.known_videos(name.video for name in names)
        best = {c.video: c for c in reversed(self.fuse(candidates))}
        new = self.best_candidates([name.video for name in names if name.video in videos and name.video not in best])
        for rank, name in enumerate(names, 1):
            one = best.get(name.video) or new.get(name.video)
            if one is not None:
                one.add_stream("name", rank, name.score, name.level)
                if name.video in new:
                    candidates.append(one)

    # ranking

    def fuse(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates as one ranking of all streams, best first."""
        units = {}
        if (query := self.vision_query) is not None:
            moments = query.moments if self._searches_by_map(query) else None
            spread = query.scale.spread if moments is None else moments.spread
            units["vision"] = LARGE_DIFFERENCE_SPREADS * spread
        return rank_candidates(candidates, self.options.fusion, units)

    def _without_unsaid(self, candidates: list[Candidate]) -> list[Candidate]:
        """The candidates in which nothing is said or written that must not be."""
        return [c for c in candidates if not any(s < c.end and c.start < e for s, e in self.unsaid.get(c.video, ()))]

    def rerank(self, candidates: Sequence[Candidate], model: Reranker) -> list[Candidate]:
        """The model's moments in the first videos of a ranking, where what must be said is said and nothing else."""

        videos = self.known_videos(c.video for c in candidates)
        firsts = list(drop_copies(candidates, videos, one_per_video=True))[: self.options.rerank_videos]
        moments = rerank_videos(self.rerank_inputs(model, firsts), model, self.asks.picture_text, firsts)
        if self.query.phrases:
            moments = [
                c for c in moments
                if any(p.video == c.video and is_same_moment(p.start, p.end, c.start, c.end) for p in self.phrases)
            ]  # fmt: skip
        return rank_reranked(self._without_unsaid(moments))

    # showing

    def show(self, candidates: Sequence[Candidate]) -> Results:
        """Hits of the best candidates, how many weak ones are left out, and what to say about it."""
        videos = self.known_videos(c.video for c in candidates)
        chosen = list(drop_copies(candidates, videos, one_per_video=self.options.group == "video"))
        sure = [c for c in chosen if c.level != "weak"]
        k, notes = self.options.k, []
        if self.options.all:
            shown = chosen[:k]
        elif sure:
            shown = sure[:k]
        else:
            small = self._searched.vision.clips < SMALL_LIBRARY_CLIPS and not self.unknown_words
            shown = chosen[: min(k, MAX_NEAREST_HITS)] if small else []
            if chosen and not self.unknown_words:
                notes.append("nothing matches well; these are the nearest" if shown else "nothing matches well")
        if self.unknown_words:
            notes.append(UNKNOWN_WORDS_NOTE)
        elif self.strange_words:
            notes.append(f"the encoder of pictures does not know: {', '.join(self.strange_words)}")
        if self._searched.damaged:
            notes.append(DAMAGED_NOTE)
        if self.options.rerank is not None and not self.query.picture_parts:
            notes.append(NOT_RERANKED_NOTE)
        hidden = 0
        if not self.options.all:  # the same for every k: weak hits are counted as far as they are always looked for
            hidden = max(0, min(len(chosen) - len(sure), MAX_HIDDEN) - (0 if sure else len(shown)))
        places = stream_places(chosen if self.options.all else sure or shown)
        results = Results(self.make_hits(shown, places), self.query, hidden, note="; ".join(notes))
        results.unfamiliar = self.unfamiliar
        return results
