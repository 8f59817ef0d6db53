"""LibraryPart: answers the requests of a search about the videos of one library, in one state.

The same requests are made in this process and on other machines, so arguments and answers can be pickled.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.library import database
from momentseek.library.catalog import Catalog
from momentseek.library.database import OCR, SPEECH
from momentseek.library.reader import LibraryReader
from momentseek.library.scan.spans import search_spans
from momentseek.library.timed_text import tracked_videos
from momentseek.library.video import AnyVideo
from momentseek.library.word_counts import (
    CAPTIONS,
    CUES,
    LINES,
    NAMES,
    SPELLINGS,
    TextRows,
    WordCounts,
    WordIndex,
    count_words,
    rank_texts,
)
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.span_head import SpanHead
from momentseek.search import rerank
from momentseek.search.example import SearchExample, example_of_moment
from momentseek.search.fusion import Candidate, StreamPlaces, drop_repeats, fit_span, fit_spans, without_times
from momentseek.search.hit import Hit, Results, StreamHit
from momentseek.search.localise.localiser import LEARNED_LOCALISER, Curve, clips_around, localise
from momentseek.search.query import Query, time_period
from momentseek.search.requests import (
    FoundMoments,
    PartCounts,
    PartStatistics,
    Questions,
    SearchRequest,
    Times,
    VideoCards,
    VideoDetails,
)
from momentseek.search.state import LibraryState
from momentseek.search.stream_index import Ids, SampleKind, SamplePart
from momentseek.search.streams.moment_map import list_by_planes
from momentseek.search.streams.phrases import find_phrases, phrase_times
from momentseek.search.streams.sounds import AskedSound, find_sounds
from momentseek.search.streams.span_search import SearchedVideos, VideoList, in_order, seek_spans
from momentseek.search.streams.speech import MeaningQuery, bound_by_words, find_meant
from momentseek.search.streams.timed_text import MAX_TEXTS, TextKind, rarest_words
from momentseek.search.streams.trained import choose_search, moments_of_video
from momentseek.search.streams.vision import VisionQuery, VisionSearch, build_curve, clip_edges, score_videos

CONTEXT_SECONDS = 6.0
"""How far before and after spoken words a visual span may begin or end to replace their times."""
WORD_INDICES: dict[TextKind, WordIndex] = {
    "cues": CUES, "lines": LINES, "spellings": SPELLINGS, "captions": CAPTIONS, "names": NAMES,
}  # fmt: skip


class WarmState:
    """Caches the state of a library, and opens it again only if the library has changed."""

    def __init__(self, library: LibraryReader) -> None:
        self._library = library
        self._state: LibraryState | None = None

    def state(self) -> LibraryState:
        """The library as it is now."""
        snapshot = self._library.snapshot()
        if self._state is None or self._state.snapshot is not snapshot:
            self._state = LibraryState.open(self._library, snapshot)
        return self._state

    def part(self) -> LibraryPart:
        """The library in its current state, ready to answer requests."""
        return LibraryPart(self.state())

    def begin(self) -> Questions:
        """Begin a search in the current state of the library; the whole search uses this state."""
        return OneLibraryQuestions(self.part())

    def ask(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Answer one request about the library in its current state."""
        answer, origin = getattr(self.part(), method)(**arguments), self._library.origin
        if origin is not None and isinstance(answer, PartStatistics):
            return replace(answer, outdated=origin.why_outdated())
        return answer


class OneLibraryQuestions:
    """Sends requests to a single part; an error there is an error of the search."""

    def __init__(self, part: LibraryPart) -> None:
        self._part = part
        self.parts = [0]
        self.failed: dict[int, str] = {}

    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Return the answer, under the number 0."""
        return {number: getattr(self._part, method)(**some) for number, some in arguments.items()}

    def finish(self, results: Results) -> None:
        """Do nothing: a single part cannot be missing."""


def allowed_videos(catalog: Catalog, query: Query, now: float | None = None) -> Ids | None:
    """Ids of the videos that pass a query's filters (``in:``, ``before:``, ``after:``); None for all.

    ``now`` is the reference time for ages such as ``7d``, in seconds since 1970.
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


class LibraryPart:
    """One library in one state; its methods answer the requests of :class:`momentseek.search.session.SearchSession`.

    It caches what several requests need: the videos that pass the filters, hits of phrases, and curves.
    """

    def __init__(self, state: LibraryState) -> None:
        self.state, self._catalog = state, state.catalog
        self._filters: dict[tuple[Query, float], Ids | None] = {}
        self._phrases: dict[tuple[Query, float], list[StreamHit]] = {}
        self._search: tuple[VisionQuery, VisionSearch] | None = None

    # statistics

    def statistics(
        self, asked: SearchRequest, words: Mapping[TextKind, Sequence[str]], misspelt: Sequence[str] = ()
    ) -> PartStatistics:
        """The size of this part, how often words occur in it, and similar spellings of the ``misspelt`` ones."""
        state, allowed = self.state, self._allowed_ids(asked)
        vision = state.vision
        return PartStatistics(
            PartCounts(
                state.snapshot.generation,
                vision.clips,
                state.speech.clips,
                vision.span_count,
                vision.window_count,
                state.snapshot.encoders,
            ),
            None if allowed is None else len(allowed),
            {kind: count_words(self._catalog, WORD_INDICES[kind], terms) for kind, terms in words.items()},
            {term: self._catalog.near_spellings(term, OCR) for term in misspelt},
            state.sound_labels,
        )

    def _allowed_ids(self, asked: SearchRequest) -> Ids | None:
        key = asked.query, asked.now
        if key not in self._filters:
            self._filters[key] = allowed_videos(self._catalog, asked.query, asked.now)
        return self._filters[key]

    def _phrase_hits(self, asked: SearchRequest) -> list[StreamHit]:
        """The moments in which the phrases of a query are said, word for word."""
        key = asked.query, asked.now
        if key not in self._phrases:
            self._phrases[key] = find_phrases(self._catalog, asked.query.phrases, self._allowed_ids(asked))
        return self._phrases[key]

    def _searched_ids(self, asked: SearchRequest) -> Ids | None:
        """The videos to search: those that pass the filters and, if the query has phrases, in which they are said."""
        if not asked.query.phrases:
            return self._allowed_ids(asked)
        return np.unique(np.array([hit.video for hit in self._phrase_hits(asked)], np.int64))

    def sample(self, stream: str, kind: SampleKind, step: int) -> SamplePart:
        """The part's share of a sample of a stream (``vision`` or ``speech``)."""
        return (self.state.vision if stream == "vision" else self.state.speech).sample_part(kind, step)

    # candidates

    def scan(self, asked: SearchRequest, probes: Vectors, depth: int) -> tuple[VideoList, ...]:
        """The ``depth`` best videos here by the vision stream, best first; a list for each row of ``probes``."""
        index = self.state.vision
        if not index.segments:
            return ()
        mask = index.allowed_mask(self._searched_ids(asked))
        curves = None if asked.vision is None else asked.vision.curves
        if curves is not None and isinstance(index.head, SpanHead) and asked.options.localiser == LEARNED_LOCALISER:
            best = search_spans(index.scan, curves, depth, allowed=mask, gone=index.gone)
        else:
            best = index.scan.search(probes, depth, allowed=mask, gone=index.gone)
        return tuple(VideoList(*each) for each in zip(best.ids, best.scores, strict=True))

    def find(
        self,
        asked: SearchRequest,
        *,
        videos: Ids | None = None,
        page: int = 0,
        depth: int = 0,
        meaning: MeaningQuery | None = None,
        words: Mapping[TextKind, tuple[Sequence[str], WordCounts]] | None = None,
        sounds: Mapping[str, AskedSound] | None = None,
        cards: bool = False,
    ) -> FoundMoments:
        """Find moments in this part: at least those that it contributes to the answer of the whole library.

        ``videos`` are the videos of this part that are among the best of the whole library; spans are sought on them
        until there is a ``page`` of spans. ``depth`` is the number of videos that each plane of a map model lists.
        ``words`` maps each kind of text to the words to look for in it, with their counts over all parts. ``cards``
        adds the cards of all videos that are mentioned.
        """
        state, allowed = self.state, self._searched_ids(asked)
        said = self._phrase_hits(asked) if asked.query.phrases else []
        bounded = bound_by_words(self._catalog, said, asked.query.phrases) if said else []
        phrases = tuple(zip(said, bounded, strict=True))
        searched = None if asked.vision is None or depth else self._spans(asked, asked.vision, videos, page)
        planes: tuple[VideoList, ...] = ()
        if depth and asked.vision is not None and asked.vision.moments is not None and state.vision.moments:
            planes = list_by_planes(state.vision, asked.vision.moments, allowed, depth)
        texts = {kind: self._texts(kind, *some, allowed) for kind, some in (words or {}).items()}
        meant = None if meaning is None else find_meant(state, meaning, allowed)
        heard = tuple(find_sounds(self._catalog, sounds, allowed)) if sounds else ()
        found = FoundMoments(searched, planes, phrases, texts, meant, heard, damaged=state.damaged)
        if not cards:
            return found
        mentioned = {match.hit.video for match in heard} | {hit.video for hit in said}
        mentioned.update(video for rows in texts.values() for video in rows.videos)
        mentioned.update(id for some in planes for id in some.ids.tolist())
        mentioned.update([] if meant is None else meant.video.tolist())
        mentioned.update([] if searched is None else searched.videos.tolist())
        return replace(found, cards=self.cards(asked, mentioned))

    def _vision_search(self, asked: SearchRequest, vision: VisionQuery) -> VisionSearch:
        """The search of the vision stream; the one before if the query is the same, with its cached curves."""
        if self._search is None or self._search[0] is not vision:
            self._search = vision, choose_search(vision, asked.options.localiser, self.state.vision.head)
        return self._search[1]

    def _spans(self, asked: SearchRequest, vision: VisionQuery, videos: Ids | None, page: int) -> SearchedVideos:
        """Find spans on videos of this part until there is a page of them."""
        search = self._vision_search(asked, vision)
        scores = in_order(search.video_scores(self.state, [] if videos is None else videos.tolist()))
        hits = seek_spans(scores, search.budget(page), lambda ids: search.spans(self.state, ids))
        return SearchedVideos(np.array(list(scores), np.int64), np.array(list(scores.values()), np.float64), hits)

    def _texts(self, kind: TextKind, terms: Sequence[str], everywhere: WordCounts, allowed: Ids | None) -> TextRows:
        index = WORD_INDICES[kind]
        sought = terms if kind in ("names", "spellings") else rarest_words(terms, everywhere.of(terms))
        with self._catalog.view():  # all in one state
            found = rank_texts(self._catalog, index, sought, allowed, MAX_TEXTS[kind], everywhere, terms)
        if kind == "cues":
            transcribed = tracked_videos(self._catalog, SPEECH, set(found.videos))
            found.table[-1] = [video in transcribed for video in found.videos]
        return found

    def cards(self, asked: SearchRequest, ids: Iterable[int]) -> VideoCards:
        """The cards of some videos; those that are not here are missing."""
        found = list(self.state.video_cards(ids).values())
        times = np.array([video.duration for video in found], np.float64)
        return VideoCards(np.array([video.id for video in found], np.int64), times, [video.hash for video in found])

    # single videos

    def details(
        self,
        asked: SearchRequest,
        *,
        best: Sequence[int] = (),
        unwanted: Sequence[int] = (),
        moments: Sequence[int] = (),
        spans: Sequence[int] = (),
        spoken: Sequence[StreamHit] = (),
    ) -> VideoDetails:
        """Return details of single videos, by the kind of detail.

        ``best`` lists videos whose best span is wanted; ``unwanted`` those whose times with words that the query
        excludes; ``moments`` those whose moments by a map model; ``spans`` those whose spans. ``spoken`` lists moments
        to be bounded by the times of their words.
        """
        state = self.state
        found: dict[int, list[StreamHit]] = {}
        if asked.vision is not None and state.vision.moments is not None:
            for id, video in state.video_cards(moments).items():
                found[id] = moments_of_video(state, asked.vision, video)
        if asked.vision is not None and spans:
            search = self._vision_search(asked, asked.vision)
            found |= zip(spans, search.spans(state, spans), strict=True)
        return VideoDetails(
            {id: self._best_span(asked, video) for id, video in state.video_cards(best).items()},
            self._unwanted_times(asked.query, set(unwanted)) if unwanted else {},
            found,
            bound_by_words(self._catalog, spoken, asked.query.said) if spoken else [],
        )

    def _best_span(self, asked: SearchRequest, video: AnyVideo) -> Candidate:
        """Return the best span of a video, or the whole video if the query has no visual part, or it has no vectors."""
        curve = self._curve(asked, video)
        if curve is None:
            return Candidate(video.id, 0.0, video.duration, video.duration / 2)
        spans = localise(curve, asked.options.localiser, limit=1)
        return Candidate(video.id, float(spans.start[0]), float(spans.end[0]), float(spans.peak[0]))

    def _curve(self, asked: SearchRequest, video: AnyVideo) -> Curve | None:
        """The vision stream's curve of a video; None if the query has no visual part, or the video no vectors."""
        return None if asked.vision is None else build_curve(self.state.vision, asked.vision, video)

    def _unwanted_times(self, query: Query, videos: set[int]) -> Times:
        """The times at which words that the query excludes are said, written or described in some videos."""
        out: Times = {}
        for found in (
            phrase_times(self._catalog, query.unsaid, videos),
            self._catalog.cue_times(query.unwritten, videos, OCR),
            self._catalog.cue_times(query.undescribed, videos, database.CAPTIONS),
        ):
            for video, times in found.items():
                out.setdefault(video, []).extend(times)
        return out

    def rerank_inputs(self, asked: SearchRequest, firsts: Sequence[Candidate]) -> dict[int, rerank.RerankInput]:
        """The inputs of a re-ranking model for the videos of candidates."""
        if asked.options.rerank is None:
            raise MomentseekError("no model was named; name the folder of one")
        model = rerank.open_reranker(asked.options.rerank, self._catalog, self.state.vision.clip_seconds)
        videos = self.state.videos(c.video for c in firsts)
        return {
            c.video: rerank.read_input(self.state, model, video, self._curve(asked, video), c.peak)
            for c in firsts
            if (video := videos.get(c.video)) is not None
        }

    def example(self, video: int, start: float, end: float) -> SearchExample | None:
        """A moment of a video as an example; None if this part does not have the video."""
        found = self.state.videos([video])
        return example_of_moment(self.state.vision, found[video], start, end) if found else None

    # hits

    def hits(
        self, asked: SearchRequest, chosen: Sequence[tuple[int, Candidate]], places: StreamPlaces, unsaid: Times
    ) -> list[Hit]:
        """Turn candidates, each with its rank in the whole answer, into hits with everything that is shown."""
        known = self.state.videos(c.video for _, c in chosen)
        pairs = [(rank, c) for rank, c in chosen if c.video in known]
        timed = self._set_times_by_picture(asked, [c for _, c in pairs], unsaid)
        return [self._hit(asked, rank, c, places) for (rank, _), c in zip(pairs, timed, strict=True)]

    def _set_times_by_picture(self, asked: SearchRequest, chosen: list[Candidate], unsaid: Times) -> list[Candidate]:
        """Give moments found by speech alone the times of a visual span near the words, if it is at least fair.

        This is done last, and only for shown moments. A moment that would then repeat another one, or contain excluded
        words, keeps the times of its words.
        """
        spoken = [c for c in chosen if "vision" not in c.ranks and "speech" in c.ranks]
        pictured = self._near_fair_clips(asked.vision, spoken) if asked.vision is not None and spoken else set()
        out: list[Candidate] = []
        for at, c in enumerate(chosen):
            wider = self._with_picture_times(asked, c) if c in pictured else None
            others = [o for o in (*out, *chosen[at + 1 :]) if o.video == c.video]
            fits = wider is not None and len(drop_repeats([*others, wider])) > len(others)
            out.append(wider if wider is not None and fits and without_times([wider], unsaid) else c)
        return out

    def _near_fair_clips(self, vision: VisionQuery, spoken: Sequence[Candidate]) -> set[Candidate]:
        """The spoken moments with a clip near the words that is at least fair; no span of the others is."""
        if vision.evidence is None:
            return set(spoken)
        found, index = set(), self.state.vision
        for block, scores in score_videos(index, vision, [c.video for c in spoken]):
            signs = vision.signs(block.rows)
            places = dict(zip(block.ids, pairwise(block.offsets.tolist()), strict=True))
            for c in spoken:
                if (place := places.get(c.video)) is not None:
                    edges = clip_edges(index, self.state.known_videos[c.video], place[1] - place[0])
                    first, last = clips_around(edges, c.start, c.end, CONTEXT_SECONDS)
                    clips = slice(place[0] + first, place[0] + last)
                    if vision.level(scores[clips], None if signs is None else signs[clips]) != "weak":
                        found.add(c)
        return found

    def _with_picture_times(self, asked: SearchRequest, said: Candidate) -> Candidate | None:
        """A spoken moment with the times of the visual span that covers it; None if no such span is at least fair."""
        video = self.state.known_videos[said.video]
        curve = self._curve(asked, video)
        if asked.vision is None or curve is None:
            return None
        near = curve.around(said.start, said.end, CONTEXT_SECONDS)
        spans = localise(near, asked.options.localiser)
        starts, ends = fit_spans(spans.start, spans.end, video.duration)
        for start, end, peak in zip(starts.tolist(), ends.tolist(), spans.peak.tolist(), strict=True):
            covers = min(end, said.end) - max(start, said.start) >= (said.end - said.start) / 2
            if covers and asked.vision.level_on(curve, start, end) != "weak":
                return replace(said, start=start, end=end, peak=peak)
        return None

    def _hit(self, asked: SearchRequest, rank: int, c: Candidate, places: StreamPlaces) -> Hit:
        video, catalog = self.state.known_videos[c.video], self._catalog
        start, end = fit_span(c.start, c.end, video.duration)
        curve = self._curve(asked, video) if asked.options.explain else None
        texts = catalog.texts_between(video.id, start, end)
        return Hit(
            rank=rank,
            video_id=video.id,
            path=video.path,
            name=video.name,
            start=start,
            end=end,
            score=c.score,
            level=c.level,
            peak=min(max(c.peak, start), end),
            duration=video.duration,
            rate=video.rate,
            said=texts.get(SPEECH.name, ()),
            streams={name: replace(one, rank=places[name][one.rank]) for name, one in c.ranks.items()},
            curve=() if curve is None else tuple(curve.scores.tolist()),
            also=catalog.copies(video),
            width=video.width,
            height=video.height,
            audio=video.audio,
            first=c.first,
            model=c.model,
            written=texts.get(OCR.name, ()),
            described=texts.get(database.CAPTIONS.name, ()),
            meant=c.meant,
            encoders={} if curve is None or asked.vision is None else asked.vision.encoder_scores(curve, start, end),
            heard=texts.get(database.SOUNDS.name, ()),
        )
