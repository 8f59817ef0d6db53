"""One search, from its streams to its hits, over all parts of a library.

The streams search independently. Their hits on the same moment of a video become one candidate. Candidates are fused
into one ranking, repetitions are dropped, and levels decide what is shown. Everything about videos and their vectors is
requested from the parts of the library (:mod:`momentseek.search.requests`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MissingWeightsError
from momentseek.library.catalog import MAX_SPELLINGS
from momentseek.library.video import VideoCard
from momentseek.library.word_counts import TextRows, WordCounts
from momentseek.library.words import content_words
from momentseek.recognition.encoders.protocol import Understanding
from momentseek.recognition.exported.reranker import Reranker
from momentseek.search.example import SearchExample
from momentseek.search.fusion import (
    MAX_WORD_CANDIDATES,
    Candidate,
    StreamPlaces,
    drop_copies,
    drop_repeats,
    is_same_moment,
    merge_hits,
    rank_candidates,
    stream_places,
    without_times,
)
from momentseek.search.hit import MAX_HIDDEN, Hit, Results, StreamHit
from momentseek.search.localise.localiser import MAP_LOCALISER, MAX_SPANS
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.requests import (
    CardIndex,
    FoundMoments,
    PartCounts,
    PartStatistics,
    Questions,
    SearchRequest,
    Times,
    VideoDetails,
)
from momentseek.search.rerank import RerankInput, rank_reranked, rerank_videos
from momentseek.search.state import QueryEncoder
from momentseek.search.stream_index import SampledIndex
from momentseek.search.streams.moment_map import bound_videos
from momentseek.search.streams.name import judge_names, name_terms
from momentseek.search.streams.sounds import AskedSound, asked_sounds, best_sounds, sound_words_in
from momentseek.search.streams.span_search import PagedSearch, SearchedVideos, VideoList, join_lists, sort_hits
from momentseek.search.streams.speech import (
    MAX_BOUNDED_HITS,
    MeaningQuery,
    MeantCues,
    ask_meaning,
    fuse_hits,
    meant_hits,
)
from momentseek.search.streams.timed_text import (
    MAX_TEXTS,
    TextKind,
    asked_in_writing,
    judge_texts,
    rarity,
    word_values,
)
from momentseek.search.streams.trained import choose_moments, choose_search, content_key
from momentseek.search.streams.vision import MAX_VIDEOS, VisionQuery, build_vision_query, query_of_vector

T = TypeVar("T")
MAX_NEAREST_HITS = 3
"""Number of weak hits that are shown if no hit is at least fair …"""
SMALL_LIBRARY_CLIPS = 200
"""… for a search by example, only in a library with fewer clips than this (five minutes)."""
LARGE_DIFFERENCE_ODDS = 2.0
"""Difference in log odds between two visual hits that counts as large when scores are fused."""
LARGE_DIFFERENCE_SPREADS = 2.0
"""Difference in spreads between two visual hits that counts as large when scores are fused."""
UNKNOWN_WORDS_NOTE = (
    "the image encoder knows no word of the query; use other words, in English for offline encoders (docs/encoders.md)"
)
MAX_NAMED_WORDS = 6
DAMAGED_NOTE = "some of the library's vectors are damaged; run momentseek verify"
NOT_RERANKED_NOTE = "the query describes nothing that a picture could show, so the moments were not re-ranked"


def understanding_notes(understood: Understanding) -> list[str]:
    """Notes on words that the image encoders do not know, or can only guess.

    >>> understanding_notes(Understanding(guessed=("segway",), unknown=("dgo",), suggestions={"dgo": "dog"}))
    ['unknown words: “dgo” (did you mean “dog”?)', 'guessed from similar words: “segway”']
    >>> understanding_notes(Understanding(guessed=("segway",), missing=("clip-words",)))
    ['queries are understood less well without clip-words; download it: momentseek models get clip-words']
    """
    notes = []
    if understood.unknown:
        near = understood.suggestions
        named = (f"“{w}” (did you mean “{near[w]}”?)" if w in near else f"“{w}”" for w in understood.unknown)
        notes.append("unknown words: " + ", ".join([*named][:MAX_NAMED_WORDS]))
    if understood.missing:
        names = " ".join(understood.missing)
        notes.append(f"queries are understood less well without {names}; download it: momentseek models get {names}")
    elif understood.guessed:
        named = (f"“{word}”" for word in understood.guessed[:MAX_NAMED_WORDS])
        notes.append(f"guessed from similar words: {', '.join(named)}")
    return notes


@dataclass(frozen=True, eq=False)
class SearchedLibrary:
    """What is cached of a library between searches: the sizes of its parts, and samples of its streams."""

    counts: Mapping[int, PartCounts]
    vision: SampledIndex
    speech: SampledIndex
    encoder: QueryEncoder


class AskedStreams:
    """The streams that a search uses, and the words for each."""

    def __init__(self, query: Query, options: SearchOptions) -> None:
        streams = options.streams
        named = bool(query.names)
        self.speech = "speech" in streams and not query.phrases and bool(query.speech_text)
        """Whether to look for words in what is said; phrases are found separately."""
        self.speech &= bool(query.said) or not named
        self.text = "text" in streams and bool(query.written_text) and (bool(query.written) or not named)
        self.described = "described" in streams and bool(query.described_text) and (bool(query.described) or not named)
        self.sounds = "speech" in streams and bool(query.picture_parts)
        """Whether to look for sounds; they belong to the speech stream."""
        self.names = "name" in streams and bool(query.name_text) and not query.phrases
        self.picture_text = " ".join(part.text for part in query.picture_parts)
        """All words of the query about the picture."""
        words: dict[TextKind, list[str]] = {
            "cues": content_words(query.speech_text) if self.speech else [],
            "lines": self._written_words(query) if self.text else [],
            "captions": content_words(query.described_text) if self.described else [],
            "names": name_terms(query.name_text) if self.names else [],
        }
        self.words = {kind: terms for kind, terms in words.items() if terms}
        """Kind of text → the words to look for in it."""

    @staticmethod
    def _written_words(query: Query) -> list[str]:
        terms = content_words(query.written_text)
        return terms if query.written else asked_in_writing(terms)


def vision_texts(query: Query) -> list[str]:
    """The texts that a search encodes for the vision stream."""
    parts = [part.text for part in (*query.picture_parts, *query.avoid)]
    return list(dict.fromkeys([*parts, AskedStreams(query, SearchOptions()).picture_text])) if parts else []


def ask_statistics(
    questions: Questions, asked: SearchRequest, words: Mapping[TextKind, Any]
) -> dict[int, PartStatistics]:
    """Make the first request of a search: the sizes of the parts, and how often words occur."""
    misspelt = words.get("lines", ()) if asked.query.written else ()
    more = {"asked": asked, "words": words, "misspelt": misspelt}
    return questions.ask("statistics", dict.fromkeys(questions.parts, more))


class SearchSession:
    """A running search: :meth:`rank` ranks candidates of all streams, :meth:`show` turns the best into hits."""

    def __init__(
        self,
        library: SearchedLibrary,
        questions: Questions,
        asked: SearchRequest,
        statistics: Mapping[int, PartStatistics],
    ) -> None:
        self.query, self.options = asked.query, asked.options
        self._library, self._questions, self._now, self._statistics = library, questions, asked.now, statistics
        self._asks = AskedStreams(asked.query, asked.options)
        self._cards = CardIndex()
        self._one_part = len(questions.parts) == 1
        """Whether cards are requested when they are needed; several parts send those of all videos they mention."""
        self._answers: Mapping[int, FoundMoments] | None = None
        self._damaged = False
        self.vision_query: VisionQuery | None = None
        self.seen: list[StreamHit] = []
        """The hits of the vision stream, best first."""
        self._unknown_words = False
        """Whether the vision stream's encoder knows no word of the query."""
        self._missing_weights = ""
        """A note on what is not searched because weights are not downloaded."""
        self._understood = Understanding()
        """What the image encoders recognise in the query."""
        self._phrases: list[StreamHit] = []
        """The moments in which the phrases of the query are said, word for word."""
        self._sounds: dict[str, AskedSound] = {}
        """The labels of the sounds that the query asks for."""
        self._unsaid: Times = {}
        """The times at which excluded words are said, written or described, by video."""

    # requests to the parts

    def _ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Send a request to some parts, each with its own arguments."""
        asked = SearchRequest(self.query, self.options, self._now, self.vision_query)
        return self._questions.ask(method, {part: {"asked": asked, **more} for part, more in arguments.items()})

    def _ask_all(self, method: str, **more: Any) -> dict[int, Any]:
        return self._ask(method, dict.fromkeys(self._questions.parts, more))

    def _details_of(self, what: str, ids: Iterable[int]) -> list[VideoDetails]:
        """Request details of some videos from the parts that have them."""
        arguments = {part: {what: some} for part, some in self._cards.by_part(ids).items()}
        return list(self._ask("details", arguments).values())

    def _find(self, videos: Mapping[int, Any] | None = None, page: int = 0, depth: int = 0) -> dict[int, FoundMoments]:
        """Request the moments of all parts; those found by words only the first time."""
        more: dict[str, Any] = {"page": page, "depth": depth, "cards": not self._one_part}
        if self._answers is None:
            self._sounds = self._asked_sounds() if self._asks.sounds else {}
            more |= {
                "meaning": self._meaning,
                "words": self._counted_words(),
                "sounds": self._sounds,
            }
        arguments = {part: {**more, "videos": (videos or {}).get(part)} for part in self._questions.parts}
        answers: dict[int, FoundMoments] = self._ask("find", arguments)
        self._damaged |= any(answer.damaged for answer in answers.values())
        self._cards.add({part: answer.cards for part, answer in answers.items()})
        if self._answers is None:
            self._answers = answers
            self._phrases = self._join_phrases()
        return answers

    def _known_videos(self, ids: Iterable[int]) -> dict[int, VideoCard]:
        wanted = list(dict.fromkeys(ids))
        found = self._cards.find(wanted)
        if self._one_part and (new := [id for id in wanted if id not in found]):
            self._cards.add(self._ask_all("cards", ids=new))
            found = self._cards.find(wanted)
        return found

    # ranking

    def rank(self) -> list[Candidate]:
        """Rank the hits of all streams as one list of candidates without repetitions."""
        query = self.query
        if "vision" in self.options.streams and query.picture_parts and len(self._library.vision.sample):
            self._with_weights(self._search_words, None)
        found = self._find_words()
        firsts = [hit for hits in found.values() for hit in hits[:MAX_WORD_CANDIDATES]]
        candidates = merge_hits(self.seen, found, self._known_videos(hit.video for hit in (*self.seen, *firsts)))
        if query.phrases:
            candidates = [c for c in candidates if "speech" in c.ranks]
        if self._asks.names:
            self._add_names(candidates)
        if query.unsaid or query.unwritten or query.undescribed:
            details = self._details_of("unwanted", {c.video for c in candidates})
            self._unsaid = {id: times for one in details for id, times in one.unwanted.items()}
        return drop_repeats(self._fuse(without_times(candidates, self._unsaid)))

    def rank_like(self, example: SearchExample) -> list[Candidate]:
        """Rank the moments that look like an example, without the example itself."""
        index = self._library.vision
        if not len(index.sample):
            return []
        self.search_vision(query_of_vector(index, example.vector))
        videos = self._known_videos(hit.video for hit in self.seen)
        found = merge_hits(self.seen, {}, videos)
        return drop_repeats(self._fuse([c for c in found if not example.is_shown_by(c, videos[c.video])]))

    def _fuse(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Rank candidates by all streams, best first."""
        units = {}
        if (query := self.vision_query) is not None:
            moments = query.moments if self._searches_by_map(query) else None
            spread = query.scale.spread if moments is None else moments.spread
            units["vision"] = LARGE_DIFFERENCE_ODDS if query.by_odds else LARGE_DIFFERENCE_SPREADS * spread
        return rank_candidates(candidates, self.options.fusion, units)

    def _add_names(self, candidates: list[Candidate]) -> None:
        """Add the name stream: a video whose name matches counts for its best moment."""
        found = self._texts("names")
        names = [] if found is None else judge_names(found, self.query.name_text)
        if not names:
            return
        videos = self._known_videos(name.video for name in names)
        best = {c.video: c for c in reversed(self._fuse(candidates))}
        wanted = [name.video for name in names if name.video in videos and name.video not in best]
        new = {id: one for details in self._details_of("best", wanted) for id, one in details.best.items()}
        for rank, name in enumerate(names, 1):
            one = best.get(name.video) or new.get(name.video)
            if one is not None:
                one.add_stream("name", rank, name.score, name.level)
                if name.video in new:
                    candidates.append(one)

    def rerank(self, candidates: Sequence[Candidate], model: Reranker) -> list[Candidate]:
        """The model's moments in the first videos of a ranking, if they contain the phrases and no excluded words."""
        videos = self._known_videos(c.video for c in candidates)
        firsts = list(drop_copies(candidates, videos, one_per_video=True))[: self.options.rerank_videos]
        arguments = {
            part: {"firsts": [c for c in firsts if c.video in some]}
            for part, some in self._cards.by_part(c.video for c in firsts).items()
        }
        answers: dict[int, dict[int, RerankInput]] = self._ask("rerank_inputs", arguments)
        inputs = {id: one for found in answers.values() for id, one in found.items()}
        self._damaged |= any(one.features is None for one in inputs.values())
        moments = rerank_videos(inputs, model, self._asks.picture_text, firsts)
        if self.query.phrases:
            moments = [
                c for c in moments
                if any(p.video == c.video and is_same_moment(p.start, p.end, c.start, c.end) for p in self._phrases)
            ]  # fmt: skip
        return rank_reranked(without_times(moments, self._unsaid))

    # what is seen

    def _search_words(self) -> None:
        """Search for what the query's words describe. If the encoder knows none of them, all hits are weak."""
        query, index, encoder = self.query, self._library.vision, self._library.encoder
        texts = [part.text for part in query.picture_parts]
        encoder.prepare(vision_texts(query))
        self._unknown_words = not encoder.knows_words("vision", texts)
        self._understood = encoder.understand("vision", texts)
        asked = build_vision_query(
            index,
            query.picture_parts,
            query.avoid,
            partial(encoder.encode, "vision"),
            encode_spans=partial(encoder.encode, "spans") if index.head or index.moments else None,
            named=encoder.evidence("vision", self._asks.picture_text),
        )
        self.search_vision(asked)
        if self._unknown_words:
            self.seen = [hit._replace(level="weak") for hit in self.seen]

    def search_vision(self, asked: VisionQuery) -> None:
        """Search the vision stream until a page of hits is full."""
        self.vision_query = asked
        page, depth = 2 * max(self.options.k, MAX_HIDDEN), MAX_VIDEOS
        if self.options.rerank is not None:  # re-ranking needs videos, not spans
            page, depth = MAX_SPANS * self.options.rerank_videos, max(MAX_VIDEOS, self.options.rerank_videos)
        if self._searches_by_map(asked):
            self.seen = sort_hits(self.search_by_map(asked, depth))
            return
        search, whole = self.paged_search(asked, depth), False
        while not whole:
            self.seen, whole = search.result(page)
            if len(self.seen) < page or self._fills_page(self.seen):
                break
            page *= 2

    def paged_search(self, asked: VisionQuery, depth: int) -> PagedSearch:
        """A search of the vision stream on at most ``depth`` videos."""
        search = choose_search(asked, self.options.localiser, self._library.vision.head)
        scanned = search.scan_depth(depth)
        lists: dict[int, tuple[VideoList, ...]] = self._ask_all("scan", probes=search.probes, depth=scanned)
        best = join_lists(lists, scanned)
        owner = {id: part for part, ids in best.items() for id in ids.tolist()}

        def begin(page: int) -> list[SearchedVideos]:
            answers = self._find(best, page)
            return [answer.searched for answer in answers.values() if answer.searched is not None]

        def go_on(videos: Sequence[int]) -> dict[int, list[StreamHit]]:
            wanted: dict[int, dict[str, list[int]]] = {}
            for id in videos:
                wanted.setdefault(owner[id], {"spans": []})["spans"].append(id)
            return {id: found for one in self._ask("details", wanted).values() for id, found in one.spans.items()}

        return PagedSearch(search.budget, depth, len(self._questions.parts), begin, go_on)

    def _searches_by_map(self, query: VisionQuery) -> bool:
        return query.moments is not None and self.options.localiser == MAP_LOCALISER

    def search_by_map(self, asked: VisionQuery, depth: int) -> list[StreamHit]:
        """The best moments of the ``depth`` best videos, a few of each, by a map model."""
        assert asked.moments is not None
        assert self._library.vision.moments is not None
        listed = depth
        while True:
            lists = [answer.planes for answer in self._find(depth=listed).values() if answer.planes]
            joined = [VideoList.join(plane, listed) for plane in zip(*lists, strict=True)]
            bounds = bound_videos(self._library.vision.moments, asked.moments, joined) if joined else {}
            videos = self._known_videos(bounds)
            if len(bounds) < listed or len({content_key(video) for video in videos.values()}) >= depth:
                break
            listed *= 2
        moments = {id: found for one in self._details_of("moments", videos) for id, found in one.spans.items()}
        return choose_moments(bounds, videos, lambda id: moments.get(id, []), depth)

    def _fills_page(self, hits: Sequence[StreamHit]) -> bool:
        """Whether hits fill a page without copies of a file and, if grouped by video, with one hit per video."""
        first: dict[str | int, int] = {}
        for id, video in self._known_videos(hit.video for hit in hits).items():
            first.setdefault(video.hash or id, id)
        if self.options.rerank is not None:
            return len(first) >= self.options.rerank_videos
        own = set(first.values())
        mine = [hit for hit in hits if hit.video in own]
        if self.options.group == "video":
            sure = {hit.video for hit in mine if hit.level != "weak"}
            return len(own) >= self.options.k and len(own - sure) >= MAX_HIDDEN
        return len(mine) >= self.options.k and sum(hit.level == "weak" for hit in mine) >= MAX_HIDDEN

    # what is said, written, described and heard

    @cached_property
    def _meaning(self) -> MeaningQuery | None:
        if not self._asks.speech:
            return None
        asked = partial(ask_meaning, self._library.speech, self._library.encoder, self.query.speech_text)
        return self._with_weights(asked, None)

    def _asked_sounds(self) -> dict[str, AskedSound]:
        labels = sorted({label for one in self._statistics.values() for label in one.sounds})
        asked = partial(asked_sounds, labels, self._asks.picture_text, self._library.encoder.label_cosines)
        return self._with_weights(asked, {})

    def _with_weights(self, work: Callable[[], T], instead: T) -> T:
        """The result of ``work``; or ``instead``, with a note, if the weights that it needs are not downloaded."""
        try:
            return work()
        except MissingWeightsError as e:
            self._missing_weights = f"only words are searched: {e}"
            return instead

    def _everywhere(self, kind: TextKind) -> WordCounts:
        return WordCounts.total(one.words[kind] for one in self._statistics.values() if kind in one.words)

    def _spellings(self) -> dict[str, list[str]]:
        """Word to look for on screen → words that it may have been misread as."""
        found = [one.spellings for one in self._statistics.values()]
        return {
            term: sorted({other for one in found for other in one.get(term, ())})[:MAX_SPELLINGS]
            for term in self._asks.words.get("lines", ())
        }

    def _counted_words(self) -> dict[TextKind, tuple[Sequence[str], WordCounts]]:
        """Kind of text → the words to look for in it, and how often they occur in all parts."""
        out: dict[TextKind, tuple[Sequence[str], WordCounts]] = {}
        for kind, terms in self._asks.words.items():
            out[kind] = terms, self._everywhere(kind)
        if other := list(dict.fromkeys(word for some in self._spellings().values() for word in some)):
            counts: dict[int, PartStatistics] = self._ask_all("statistics", words={"spellings": other})
            out["spellings"] = (other, WordCounts.total(one.words["spellings"] for one in counts.values()))
        return out

    def _weight(self, kind: TextKind) -> NDArray[np.float64]:
        total = self._everywhere(kind)
        return rarity(total.of(self._asks.words[kind]), total.texts)

    def _find_words(self) -> dict[str, list[StreamHit]]:
        """The hits of the streams of words and sounds, each best first."""
        if self._answers is None:
            self._find()
        query, answers = self.query, self._answers or {}
        return {
            "speech": self._phrases if query.phrases else self._find_speech(),
            "text": self._judge("lines", only_here=bool(query.written)),
            "sound": best_sounds([match for answer in answers.values() for match in answer.sounds]),
            "described": self._judge("captions", only_here=bool(query.described)),
        }

    def _judge(self, kind: TextKind, only_here: bool) -> list[StreamHit]:
        """The hits of texts of a kind; lines with misspelt words are among those on screen."""
        found = self._texts(kind)
        if found is None:
            return []
        terms = self._asks.words[kind]
        values = found.holds.astype(np.float64)
        if kind == "lines" and (misspelt := self._texts("spellings")) is not None:
            found = found.with_others(misspelt)
            values = word_values(found.texts, terms, self._spellings())
        nowhere = np.array(self._everywhere(kind).of(terms)) == 0
        return judge_texts(kind, found, values, self._weight(kind), only_here=only_here, nowhere=nowhere)

    def _texts(self, kind: TextKind) -> TextRows | None:
        """The texts of all parts that match best; None if none are sought."""
        parts = [answer.texts[kind] for answer in (self._answers or {}).values() if kind in answer.texts]
        return TextRows.join(parts, MAX_TEXTS[kind]) if parts else None

    def _find_speech(self) -> list[StreamHit]:
        hits = self._judge("cues", only_here=bool(self.query.said))
        meant = [answer.meant for answer in (self._answers or {}).values() if answer.meant is not None]
        if meant and self._meaning is not None:
            hits = fuse_hits(hits, meant_hits(MeantCues.join(meant), self._meaning))
        return self._set_word_times(hits) if self.query.said else hits

    def _set_word_times(self, hits: list[StreamHit]) -> list[StreamHit]:
        """The hits, the first ones with the times of the spoken words."""
        first = hits[:MAX_BOUNDED_HITS]
        cards = self._known_videos(hit.video for hit in first)
        by_part: dict[int, list[int]] = {}
        for at, hit in enumerate(first):
            if hit.video in cards:
                by_part.setdefault(cards[hit.video].part, []).append(at)
        details = self._ask("details", {part: {"spoken": [first[at] for at in some]} for part, some in by_part.items()})
        for part, one in details.items():
            for at, hit in zip(by_part[part], one.spoken, strict=True):
                first[at] = hit
        return [*first, *hits[MAX_BOUNDED_HITS:]]

    def _join_phrases(self) -> list[StreamHit]:
        """The hits of phrases in all parts, best first; the first ones with the times of their words."""
        pairs = [pair for answer in (self._answers or {}).values() for pair in answer.phrases]
        pairs.sort(key=lambda pair: (-pair[0].score, pair[0].video, pair[0].start, pair[0].end))
        return [bounded if at < MAX_BOUNDED_HITS else hit for at, (hit, bounded) in enumerate(pairs)]

    # showing

    def show(self, candidates: Sequence[Candidate]) -> Results:
        """Turn the best candidates into hits, count hidden weak ones, and collect notes."""
        videos = self._known_videos(c.video for c in candidates)
        chosen = list(drop_copies(candidates, videos, one_per_video=self.options.group == "video"))
        sure = [c for c in chosen if c.level != "weak"]
        k, notes = self.options.k, []
        if self.options.all:
            shown = chosen[:k]
        elif sure:
            shown = sure[:k]
        else:
            small = self.vision_query is not None and self._library.vision.clips < SMALL_LIBRARY_CLIPS
            nearest = (small or self.query.picture_parts) and not self._unknown_words
            shown = chosen[: min(k, MAX_NEAREST_HITS)] if nearest else []
            if chosen and not self._unknown_words:
                notes.append("nothing matches well; these are the nearest" if shown else "nothing matches well")
        notes += [self._missing_weights] if self._missing_weights else []
        if self._sounds:
            strange = self._understood.guessed, self._understood.unknown
            heard = sound_words_in(self._understood.unfamiliar, self._sounds)
            guessed, unknown = (tuple(word for word in words if word not in heard) for words in strange)
            self._understood = replace(self._understood, guessed=guessed, unknown=unknown)
        unread = self._unknown_words and not self._understood.suggestions
        notes += [UNKNOWN_WORDS_NOTE] if unread else understanding_notes(self._understood)
        if self._damaged:
            notes.append(DAMAGED_NOTE)
        if self.options.rerank is not None and not self.query.picture_parts:
            notes.append(NOT_RERANKED_NOTE)
        hidden = 0
        if not self.options.all:  # the same for every k: MAX_HIDDEN weak hits are always sought
            hidden = max(0, min(len(chosen) - len(sure), MAX_HIDDEN) - (0 if sure else len(shown)))
        places = stream_places(chosen if self.options.all else sure or shown)
        results = Results(self._make_hits(shown, places), self.query, hidden, note="; ".join(notes))
        results.understood = self._understood
        return results

    def _sort_sounds(self, hit: Hit) -> Hit:
        """The hit with its sounds sorted: those of the query first, the most certain first."""
        order = sorted(hit.heard, key=lambda cue: (cue.text not in self._sounds, -(cue.score or 0.0)))
        return replace(hit, heard=tuple(order)) if order else hit

    def _make_hits(self, shown: Sequence[Candidate], places: StreamPlaces) -> list[Hit]:
        """Request the hits of candidates from the parts that have their videos."""
        arguments = {
            part: {
                "chosen": [(rank, c) for rank, c in enumerate(shown, 1) if c.video in ids],
                "places": places,
                "unsaid": {id: self._unsaid[id] for id in ids if id in self._unsaid},
            }
            for part, ids in self._cards.by_part(c.video for c in shown).items()
        }
        hits = [self._sort_sounds(hit) for found in self._ask("hits", arguments).values() for hit in found]
        return sorted(hits, key=lambda hit: hit.rank)
