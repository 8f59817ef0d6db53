"""ShardedSession: one search over all shards of a library, ranked as one search in one library is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from momentseek.cluster.search.merge import CardIndex, VideoCard, join_meant, join_phrases, join_texts, text_matches
from momentseek.cluster.search.requests import (
    BoundRequest,
    DetailRequest,
    RerankRequest,
    ScanRequest,
    ShardAnswer,
    ShardRequest,
    ShardStatistics,
    ShowRequest,
    TextKind,
    WordRequest,
)
from momentseek.cluster.search.shard import LIMITS
from momentseek.cluster.search.shard_client import Asker, ShardedState
from momentseek.cluster.word_counts import WordCounts
from momentseek.library.catalog import CueMatch, NameMatch
from momentseek.library.tracks.readings import MAX_SPELLINGS
from momentseek.library.words import content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.exported.reranker import Reranker
from momentseek.search.fusion import Candidate, StreamPlaces
from momentseek.search.hit import Hit, StreamHit
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.rerank import RerankInput
from momentseek.search.session import AskedStreams, PagedSearch, RankingSession, Times, WordHits
from momentseek.search.state import Ids
from momentseek.search.streams.moment_map import bound_videos
from momentseek.search.streams.name import NameHit, judge_names, name_terms
from momentseek.search.streams.span_search import SearchedVideos, VideoList, join_lists, seek_spans
from momentseek.search.streams.speech import MAX_BOUNDED_HITS, ask_meaning, fuse_hits, judge_cues, meant_hits
from momentseek.search.streams.timed_text import (
    all_spellings,
    best_sounds,
    judge_captions,
    judge_lines,
    rarest_words,
    rarity,
)
from momentseek.search.streams.trained import choose_moments, choose_search, content_key
from momentseek.search.streams.vision import VisionQuery, VisionResult, VisionSearch, WholeSearch

MORE_VIDEOS = 32
"""Videos on which spans are asked for at a time where shards have stopped too soon."""


class ShardedSearch:
    """A look at the best videos of all shards, in the order in which one library would look at them.

    ``begin`` asks shards for what their videos are worth and for the spans on the first of them, until each has a page
    of a given size; ``go_on`` asks for the spans on further videos.
    """

    def __init__(
        self,
        look: VisionSearch,
        depth: int,
        shards: int,
        begin: Callable[[int], Sequence[SearchedVideos]],
        go_on: Callable[[Sequence[int]], dict[int, list[StreamHit]]],
    ) -> None:
        self._look, self._depth, self._shards, self._begin, self._go_on = look, depth, shards, begin, go_on
        self._worth: dict[int, float] | None = None
        self._found: dict[int, list[StreamHit]] = {}

    def result(self, page: int) -> VisionResult:
        """What is found until a page has so many spans."""
        if self._worth is None:
            self._worth, self._found = SearchedVideos.join(self._begin(page_share(page, self._shards)), self._depth)
        hits = seek_spans(self._worth, self._look.budget(page), self._spans)
        whole = len(hits) == len(self._worth)
        return VisionResult.from_hits([hit for found in hits for hit in found], {}, whole=whole)

    def _spans(self, video: int) -> list[StreamHit]:
        if video not in self._found:
            unknown = [id for id in self._worth or () if id not in self._found]
            wanted = unknown[:MORE_VIDEOS]
            self._found |= {id: [] for id in wanted} | self._go_on(wanted)  # nothing, if a shard is away now
        return self._found[video]


def page_share(page: int, shards: int) -> int:
    """How many spans of a page are sought in each of some shards at first: its part, and two deviations of chance.

    >>> page_share(40, 1), page_share(40, 2), page_share(40, 64)
    (40, 29, 3)
    """
    part = page / max(1, shards)
    return page if shards < 2 else math.ceil(part + 2 * math.sqrt(part))


def ask_words(query: Query, options: SearchOptions, now: float) -> WordRequest:
    """The first question of a search: the words that are looked for, by where."""
    asks = AskedStreams(query, options)
    words: dict[TextKind, list[str]] = {
        "cues": content_words(query.speech_text) if asks.speech else [],
        "lines": content_words(query.written_text) if asks.text else [],
        "captions": content_words(query.described_text) if asks.described else [],
        "names": name_terms(query.name_text) if asks.names else [],
    }
    misspelt = words["lines"] if query.written else []
    return WordRequest(query, now, {kind: terms for kind, terms in words.items() if terms}, misspelt)


class ShardedSession(RankingSession):
    """One search over all shards: they find, here it is merged and ranked."""

    def __init__(
        self,
        state: ShardedState,
        asker: Asker,
        asked: WordRequest,
        options: SearchOptions,
        statistics: Mapping[int, ShardStatistics],
    ) -> None:
        super().__init__(state, asked.query, options)
        self._state, self._asker, self._words, self._statistics = state, asker, asked, statistics
        self._cards = CardIndex()
        self._answers: Mapping[int, ShardAnswer] | None = None
        self._spellings = self._other_spellings()

    # one question finds everything, so that shards are asked once

    def look(self, asked: VisionQuery, depth: int) -> PagedSearch:
        """A look at what is seen in all shards."""
        if self._searches_by_map(asked):
            return WholeSearch(VisionResult.from_hits(self._look_by_map(asked, depth), {}))
        look = choose_search(asked, self.options.localiser, self._state.vision.head)
        best = join_lists(self._lists(ScanRequest(look.probes, look.reach(depth))), look.reach(depth))
        owner = {id: shard for shard, ids in best.items() for id in ids.tolist()}

        def begin(page: int) -> list[SearchedVideos]:
            answers = self._find(asked, best, page)
            return [answer.looked for answer in answers.values() if answer.looked is not None]

        def go_on(videos: Sequence[int]) -> dict[int, list[StreamHit]]:
            wanted: dict[int, list[int]] = {}
            for id in videos:
                wanted.setdefault(owner[id], []).append(id)
            details = self._asker.ask(
                "details", {s: DetailRequest(self.query, self.options, asked, seen=ids) for s, ids in wanted.items()}
            )
            return {id: found for one in details.values() for id, found in one.seen.items()}

        return ShardedSearch(look, depth, len(self._asker.left), begin, go_on)

    def _lists(self, scan: ScanRequest) -> dict[int, tuple[VideoList, ...]]:
        """What scans list in each shard: as the first question was answered, if that asked for the same."""
        known = {shard: self._statistics[shard].lists for shard in self._asker.left if shard in self._statistics}
        if scan.same(self._words.scan) and None not in known.values():
            return {shard: lists for shard, lists in known.items() if lists is not None}
        return self._asker.ask_all("lists", WordRequest(self.query, self._words.now, scan=scan))

    def _look_by_map(self, asked: VisionQuery, depth: int) -> list[StreamHit]:
        assert asked.moments is not None
        assert self._state.vision.moments is not None
        reach = depth
        while True:
            lists = [answer.planes for answer in self._find(asked, reach=reach).values() if answer.planes]
            joined = [VideoList.join(plane, reach) for plane in zip(*lists, strict=True)]
            bounds = bound_videos(self._state.vision.moments, asked.moments, joined) if joined else {}
            videos = self.known_videos(bounds)
            if len(bounds) < reach or len({content_key(video) for video in videos.values()}) >= depth:
                break
            reach *= 2
        wanted = self._by_shard(videos)
        details = self._asker.ask(
            "details", {s: DetailRequest(self.query, self.options, asked, moments=ids) for s, ids in wanted.items()}
        )
        moments = {id: found for one in details.values() for id, found in one.moments.items()}
        return choose_moments(bounds, videos, lambda id: moments.get(id, []), depth)

    def _find(
        self, vision: VisionQuery | None, videos: Mapping[int, Ids] | None = None, page: int = 0, reach: int = 0
    ) -> Mapping[int, ShardAnswer]:
        """Ask all shards; for words only the first time."""
        first = self._answers is None
        ask = ShardRequest(
            self.query, self.options, self._words.now, vision, None, page, reach,
            self._meaning() if first else None,
            self._counted_words() if first else {},
            self.asks.picture_text if first and self.asks.sounds else "",
        )  # fmt: skip
        asks = {shard: replace(ask, videos=(videos or {}).get(shard)) for shard in self._asker.left}
        answers: dict[int, ShardAnswer] = self._asker.ask("search", asks)
        self._state.damaged |= any(answer.damaged for answer in answers.values())
        self._cards.add(answers)
        if self._answers is None:
            self._answers = answers
            self.phrases = join_phrases(answers)
        return answers

    def _meaning(self) -> Any:
        if not self.asks.speech:
            return None
        return ask_meaning(self._state.speech, self._state.encoder, self.query.speech_text)

    def _everywhere(self, kind: TextKind) -> WordCounts:
        return WordCounts.total(one.words[kind] for one in self._statistics.values() if kind in one.words)

    def _other_spellings(self) -> dict[str, list[str]]:
        """For each word that is looked for in pictures, what it may be misread as."""
        found = [one.spellings for one in self._statistics.values()]
        return {
            term: sorted({other for one in found for other in one.get(term, ())})[:MAX_SPELLINGS]
            for term in self._words.words.get("lines", ())
        }

    def _counted_words(self) -> dict[TextKind, tuple[Sequence[str], WordCounts]]:
        out: dict[TextKind, tuple[Sequence[str], WordCounts]] = {}
        for kind, terms in self._words.words.items():
            total = self._everywhere(kind)
            out[kind] = (terms if kind == "names" else rarest_words(terms, total.of(terms)), total)
        if other := all_spellings(self._spellings):
            ask = WordRequest(self.query, self._words.now, {"spellings": other})
            counts: dict[int, ShardStatistics] = self._asker.ask_all("statistics", ask)
            out["spellings"] = (other, WordCounts.total(one.words["spellings"] for one in counts.values()))
        return out

    def _weight(self, kind: TextKind) -> Any:
        total = self._everywhere(kind)
        return rarity(total.of(self._words.words[kind]), total.texts)

    # what the streams of words found

    def find_words(self) -> WordHits:
        """What the streams of words find."""
        answers = self._find(None) if self._answers is None else self._answers
        return WordHits(
            self.phrases if self.query.phrases else self._cue_hits(answers),
            self._line_hits(answers),
            best_sounds([match for answer in answers.values() for match in answer.sounds]),
            self._caption_hits(answers),
        )

    def _cue_hits(self, answers: Mapping[int, ShardAnswer]) -> list[StreamHit]:
        found = join_texts(answers, "cues", LIMITS["cues"])
        hits: list[StreamHit] = []
        if found is not None and found.texts:
            ranked = found.ranked
            columns = (one.tolist() for one in (ranked.video, *found.times[:2], ranked.bm25))
            rows = zip(*columns, found.texts, strict=True)
            matches = [CueMatch(video, Cue(start, end, text), bm25) for video, start, end, bm25, text in rows]
            heard = set(ranked.video[found.heard].tolist())
            terms = self._words.words["cues"]
            hits = judge_cues(matches, heard, terms, self._weight("cues"), bool(self.query.said))
        meant = join_meant(answers)
        if meant is not None:
            hits = fuse_hits(hits, meant_hits(meant))
        return self._set_word_times(hits) if self.query.said else hits

    def _set_word_times(self, hits: list[StreamHit]) -> list[StreamHit]:
        """The first hits with the times of the words that should be said."""
        first = hits[:MAX_BOUNDED_HITS]
        cards = self._cards.find([hit.video for hit in first])
        by_shard: dict[int, list[int]] = {}
        for at, hit in enumerate(first):
            if hit.video in cards:
                by_shard.setdefault(cards[hit.video].shard, []).append(at)
        asked = {s: BoundRequest(tuple(first[at] for at in places), self.query.said) for s, places in by_shard.items()}
        for shard, bounded in self._asker.ask("bounds", asked).items():
            for at, hit in zip(by_shard[shard], bounded, strict=True):
                first[at] = hit
        return [*first, *hits[MAX_BOUNDED_HITS:]]

    def _line_hits(self, answers: Mapping[int, ShardAnswer]) -> list[StreamHit]:
        if "lines" not in self._words.words:
            return []
        matches = text_matches(join_texts(answers, "lines", LIMITS["lines"]))
        known = {(match.video, match.id) for match in matches}
        misspelt = text_matches(join_texts(answers, "spellings", LIMITS["spellings"]))
        matches += [match for match in misspelt if (match.video, match.id) not in known]
        terms = self._words.words["lines"]
        return judge_lines(matches, terms, self._spellings, self._weight("lines"), bool(self.query.written))

    def _caption_hits(self, answers: Mapping[int, ShardAnswer]) -> list[StreamHit]:
        if "captions" not in self._words.words:
            return []
        matches = text_matches(join_texts(answers, "captions", LIMITS["captions"]))
        terms = self._words.words["captions"]
        return judge_captions(matches, terms, self._weight("captions"), bool(self.query.described))

    def find_names(self) -> list[NameHit]:
        """The videos whose names have words of the query."""
        found = join_texts(self._answers or {}, "names", LIMITS["names"])
        if found is None:
            return []
        ranked = found.ranked
        rows = zip(ranked.video.tolist(), found.texts, ranked.bm25.tolist(), strict=True)
        return judge_names([NameMatch(video, name, bm25) for video, name, bm25 in rows], self.query.name_text)

    # what is said of single videos

    def known_videos(self, ids: Iterable[int]) -> Mapping[int, VideoCard]:
        """What shards said of videos."""
        return self._cards.find(list(ids))

    def _by_shard(self, ids: Iterable[int]) -> dict[int, list[int]]:
        out: dict[int, list[int]] = {}
        for id, card in self._cards.find(list(ids)).items():
            out.setdefault(card.shard, []).append(id)
        return out

    def best_candidates(self, ids: Sequence[int]) -> dict[int, Candidate]:
        """The best span of each of some videos, or all of it where no picture is looked for."""
        asked = {
            shard: DetailRequest(self.query, self.options, self.vision_query, spans=some)
            for shard, some in self._by_shard(ids).items()
        }
        return {id: one for details in self._asker.ask("details", asked).values() for id, one in details.spans.items()}

    def unwanted_times(self, videos: set[int]) -> Times:
        """When something is said, written or described in some videos that must not be."""
        query = self.query
        if not (query.unsaid or query.unwritten or query.undescribed):
            return {}
        asked = {
            shard: DetailRequest(query, self.options, self.vision_query, unwanted=some)
            for shard, some in self._by_shard(videos).items()
        }
        return {id: times for one in self._asker.ask("details", asked).values() for id, times in one.unwanted.items()}

    def rerank_inputs(self, model: Reranker, firsts: Sequence[Candidate]) -> dict[int, RerankInput]:
        """What a re-ranking model reads of the videos of some candidates, by video."""
        wanted = self._by_shard(c.video for c in firsts)
        asked = {
            shard: RerankRequest(
                self.query, self.options, self.vision_query, tuple(c for c in firsts if c.video in some)
            )
            for shard, some in wanted.items()
        }
        return {id: one for found in self._asker.ask("rerank_inputs", asked).values() for id, one in found.items()}

    def make_hits(self, shown: Sequence[Candidate], places: StreamPlaces) -> list[Hit]:
        """The hits of candidates, with all that their shards know of them."""
        cards = self._cards.find([c.video for c in shown])
        asked = {}
        for shard in dict.fromkeys(card.shard for card in cards.values()):
            mine = [(rank, c) for rank, c in enumerate(shown, 1) if cards[c.video].shard == shard]
            unsaid = {c.video: self.unsaid[c.video] for _, c in mine if c.video in self.unsaid}
            ranks, candidates = zip(*mine, strict=True)
            asked[shard] = ShowRequest(self.query, self.options, self.vision_query, ranks, candidates, places, unsaid)
        hits = [hit for found in self._asker.ask("show", asked).values() for hit in found]
        return sorted(hits, key=lambda hit: hit.rank)
