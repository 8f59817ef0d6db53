"""ShardedEngine: answers queries over a library in shards, with the answers of the same videos in one library."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from momentseek.cluster.search.requests import ScanRequest, ShardCounts, ShardStatistics, WordRequest
from momentseek.cluster.search.session import ShardedSession, ask_words
from momentseek.cluster.search.shard_client import Asker, ShardClient, ShardedIndex, ShardedState
from momentseek.core.reports import count
from momentseek.library.encoders import LibraryEncoders
from momentseek.library.reader import LibraryReader
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.search.engine import NOTHING_PASSES_NOTE, SearchExample, check_filters
from momentseek.search.fusion import Candidate, drop_repeats, merge_hits
from momentseek.search.hit import Results
from momentseek.search.localise.localiser import LEARNED_LOCALISER, MAP_LOCALISER
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.rerank import open_reranker
from momentseek.search.session import first_page
from momentseek.search.state import QueryEncoder
from momentseek.search.streams.vision import query_of_vector, scan_reach, vector_of_parts


class ShardedEngine:
    """Answers queries over shards; keeps query vectors and the sample of the library warm between them.

    ``about`` is any one of the shards as a library, by whose encoders queries are encoded.
    """

    def __init__(self, shards: ShardClient, about: LibraryReader, encoder: QueryEncoder | None = None) -> None:
        self._shards, self._about = shards, about
        self._encoders: LibraryEncoders = about.encoders
        self._encoder = encoder or QueryEncoder(about.encoders)
        self._state: ShardedState | None = None

    def search(self, query: Query, options: SearchOptions) -> Results:
        """The best moments for a query."""
        began = time.perf_counter()
        query.check()
        model = None
        if options.rerank is not None and query.picture_parts:
            model = open_reranker(options.rerank, self._about.catalog, self._about.clip_seconds)
        asker = Asker(self._shards)
        asked = ask_words(query, options, time.time())
        if "vision" in options.streams and query.picture_parts:
            asked = replace(asked, scan=self._guess_scan(query, options))
        statistics: dict[int, ShardStatistics] = asker.ask_all("statistics", asked)
        if nothing_passes(statistics):
            return finish(Results([], query, note=NOTHING_PASSES_NOTE), asker, began)
        session = ShardedSession(self.state(statistics), asker, asked, options, statistics)
        candidates = session.rank()
        if model is not None:
            candidates = session.rerank(candidates, model)
        return self._finish(session.show(candidates), asker, began)

    def search_like(self, example: SearchExample, where: Query, options: SearchOptions) -> Results:
        """The moments that look most like an example, in the videos that the filters of ``where`` let pass."""
        began = time.perf_counter()
        check_filters(where)
        asker = Asker(self._shards)
        asked = WordRequest(where, time.time(), scan=self._guess_scan(where, options, example.vector))
        statistics: dict[int, ShardStatistics] = asker.ask_all("statistics", asked)
        if nothing_passes(statistics):
            return finish(Results([], where, note=NOTHING_PASSES_NOTE), asker, began)
        session = ShardedExampleSession(self.state(statistics), asker, asked, options, statistics, example)
        return self._finish(session.show(session.rank()), asker, began)

    def _guess_scan(self, query: Query, options: SearchOptions, vector: Vectors | None = None) -> ScanRequest | None:
        """What pictures will be scanned for if the shards are as they were, so that they scan with the first question.

        A guess that was wrong is only made again: the scan is asked for once it is known what is right.
        """
        state = self._state
        if state is None or not len(state.vision.sample):
            return None
        index, (_, depth) = state.vision, first_page(options)
        if vector is None:
            if index.moments is not None and options.localiser == MAP_LOCALISER:
                return None
            seen = query.picture_parts  # encoded together with what is avoided, as in one library: the same bits
            rows = self._encoder.encode("vision", [part.text for part in (*seen, *query.avoid)])
            vector = vector_of_parts(np.array([part.weight for part in seen], np.float32), rows[: len(seen)])
            if index.head is not None and options.localiser == LEARNED_LOCALISER:
                return ScanRequest(index.head.probes(vector), depth)
        return ScanRequest(vector[None], scan_reach(bool(query.avoid), depth))

    def _finish(self, results: Results, asker: Asker, began: float) -> Results:
        """Results of a search; a sample that lacks a shard makes them incomplete, and is taken anew the next time."""
        if self._state is not None and (lacking := self._state.vision.failed | self._state.speech.failed):
            asker.fail(lacking)
            self._state = None
        return finish(results, asker, began)

    def sampled_vision(self) -> ShardedIndex:
        """What is usual in the library for what is seen."""
        return self.state(Asker(self._shards).ask_all("statistics", WordRequest(Query(), time.time()))).vision

    def state(self, statistics: Mapping[int, ShardStatistics]) -> ShardedState:
        """The library as its shards are now, opened anew only if one has changed."""
        counts: dict[int, ShardCounts] = {number: one.counts for number, one in statistics.items()}
        if self._state is None or not self._state.is_of(counts):
            old = {row for one in self._state.counts.values() for row in one.encoders} if self._state else set()
            new = {row for one in counts.values() for row in one.encoders}
            if old and old != new:
                self._encoder.forget()
                self._encoders.forget_others(new)
            self._state = ShardedState.open(self._shards, self._encoders, self._encoder, counts)
        return replace(self._state, damaged=False)


class ShardedExampleSession(ShardedSession):
    """One search by an example over all shards: what is seen alone is asked, and the example itself is no answer."""

    def __init__(
        self,
        state: ShardedState,
        asker: Asker,
        asked: WordRequest,
        options: SearchOptions,
        statistics: Mapping[int, ShardStatistics],
        example: SearchExample,
    ) -> None:
        super().__init__(state, asker, asked, options, statistics)
        self.example = example

    def rank(self) -> list[Candidate]:
        """Rank the moments that look like the example."""
        if not len(self._state.vision.sample):
            return []
        self.search_vision(query_of_vector(self._state.vision, self.example.vector))
        videos = self.known_videos(hit.video for hit in self.vision.hits)
        found = merge_hits(self.vision.hits, [], videos)
        return drop_repeats(self.fuse([c for c in found if not self.example.is_shown_by(c, videos[c.video])]))


def nothing_passes(statistics: Mapping[int, ShardStatistics]) -> bool:
    """Whether a query has filters and no shard has a video that passes them."""
    allowed = [one.allowed for one in statistics.values()]
    return bool(allowed) and all(number == 0 for number in allowed)


def finish(results: Results, asker: Asker, began: float) -> Results:
    """Results with how long they took, and what part of the library they lack."""
    results.missing = asker.missing
    if asker.missing:
        total = len(asker.left) + len(asker.missing)
        names = ", ".join(asker.missing)
        what = f"incomplete: {len(asker.missing)} of {count(total, 'shard')} did not answer ({names})"
        results.note = f"{what}; {results.note}" if results.note else what
    results.took = time.perf_counter() - began
    return results
