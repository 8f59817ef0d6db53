"""Engine: answers queries over a library; a :class:`SearchSession` is one search from its streams to its hits.

The streams run on their own. What they find on the same moment of a video becomes one candidate, with the times that
the picture gives. Candidates are fused into one ranking, repetitions dropped, and levels decide what is shown.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.descriptions import caption_times, captions_between
from momentseek.library.reader import LibraryReader
from momentseek.library.readings import line_times, lines_between
from momentseek.library.video import Video
from momentseek.search.dates import time_period
from momentseek.search.fusion import (
    DEFAULT_FUSION,
    FUSIONS,
    MAX_WORD_CANDIDATES,
    Candidate,
    StreamPlaces,
    drop_copies,
    drop_repeats,
    fit_span,
    fit_spans,
    is_same_moment,
    merge_hits,
    rank_candidates,
    stream_places,
)
from momentseek.search.hit import MAX_HIDDEN, Hit, Results, StreamHit
from momentseek.search.localise.localiser import (
    DEFAULT_LOCALISER,
    LEARNED_LOCALISER,
    LOCALISERS,
    MAP_LOCALISER,
    MAX_SPANS,
    Curve,
    localise,
)
from momentseek.search.query import Query
from momentseek.search.rerank import open_reranker, rank_reranked, rerank_videos
from momentseek.search.state import Ids, LibraryState, QueryEncoder
from momentseek.search.streams.described import search_described
from momentseek.search.streams.name import search_names
from momentseek.search.streams.phrases import find_phrases, phrase_times
from momentseek.search.streams.sound import search_sounds
from momentseek.search.streams.speech import search_speech
from momentseek.search.streams.spoken_words import bound_by_words
from momentseek.search.streams.text import search_text
from momentseek.search.streams.trained import search_by_head, search_by_map
from momentseek.search.streams.vision import (
    MAX_VIDEOS,
    VisionQuery,
    VisionResult,
    build_curve,
    build_vision_query,
    search_vision,
)
from momentseek.trained.reranker import Reranker

Group = Literal["clip", "video"]
Stream = Literal["vision", "speech", "text", "described", "name"]
STREAMS: tuple[Stream, ...] = get_args(Stream)
MAX_RERANKED_VIDEOS = 1000
"""Videos that a model may look at again for one query."""
CONTEXT_SECONDS = 6.0
"""Time before and after what is said in which the picture may set the times of a moment."""
SMALL_LIBRARY_CLIPS = 200
"""Clips (five minutes) below which the nearest hits are shown even if none is sure …"""
MAX_NEAREST_HITS = 3
"""… so many of them."""
LARGE_DIFFERENCE_SPREADS = 2.0
"""Spreads between the scores of two pictures that are a large difference, where scores are fused."""
NOTHING_PASSES_NOTE = "no video passes the filters of the query"
UNKNOWN_WORDS_NOTE = "the encoder of pictures knows no word of the query; ask in other words, or see docs/encoders.md"
DAMAGED_NOTE = "some of the library's vectors are damaged; run momentseek verify"
NOT_RERANKED_NOTE = "the query says nothing that a picture could show, so the moments were not re-ranked"


@dataclass(frozen=True)
class SearchOptions:
    """How to search: how many hits, by which streams, grouped how."""

    k: int = 20
    """Hits to return at most."""
    localiser: str = DEFAULT_LOCALISER
    """Name of what finds start and end."""
    group: Group = "clip"
    """``video`` for one hit per video."""
    streams: tuple[Stream, ...] = STREAMS
    """The streams that are asked."""
    explain: bool = False
    """Whether hits bring the curve of their video."""
    all: bool = False
    """Whether weak hits are shown too."""
    fusion: str = DEFAULT_FUSION
    """Name of what makes one ranking of the streams."""
    rerank: str | None = None
    """Folder of an exported model that looks at the best videos again; None for none."""
    rerank_videos: int = 20
    """Videos that the model looks at."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise MomentseekError(f"k is {self.k}; ask for at least 1 result")
        if self.group not in get_args(Group):
            raise MomentseekError(f"there is no grouping {self.group!r}; there are clip and video")
        unknown = [name for name in self.streams if name not in STREAMS]
        if unknown or not self.streams:
            what = f"there is no stream {unknown[0]!r}" if unknown else "no stream is chosen"
            raise MomentseekError(f"{what}; there are {', '.join(STREAMS)}")
        if not 1 <= self.rerank_videos <= MAX_RERANKED_VIDEOS:
            raise MomentseekError(f"{self.rerank_videos} videos cannot be re-ranked; choose 1 to {MAX_RERANKED_VIDEOS}")
        _ = LOCALISERS[self.localiser], FUSIONS[self.fusion]


class Engine:
    """Answers queries over a library; keeps query vectors and the library's state warm between them."""

    def __init__(self, library: LibraryReader) -> None:
        self._library = library
        self._encoder = QueryEncoder(library.encoders)
        self._state: LibraryState | None = None

    def search(self, query: Query, options: SearchOptions) -> Results:
        """The best moments for a query."""
        began = time.perf_counter()
        query.check()
        model = None
        if options.rerank is not None and query.picture_parts:
            model = open_reranker(options.rerank, self._library.catalog, self._library.clip_seconds)
        state = self.state()
        allowed = allowed_videos(self._library.catalog, query)
        if allowed is not None and not len(allowed):
            return Results([], query, 0, time.perf_counter() - began, NOTHING_PASSES_NOTE)
        session = SearchSession(state, query, options, allowed)
        candidates = session.rank()
        if model is not None:
            candidates = session.rerank(candidates, model)
        results = session.show(candidates)
        results.took = time.perf_counter() - began
        return results

    def state(self) -> LibraryState:
        """The library as it is now, opened anew only if it has changed."""
        snapshot = self._library.snapshot()
        if self._state is None or self._state.snapshot is not snapshot:
            if self._state is not None and self._state.snapshot.encoders != snapshot.encoders:
                self._encoder.forget()
            self._state = LibraryState.open(self._library, snapshot, self._encoder)
        return self._state


def allowed_videos(catalog: Catalog, query: Query) -> Ids | None:
    """Ids of the videos that pass a query's filters (``in:``, ``before:``, ``after:``); None for all."""
    since, until = time_period(query.after, query.before, time.time())
    if since is not None and until is not None and since >= until:
        raise MomentseekError(f"no time is after {query.after} and before {query.before}; widen one of them")
    allowed = None
    if query.within or since is not None or until is not None:
        allowed = catalog.ids(names=query.within, after=since, before=until)
    if query.outside:
        allowed = catalog.ids() if allowed is None else allowed
        allowed = allowed[~np.isin(allowed, catalog.ids(names=query.outside))]
    return allowed


class SearchSession:
    """One search while it runs: :meth:`rank` asks the streams, :meth:`show` makes hits of the best candidates."""

    def __init__(self, state: LibraryState, query: Query, options: SearchOptions, allowed: Ids | None) -> None:
        self.state, self.query, self.options, self.allowed = state, query, options, allowed
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
        self.unsaid: dict[int, list[tuple[float, float]]] = {}
        """Where something is said or written that must not be, by video."""

    # asking the streams

    def rank(self) -> list[Candidate]:
        """Rank everything that the streams find as one list of candidates without repetitions."""
        query, streams = self.query, self.options.streams
        spoken: list[StreamHit] = []
        if query.phrases:  # word for word is a condition, whichever streams are asked
            found = find_phrases(self.state.catalog, query.phrases, self.allowed)
            spoken = self.phrases = bound_by_words(self.state.catalog, found, query.phrases)
            self.allowed = np.unique(np.array([hit.video for hit in spoken], np.int64))
        if "vision" in streams and query.picture_parts and len(self.state.vision.sample):
            self._search_words()
        if "speech" in streams and not query.phrases and query.speech_text and not (query.names and not query.said):
            spoken = search_speech(self.state, query.speech_text, self.allowed, only_speech=bool(query.said))
            if query.said:
                spoken = bound_by_words(self.state.catalog, spoken, query.said)
        written: list[StreamHit] = []
        if "text" in streams and query.written_text and not (query.names and not query.written):
            written = search_text(self.state.catalog, query.written_text, self.allowed, only_text=bool(query.written))
        told: list[StreamHit] = []
        if "described" in streams and query.described_text and not (query.names and not query.described):
            told = search_described(
                self.state.catalog, query.described_text, self.allowed, only_described=bool(query.described)
            )
        sounds: list[StreamHit] = []
        if "speech" in streams and query.picture_parts:  # both are what is heard
            asked = " ".join(part.text for part in query.picture_parts)
            sounds = search_sounds(self.state.catalog, asked, self.allowed)
        by_words = [hit for hits in (spoken, written, sounds, told) for hit in hits[:MAX_WORD_CANDIDATES]]
        videos = self.state.videos(hit.video for hit in (*self.vision.hits, *by_words))
        candidates = merge_hits(self.vision.hits, spoken, videos, written, sounds, told)
        if query.phrases:
            candidates = [c for c in candidates if "speech" in c.ranks]
        if "name" in streams and query.name_text and not query.phrases:
            self._add_names(candidates)
        self.unsaid = self._unwanted_times({c.video for c in candidates})
        return drop_repeats(self.fuse(self._without_unsaid(candidates)))

    def _unwanted_times(self, videos: set[int]) -> dict[int, list[tuple[float, float]]]:
        """When something is said, written or described in some videos that must not be."""
        out = phrase_times(self.state.catalog, self.query.unsaid, videos)
        catalog, query = self.state.catalog, self.query
        for found in (line_times(catalog, query.unwritten, videos), caption_times(catalog, query.undescribed, videos)):
            for video, times in found.items():
                out.setdefault(video, []).extend(times)
        return out

    def _search_words(self) -> None:
        """Search for what the query's words describe. Where the encoder knows none of them, nothing is sure."""
        query, index = self.query, self.state.vision
        encode = self.state.encoder.encode
        texts = [part.text for part in query.picture_parts]
        self.unknown_words = not self.state.encoder.knows_words("vision", texts)
        self.strange_words = self.state.encoder.unknown_words("vision", texts)
        encode_spans = partial(encode, "spans") if index.head or index.moments else None
        named = self.state.encoder.evidence("vision", " ".join(texts))
        self.unfamiliar = self.state.encoder.unfamiliar_words("vision", texts)
        self.search_vision(
            build_vision_query(index, query.picture_parts, query.avoid, partial(encode, "vision"), encode_spans, named)
        )
        if self.unknown_words:
            weak = [replace(hit, level="weak") for hit in self.vision.hits]
            self.vision = VisionResult(weak, self.vision.curves)

    def search_vision(self, asked: VisionQuery) -> None:
        """Search what is seen until a page of hits is full."""
        options, index = self.options, self.state.vision
        self.vision_query = asked
        page, depth = 2 * max(options.k, MAX_HIDDEN), MAX_VIDEOS
        if options.rerank is not None:  # then it is videos that are wanted
            page, depth = MAX_SPANS * options.rerank_videos, max(MAX_VIDEOS, options.rerank_videos)
        if self._searches_by_map(asked):
            self.vision = search_by_map(self.state, asked, self.allowed, depth)
        else:
            while True:
                if index.head is not None and asked.spans is not None and options.localiser == LEARNED_LOCALISER:
                    self.vision = search_by_head(self.state, asked, self.allowed, page, depth)
                else:
                    self.vision = search_vision(self.state, asked, self.allowed, options.localiser, page, depth)
                if len(self.vision.hits) < page or self._fills_page(self.vision.hits):
                    break
                page *= 2

    def _searches_by_map(self, query: VisionQuery) -> bool:
        return query.moments is not None and self.options.localiser == MAP_LOCALISER

    def _fills_page(self, hits: Sequence[StreamHit]) -> bool:
        """Whether hits fill a page once copies of a file, and others of the same video if so asked, are left out."""
        first: dict[str | int, int] = {}
        for id, video in self.state.videos(hit.video for hit in hits).items():
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
        names = search_names(self.state.catalog, self.query.name_text, self.allowed)
        videos = self.state.videos(name.video for name in names)
        best = {c.video: c for c in reversed(self.fuse(candidates))}
        for rank, name in enumerate(names, 1):
            if name.video not in videos:
                continue
            one = best.get(name.video)
            if one is None:
                one = self._best_candidate(videos[name.video])
                candidates.append(one)
            one.add_stream("name", rank, name.score, name.level)

    def _best_candidate(self, video: Video) -> Candidate:
        """The best span of a video that was not among the best, or all of it where no picture is looked for."""
        curve = self.curve(video)
        if curve is None:
            return Candidate(video.id, 0.0, video.duration, video.duration / 2)
        spans = localise(curve, self.options.localiser, limit=1)
        return Candidate(video.id, float(spans.start[0]), float(spans.end[0]), float(spans.peak[0]))

    def curve(self, video: Video) -> Curve | None:
        """The vision stream's curve of any video; None where no picture is looked for or the video has no vectors."""
        if self.vision_query is None:
            return None
        if video.id not in self.vision.curves:
            curve = build_curve(self.state.vision, self.vision_query, video)
            if curve is None:
                return None
            self.vision.curves[video.id] = curve
        return self.vision.curves[video.id]

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
        videos = self.state.videos(c.video for c in candidates)
        firsts = list(drop_copies(candidates, videos, one_per_video=True))[: self.options.rerank_videos]
        curves = {c.video: self.curve(videos[c.video]) for c in firsts}
        text = " ".join(part.text for part in self.query.picture_parts)
        moments = rerank_videos(self.state, model, text, firsts, curves)
        if self.query.phrases:
            moments = [
                c for c in moments
                if any(p.video == c.video and is_same_moment(p.start, p.end, c.start, c.end) for p in self.phrases)
            ]  # fmt: skip
        return rank_reranked(self._without_unsaid(moments))

    # showing

    def show(self, candidates: Sequence[Candidate]) -> Results:
        """Hits of the best candidates, how many weak ones are left out, and what to say about it."""
        videos = self.state.videos(c.video for c in candidates)
        chosen = list(drop_copies(candidates, videos, one_per_video=self.options.group == "video"))
        sure = [c for c in chosen if c.level != "weak"]
        k, notes = self.options.k, []
        if self.options.all:
            shown = chosen[:k]
        elif sure:
            shown = sure[:k]
        else:
            small = self.state.vision.clips < SMALL_LIBRARY_CLIPS and not self.unknown_words
            shown = chosen[: min(k, MAX_NEAREST_HITS)] if small else []
            if chosen and not self.unknown_words:
                notes.append("nothing matches well; these are the nearest" if shown else "nothing matches well")
        if self.unknown_words:
            notes.append(UNKNOWN_WORDS_NOTE)
        elif self.strange_words:
            notes.append(f"the encoder of pictures does not know: {', '.join(self.strange_words)}")
        if self.state.damaged:
            notes.append(DAMAGED_NOTE)
        if self.options.rerank is not None and not self.query.picture_parts:
            notes.append(NOT_RERANKED_NOTE)
        hidden = 0
        if not self.options.all:  # the same for every k: weak hits are counted as far as they are always looked for
            hidden = max(0, min(len(chosen) - len(sure), MAX_HIDDEN) - (0 if sure else len(shown)))
        places = stream_places(chosen if self.options.all else sure or shown)
        hits = [self._hit(rank, c, places) for rank, c in enumerate(self._set_times_by_picture(shown), 1)]
        results = Results(hits, self.query, hidden, note="; ".join(notes))
        results.unfamiliar = self.unfamiliar
        return results

    def _set_times_by_picture(self, chosen: list[Candidate]) -> list[Candidate]:
        """Give moments that are only said the times that the picture near the words has, if it is at least fair there.

        Done last, and only for what is shown. A moment that would then repeat another, or hold words that must not be
        said, keeps the time of its words.
        """
        out: list[Candidate] = []
        for at, c in enumerate(chosen):
            wider = self._with_picture_times(c) if "vision" not in c.ranks and "speech" in c.ranks else None
            others = [o for o in (*out, *chosen[at + 1 :]) if o.video == c.video]
            fits = wider is not None and len(drop_repeats([*others, wider])) > len(others)
            out.append(wider if wider is not None and fits and self._without_unsaid([wider]) else c)
        return out

    def _with_picture_times(self, said: Candidate) -> Candidate | None:
        """A spoken moment with the times of the span that the picture shows there; None if that is not even fair."""
        video = self.state.known_videos[said.video]
        curve = self.curve(video)
        if self.vision_query is None or curve is None:
            return None
        near = curve.around(said.start, said.end, CONTEXT_SECONDS)
        spans = localise(near, self.options.localiser)
        starts, ends = fit_spans(spans.start, spans.end, video.duration)
        for start, end, peak in zip(starts.tolist(), ends.tolist(), spans.peak.tolist(), strict=True):
            covers = min(end, said.end) - max(start, said.start) >= (said.end - said.start) / 2
            if covers and self.vision_query.level(curve, start, end) != "weak":
                return replace(said, start=start, end=end, peak=peak)
        return None

    def _hit(self, rank: int, c: Candidate, places: StreamPlaces) -> Hit:
        video, catalog = self.state.known_videos[c.video], self.state.catalog
        start, end = fit_span(c.start, c.end, video.duration)
        curve = self.curve(video) if self.options.explain else None
        return Hit(
            rank,
            video.id,
            video.path,
            video.name,
            start,
            end,
            c.score,
            c.level,
            min(max(c.peak, start), end),
            video.duration,
            video.rate,
            tuple(cue for cue in catalog.cues(video.id) if cue.start < end and start < cue.end),
            {name: replace(one, rank=places[name][one.rank]) for name, one in c.ranks.items()},
            () if curve is None else tuple(curve.scores.tolist()),
            catalog.copies(video),
            video.width or None,
            video.height or None,
            video.audio,
            c.first,
            c.model,
            tuple(lines_between(catalog, video.id, start, end)),
            tuple(captions_between(catalog, video.id, start, end)),
        )
