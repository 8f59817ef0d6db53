"""SearchShard: answers a coordinator's questions about one shard, which is an ordinary library.

It is the same object in the coordinator's process and on another machine: what goes in and out can be pickled. Nothing
is kept between two questions but what an :class:`Engine` keeps warm, so any copy of a shard may answer the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from momentseek.cluster.search.requests import (
    BoundRequest,
    DetailRequest,
    ExampleRequest,
    PhraseRows,
    RerankRequest,
    SampleRequest,
    ScanRequest,
    ShardAnswer,
    ShardCounts,
    ShardDetails,
    ShardRequest,
    ShardSample,
    ShardStatistics,
    ShowRequest,
    TextKind,
    TextRows,
    VideoCards,
    WordRequest,
)
from momentseek.cluster.word_counts import (
    CAPTIONS,
    CUES,
    LINES,
    NAMES,
    SPELLINGS,
    WordCounts,
    WordIndex,
    count_words,
    rank_texts,
    read_texts,
)
from momentseek.core.errors import MomentseekError
from momentseek.library.reader import LibraryReader
from momentseek.library.tracks.readings import near_spellings
from momentseek.library.tracks.transcripts import transcribed_videos
from momentseek.search.engine import Engine, SearchExample, SearchSession, allowed_videos, example_of_moment
from momentseek.search.hit import Hit, StreamHit
from momentseek.search.query import Query
from momentseek.search.rerank import RerankInput, open_reranker
from momentseek.search.state import Ids, LibraryState, QueryEncoder
from momentseek.search.streams.moment_map import list_by_planes
from momentseek.search.streams.phrases import find_phrases
from momentseek.search.streams.span_search import SearchedVideos, VideoList, in_order, seek_spans
from momentseek.search.streams.speech import MAX_CUES, bound_by_words, find_meant
from momentseek.search.streams.timed_text import MAX_LINES, find_sounds
from momentseek.search.streams.trained import choose_search, moments_of_video
from momentseek.search.streams.vision import VisionQuery

WORD_INDICES: dict[TextKind, WordIndex] = {
    "cues": CUES, "lines": LINES, "spellings": SPELLINGS, "captions": CAPTIONS, "names": NAMES,
}  # fmt: skip
LIMITS: dict[TextKind, int] = {
    "cues": MAX_CUES, "lines": MAX_LINES, "spellings": MAX_LINES, "captions": 400, "names": 100,
}  # fmt: skip
"""Texts that are looked at, as in one library."""


class SearchShard:
    """One shard of a library, ready to be asked; the methods are the questions of :class:`ShardedSession`."""

    def __init__(self, library: LibraryReader, encoder: QueryEncoder | None = None) -> None:
        self._library = library
        self._engine = Engine(library, encoder)

    # what is global in a search

    def statistics(self, asked: WordRequest) -> ShardStatistics:
        """How much this shard holds, and how often words occur in it."""
        state, catalog = self._engine.state(), self._library.catalog
        allowed = allowed_videos(catalog, asked.query, asked.now)
        passing = None if allowed is None else len(allowed)
        return ShardStatistics(
            self._counts(state),
            passing,
            {kind: count_words(catalog, WORD_INDICES[kind], terms) for kind, terms in asked.words.items()},
            {term: near_spellings(catalog, term) for term in asked.misspelt} if catalog.has_readings else {},
            None if asked.scan is None or passing == 0 else self._lists(state, asked.query, asked.scan, allowed),
        )

    def _counts(self, state: LibraryState) -> ShardCounts:
        vision = state.vision
        return ShardCounts(
            state.snapshot.generation,
            len(vision.ids) - len(state.snapshot.gone),
            vision.clips,
            state.speech.clips,
            vision.span_count,
            vision.window_count if vision.moments is not None else 0,
            state.snapshot.encoders,
        )

    def sample(self, asked: SampleRequest) -> ShardSample:
        """The part of a sample that lies in this shard."""
        state = self._engine.state()
        if asked.kind == "vision":
            return ShardSample(state.vision.sampled_clips(asked.step))
        if asked.kind == "speech":
            return ShardSample(state.speech.sampled_clips(asked.step))
        if asked.kind == "videos":
            return ShardSample(parts=tuple(state.vision.sampled_videos(asked.step)))
        has_moments = state.vision.moments is not None
        return ShardSample(parts=tuple(state.vision.sampled_windows(asked.step)) if has_moments else ())

    def lists(self, asked: WordRequest) -> tuple[VideoList, ...]:
        """The videos here that scans list, best first."""
        state = self._engine.state()
        allowed = allowed_videos(self._library.catalog, asked.query, asked.now)
        found = None if asked.scan is None else self._lists(state, asked.query, asked.scan, allowed)
        return found or ()

    def _lists(
        self, state: LibraryState, query: Query, asked: ScanRequest, allowed: Ids | None
    ) -> tuple[VideoList, ...] | None:
        index = state.vision
        if not index.segments:
            return ()
        if index.segments[0].dim != asked.probes.shape[1]:
            return None
        if query.phrases:
            allowed = np.unique([hit.video for hit in find_phrases(self._library.catalog, query.phrases, allowed)])
        mask = index.allowed_mask(allowed)
        best = index.scan.search(asked.probes, asked.reach, allowed=mask, gone=index.gone)
        return tuple(VideoList(*each) for each in zip(best.ids, best.scores, strict=True))

    # what is found

    def search(self, asked: ShardRequest) -> ShardAnswer:
        """What this shard has of what is looked for: at least what it would have in the answer of the whole library."""
        state, catalog = self._engine.state(), self._library.catalog
        allowed = allowed_videos(catalog, asked.query, asked.now)
        phrases = None
        if asked.query.phrases:
            phrases = self._phrases(asked, allowed)
            allowed = np.unique(phrases.video)
        looked = None if asked.vision is None or asked.reach else self._look(state, asked, asked.vision)
        planes = self._planes(state, asked, asked.vision, allowed) if asked.vision is not None and asked.reach else ()
        heard = transcribed_videos(catalog) if "cues" in asked.words else frozenset()
        texts = {kind: self._texts(kind, *asked.words[kind], allowed, heard) for kind in asked.words}
        meant = None if asked.meaning is None else find_meant(state, asked.meaning, allowed)
        sounds = tuple(find_sounds(catalog, asked.sounds, allowed)) if asked.sounds else ()
        mentioned = [match.hit.video for match in sounds]
        for rows in (phrases, meant):
            mentioned += [] if rows is None else rows.video.tolist()
        for found in texts.values():
            mentioned += found.ranked.video.tolist()
        mentioned += [] if looked is None else looked.videos.tolist()
        mentioned += [id for each in planes for id in each.ids.tolist()]
        return ShardAnswer(looked, planes, phrases, texts, meant, sounds, self._cards(state, mentioned), state.damaged)

    def _phrases(self, asked: ShardRequest, allowed: Ids | None) -> PhraseRows:
        found = find_phrases(self._library.catalog, asked.query.phrases, allowed)
        bounded = bound_by_words(self._library.catalog, found, asked.query.phrases)
        columns = [(a.video, a.score, a.start, a.end, b.start, b.end) for a, b in zip(found, bounded, strict=True)]
        table = np.array(columns, np.float64).reshape(-1, 6)
        return PhraseRows(np.array([hit.video for hit in found], np.int64), *table.T[1:])

    def _look(self, state: LibraryState, asked: ShardRequest, vision: VisionQuery) -> SearchedVideos:
        """The spans on videos of this shard, until it has a page of them."""
        look = choose_search(vision, asked.options.localiser, state.vision.head)
        places = {} if asked.videos is None else state.vision.places(asked.videos)
        worth = in_order(look.worth(state, places))
        hits = seek_spans(worth, look.budget(asked.page), lambda id: look.spans(state, id, places[id]))
        return SearchedVideos(np.array(list(worth), np.int64), np.array(list(worth.values()), np.float64), hits)

    def _planes(
        self, state: LibraryState, asked: ShardRequest, vision: VisionQuery, allowed: Ids | None
    ) -> tuple[VideoList, ...]:
        if vision.moments is None or state.vision.moments is None:
            return ()
        return list_by_planes(state.vision, vision.moments, allowed, asked.reach)

    def _texts(
        self, kind: TextKind, terms: Sequence[str], everywhere: WordCounts, allowed: Ids | None, heard: frozenset[int]
    ) -> TextRows:
        catalog, index = self._library.catalog, WORD_INDICES[kind]
        ranked = rank_texts(catalog, index, terms, allowed, LIMITS[kind], everywhere)
        start, end, texts, at = (
            zip(*read_texts(catalog, index, ranked.id), strict=True) if len(ranked.id) else ((),) * 4
        )
        by_machine = [video in heard for video in ranked.video.tolist()]
        return TextRows.of(ranked, start, end, at, by_machine, list(texts))

    def _cards(self, state: LibraryState, ids: Iterable[int]) -> VideoCards:
        known = state.videos(sorted(set(ids)))
        return VideoCards(
            np.array(list(known), np.int64),
            np.array([video.duration for video in known.values()], np.float64),
            [video.hash for video in known.values()],
        )

    # what is said of single videos

    def details(self, asked: DetailRequest) -> ShardDetails:
        """The best spans of some videos, the times at which something is in them that must not be, their moments."""
        session = self._session(asked)
        moments: dict[int, list[StreamHit]] = {}
        if asked.moments and asked.vision is not None and session.state.vision.moments is not None:
            for id, video in session.state.videos(asked.moments).items():
                moments[id] = moments_of_video(session.state, asked.vision, video)[1]
        seen: dict[int, list[StreamHit]] = {}
        if asked.seen and asked.vision is not None:
            look = choose_search(asked.vision, asked.options.localiser, session.state.vision.head)
            places = session.state.vision.places(np.array(asked.seen, np.int64))
            seen = {id: look.spans(session.state, id, place) for id, place in places.items()}
        return ShardDetails(
            session.best_candidates(asked.spans),
            session.unwanted_times(set(asked.unwanted)) if asked.unwanted else {},
            moments,
            seen,
        )

    def bounds(self, asked: BoundRequest) -> list[StreamHit]:
        """Moments with the times of the words in them, where these are known."""
        return bound_by_words(self._library.catalog, asked.hits, asked.said)

    def rerank_inputs(self, asked: RerankRequest) -> dict[int, RerankInput]:
        """What a re-ranking model reads of the videos of candidates."""
        if asked.options.rerank is None:
            raise MomentseekError("no model was named; name the folder of one")
        model = open_reranker(asked.options.rerank, self._library.catalog, self._library.clip_seconds)
        return self._session(asked).rerank_inputs(model, asked.firsts)

    def show(self, asked: ShowRequest) -> list[Hit]:
        """The hits of candidates, with all that is shown of them."""
        session = self._session(asked)
        session.unsaid = asked.unsaid
        known = session.state.videos(c.video for c in asked.candidates)
        pairs = [(rank, c) for rank, c in zip(asked.ranks, asked.candidates, strict=True) if c.video in known]
        timed = session.set_times_by_picture([c for _, c in pairs])
        return [session.make_hit(rank, c, asked.places) for (rank, _), c in zip(pairs, timed, strict=True)]

    def example(self, asked: ExampleRequest) -> SearchExample:
        """The vector of a moment of one of this shard's videos."""
        state = self._engine.state()
        found = state.videos([asked.video])
        if not found:
            raise MomentseekError("the video of the example is no longer in the library; search for another one")
        return example_of_moment(state.vision, found[asked.video], asked.start, asked.end)

    def _session(self, asked: DetailRequest | RerankRequest | ShowRequest) -> SearchSession:
        session = SearchSession(self._engine.state(), asked.query, asked.options, None)
        session.vision_query = asked.vision
        return session
