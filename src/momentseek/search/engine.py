"""Engine: answers queries over a library; a :class:`SearchSession` is one search in it, by words or by an example."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.reader import LibraryReader
from momentseek.library.tracks.descriptions import caption_times, captions_between
from momentseek.library.tracks.readings import line_times, lines_between
from momentseek.library.video import Video
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels, Vectors
from momentseek.search.fusion import Candidate, KnownVideo, StreamPlaces, drop_repeats, fit_span, fit_spans, merge_hits
from momentseek.search.hit import Hit, Results, StreamHit
from momentseek.search.localise.localiser import Curve, localise
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query, time_period
from momentseek.search.rerank import open_reranker, read_input
from momentseek.search.session import PagedSearch, RankingSession, Times, WordHits
from momentseek.search.state import Ids, LibraryState, QueryEncoder, StreamIndex
from momentseek.search.streams.name import NameHit, search_names
from momentseek.search.streams.phrases import find_phrases, phrase_times
from momentseek.search.streams.speech import bound_by_words, search_speech
from momentseek.search.streams.timed_text import search_described, search_sounds, search_text
from momentseek.search.streams.trained import choose_search, search_by_map
from momentseek.search.streams.vision import (
    ClipSearch,
    LibrarySearch,
    VisionQuery,
    WholeSearch,
    build_curve,
    query_of_vector,
)

if TYPE_CHECKING:
    from momentseek.recognition.captions.scenes import SceneCaption
    from momentseek.recognition.exported.reranker import Reranker
    from momentseek.search.rerank import RerankInput


CONTEXT_SECONDS = 6.0
"""Time before and after what is said in which the picture may set the times of a moment."""
NOTHING_PASSES_NOTE = "no video passes the filters of the query"


class Engine:
    """Answers queries over a library; keeps query vectors and the library's state warm between them."""

    def __init__(self, library: LibraryReader, encoder: QueryEncoder | None = None) -> None:
        self._library = library
        self._encoder = encoder or QueryEncoder(library.encoders)
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


def allowed_videos(catalog: Catalog, query: Query, now: float | None = None) -> Ids | None:
    """Ids of the videos that pass a query's filters (``in:``, ``before:``, ``after:``); None for all.

    ``now`` is the time from which they count, in seconds since 1970.
    """
    since, until = time_period(query.after, query.before, time.time() if now is None else now)
    if since is not None and until is not None and since >= until:
        raise MomentseekError(f"no time is after {query.after} and before {query.before}; widen one of them")
    allowed = None
    if query.within or since is not None or until is not None:
        allowed = catalog.ids(names=query.within, after=since, before=until)
    if query.outside:
        allowed = catalog.ids() if allowed is None else allowed
        allowed = allowed[~np.isin(allowed, catalog.ids(names=query.outside))]
    return allowed


class SearchSession(RankingSession):
    """One search in one library."""

    def __init__(self, state: LibraryState, query: Query, options: SearchOptions, allowed: Ids | None) -> None:
        super().__init__(state, query, options)
        self.state, self.allowed = state, allowed

    def rank(self) -> list[Candidate]:
        """Rank everything that the streams find as one list of candidates without repetitions."""
        if self.query.phrases:  # word for word is a condition, whichever streams are asked
            found = find_phrases(self.state.catalog, self.query.phrases, self.allowed)
            self.phrases = bound_by_words(self.state.catalog, found, self.query.phrases)
            self.allowed = np.unique(np.array([hit.video for hit in self.phrases], np.int64))
        return super().rank()

    def look(self, asked: VisionQuery, depth: int) -> PagedSearch:
        """A look at what is seen."""
        head, localiser = self.state.vision.head, self.options.localiser
        if head is None and not self._searches_by_map(asked):
            return LibrarySearch(self.state, ClipSearch(asked, localiser), self.allowed, depth)

        if self._searches_by_map(asked):
            return WholeSearch(search_by_map(self.state, asked, self.allowed, depth))
        return LibrarySearch(self.state, choose_search(asked, localiser, head), self.allowed, depth)

    def find_words(self) -> WordHits:
        """What the streams of words find."""
        query, catalog, allowed = self.query, self.state.catalog, self.allowed
        spoken: Sequence[StreamHit] = self.phrases
        if self.asks.speech:
            spoken = search_speech(self.state, query.speech_text, allowed, only_speech=bool(query.said))
            if query.said:
                spoken = bound_by_words(catalog, spoken, query.said)
        return WordHits(
            spoken,
            search_text(catalog, query.written_text, allowed, only_text=bool(query.written)) if self.asks.text else (),
            self._find_sounds(),
            self._find_described(),
        )

    # few libraries have these, so that what finds them is only imported where it can find something

    def _find_sounds(self) -> Sequence[StreamHit]:
        if not (self.asks.sounds and self.state.catalog.has_sounds):
            return ()

        return search_sounds(self.state.catalog, self.asks.picture_text, self.allowed)

    def _find_described(self) -> Sequence[StreamHit]:
        if not (self.asks.described and self.state.catalog.has_descriptions):
            return ()

        text, only = self.query.described_text, bool(self.query.described)
        return search_described(self.state.catalog, text, self.allowed, only_described=only)

    def _captions(self, video: int, start: float, end: float) -> tuple[SceneCaption, ...]:
        if not self.state.catalog.has_descriptions:
            return ()

        return tuple(captions_between(self.state.catalog, video, start, end))

    def find_names(self) -> list[NameHit]:
        """The videos whose names have words of the query."""
        return search_names(self.state.catalog, self.query.name_text, self.allowed)

    def known_videos(self, ids: Iterable[int]) -> Mapping[int, Video]:
        """Videos by their ids."""
        return self.state.videos(ids)

    def best_candidates(self, ids: Sequence[int]) -> dict[int, Candidate]:
        """The best span of each of some videos, or all of it where no picture is looked for."""
        return {id: self._best_candidate(video) for id, video in self.state.videos(ids).items()}

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

    def unwanted_times(self, videos: set[int]) -> Times:
        """When something is said, written or described in some videos that must not be."""
        catalog, query = self.state.catalog, self.query
        out: Times = {}
        if not (query.unsaid or query.unwritten or query.undescribed):
            return out

        for found in (
            phrase_times(catalog, query.unsaid, videos),
            line_times(catalog, query.unwritten, videos),
            caption_times(catalog, query.undescribed, videos),
        ):
            for video, times in found.items():
                out.setdefault(video, []).extend(times)
        return out

    def rerank_inputs(self, model: Reranker, firsts: Sequence[Candidate]) -> dict[int, RerankInput]:
        """What a re-ranking model reads of the videos of some candidates, by video."""

        videos = self.state.videos(c.video for c in firsts)
        return {
            c.video: read_input(self.state, model, videos[c.video], self.curve(videos[c.video]), c.peak) for c in firsts
        }

    # showing

    def make_hits(self, shown: Sequence[Candidate], places: StreamPlaces) -> list[Hit]:
        """The hits of candidates, with all that is shown of them."""
        self.state.videos(c.video for c in shown)
        return [self.make_hit(rank, c, places) for rank, c in enumerate(self.set_times_by_picture(list(shown)), 1)]

    def set_times_by_picture(self, chosen: list[Candidate]) -> list[Candidate]:
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

    def make_hit(self, rank: int, c: Candidate, places: StreamPlaces) -> Hit:
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
            self._captions(video.id, start, end),
        )


@dataclass(frozen=True, eq=False)
class SearchExample:
    """What moments should look like: a unit vector, and the moment it was taken from, if it is in the library."""

    vector: Vectors
    video: Video | None = None
    start: float = 0.0
    end: float = 0.0

    def is_shown_by(self, candidate: Candidate, video: KnownVideo) -> bool:
        """Whether a candidate shows some of the example itself, be it in a copy of the file."""
        if self.video is None or (video.hash or video.id) != (self.video.hash or self.video.id):
            return False
        return candidate.start < self.end and self.start < candidate.end


def example_of_moment(index: StreamIndex, video: Video, start: float, end: float) -> SearchExample:
    """The clips of a moment as an example: the mean of their vectors; a moment shorter than a clip is that clip."""
    rows = index.rows(video.id)
    if rows is None or not len(rows) or not np.isfinite(rows).all():
        raise MomentseekError(f"{video.name}: has no sound vectors to compare with; run momentseek verify")
    middles = (np.arange(len(rows)) + 0.5) * index.clip_seconds
    inside = (middles >= start) & (middles < end)
    if not inside.any():
        inside[min(int((start + end) / 2 / index.clip_seconds), len(rows) - 1)] = True
    first, last = np.flatnonzero(inside)[[0, -1]].tolist()
    begin, finish = min(start, first * index.clip_seconds), max(end, (last + 1) * index.clip_seconds)
    return SearchExample(_unit(rows[inside].mean(axis=0)), video, begin, min(finish, video.duration))


def example_of_picture(encoder: ImageTextEncoder, picture: Pixels) -> SearchExample:
    """A picture as an example."""
    return SearchExample(_unit(encoder.encode_images([picture])[0]))


def check_filters(where: Query) -> None:
    """Refuse words beside an example."""
    if where or where.avoid or where.unsaid:
        raise MomentseekError(
            "an example and words exclude each other; of a query, only in:, before: and after: go with an example"
        )


def search_like(engine: Engine, example: SearchExample, where: Query, options: SearchOptions) -> Results:
    """The moments that look most like an example, in the videos that the filters of ``where`` let pass."""
    began = time.perf_counter()
    check_filters(where)
    state = engine.state()
    allowed = allowed_videos(state.catalog, where)
    if allowed is not None and not len(allowed):
        return Results([], where, 0, time.perf_counter() - began, NOTHING_PASSES_NOTE)
    session = ExampleSession(state, example, where, options, allowed)
    results = session.show(session.rank())
    results.took = time.perf_counter() - began
    return results


class ExampleSession(SearchSession):
    """One search by an example: what is seen alone is asked, and the example itself is no answer."""

    def __init__(
        self, state: LibraryState, example: SearchExample, where: Query, options: SearchOptions, allowed: Ids | None
    ) -> None:
        super().__init__(state, where, options, allowed)
        self.example = example

    def rank(self) -> list[Candidate]:
        """Rank the moments that look like the example."""
        if not len(self.state.vision.sample):
            return []
        self.search_vision(query_of_vector(self.state.vision, self.example.vector))
        videos = self.state.videos(hit.video for hit in self.vision.hits)
        found = merge_hits(self.vision.hits, [], videos)
        return drop_repeats(self.fuse([c for c in found if not self.example.is_shown_by(c, videos[c.video])]))


def _unit(vector: Vectors) -> Vectors:
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length < 1e-6:
        raise MomentseekError("the example says nothing to the library's encoder; choose another one")
    return np.asarray(vector / length, np.float32)
