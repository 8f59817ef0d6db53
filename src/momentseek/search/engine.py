"""Engine: answers queries over a library, in one part or several; a :class:`SearchSession` is one search in it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean
from momentseek.library.reader import LibraryReader
from momentseek.recognition.exported.boundary_head import head_of
from momentseek.search import rerank
from momentseek.search.example import SearchExample, check_filters
from momentseek.search.hit import Results
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, LEARNED_LOCALISER, LOCALISERS, MAP_LOCALISER
from momentseek.search.options import SearchOptions
from momentseek.search.part import WarmState
from momentseek.search.query import Query
from momentseek.search.requests import (
    PartStatistics,
    Questions,
    SearchRequest,
    SearchSource,
)
from momentseek.search.session import AskedStreams, SearchedLibrary, SearchSession, ask_statistics, vision_texts
from momentseek.search.state import QueryEncoder
from momentseek.search.stream_index import SampledIndex, SampleKind, SamplePart
from momentseek.search.streams.timed_text import TextKind

NOTHING_PASSES_NOTE = "no video passes the filters of the query"


class Engine:
    """Answers queries over a library; caches query vectors and the sample of the library between searches.

    ``library`` provides the encoders for queries; ``source`` reaches the parts of a library that has several.
    """

    def __init__(
        self, library: LibraryReader, source: SearchSource | None = None, encoder: QueryEncoder | None = None
    ) -> None:
        self._library = library
        self.source: SearchSource = WarmState(library) if source is None else source
        self._encoder = encoder or QueryEncoder(library.encoders)
        self._searched: SearchedLibrary | None = None
        self._unsampled: dict[int, str] = {}
        """Parts that did not deliver their share of a sample, and why."""

    def search(self, query: Query, options: SearchOptions) -> Results:
        """Find the best moments for a query."""
        began = time.perf_counter()
        query.check()
        model = None
        if options.rerank is not None and query.picture_parts:
            model = rerank.open_reranker(options.rerank, self._library.catalog, self._library.clip_seconds)
        questions = self.source.begin()
        words = AskedStreams(query, options).words
        session = self._session(questions, SearchRequest(query, options, time.time()), words)
        if session is None:
            return self._finish(Results([], query, note=NOTHING_PASSES_NOTE), questions, began)
        candidates = session.rank()
        if model is not None:
            candidates = session.rerank(candidates, model)
        return self._finish(session.show(candidates), questions, began)

    def prepare(self, queries: Sequence[Query]) -> None:
        """Encode the texts of several queries in one run of the image encoder."""
        if texts := [text for query in queries for text in vision_texts(query)]:
            self._encoder.prepare(texts)

    def search_like(self, example: SearchExample, where: Query, options: SearchOptions) -> Results:
        """Find the moments that look most like an example, in the videos that pass the filters of ``where``."""
        began = time.perf_counter()
        check_filters(where)
        questions = self.source.begin()
        session = self._session(questions, SearchRequest(where, options, time.time()), {})
        if session is None:
            return self._finish(Results([], where, note=NOTHING_PASSES_NOTE), questions, began)
        return self._finish(session.show(session.rank_like(example)), questions, began)

    def example(self, video: int, start: float, end: float) -> SearchExample:
        """A moment of a video in the library as an example."""
        questions = self.source.begin()
        asked = {"video": video, "start": start, "end": end}
        answers = questions.ask("example", dict.fromkeys(questions.parts, asked))
        found: list[SearchExample] = [example for example in answers.values() if example is not None]
        if not found:
            raise MomentseekError("the video of the example is no longer in the library; search for another one")
        return found[0]

    def sampled_vision(self) -> SampledIndex:
        """The sampled index of the vision stream."""
        questions = self.source.begin()
        asked = SearchRequest(Query(), SearchOptions(), time.time())
        return self._open(ask_statistics(questions, asked, {})).vision

    @property
    def localiser(self) -> str:
        """The default localiser: that of the trained model, if one made the library's vectors."""
        kinds = {"": DEFAULT_LOCALISER, "map": MAP_LOCALISER}
        return kinds.get(self._library.encoders.model_kind, LEARNED_LOCALISER)

    @property
    def localisers(self) -> list[str]:
        """The localisers that can be chosen; that of a trained model only if it made the library's vectors."""
        own = self.localiser
        return sorted(name for name in LOCALISERS if name == own or name not in (LEARNED_LOCALISER, MAP_LOCALISER))

    def choose_localiser(self, name: str | None) -> str:
        """Check the name of a localiser and return it; the library's default if none is named."""
        if not name:
            return self.localiser
        known = self.localisers
        if name in known:
            return name
        if name in LOCALISERS:
            raise MomentseekError(
                f"the localiser {name!r} needs a library whose vectors were made by such a trained model "
                f"(docs/encoders.md); there are {', '.join(known)}"
            )
        raise MomentseekError(f"there is no localiser {name!r}; {did_you_mean(name, known)}")

    def _session(
        self, questions: Questions, asked: SearchRequest, words: Mapping[TextKind, Any]
    ) -> SearchSession | None:
        """Begin a search in the library as it is now; None if no video passes the filters."""
        statistics = ask_statistics(questions, asked, words)
        if statistics and all(one.allowed == 0 for one in statistics.values()):
            return None
        return SearchSession(self._open(statistics), questions, asked, statistics)

    def _open(self, statistics: Mapping[int, PartStatistics]) -> SearchedLibrary:
        """The library in its current state, opened again only if a part has changed."""
        counts = {number: one.counts for number, one in statistics.items()}
        old = self._searched
        if old is not None and old.counts == counts:
            return old
        made_by = {row for one in counts.values() for row in one.encoders}
        if old is not None and made_by != {row for one in old.counts.values() for row in one.encoders}:
            self._encoder.forget()
            self._library.encoders.forget_others(made_by)
        total = {
            name: sum(getattr(one, name) for one in counts.values())
            for name in ("clips", "cue_vectors", "span_rows", "windows")
        }
        encoders = self._library.encoders
        model = encoders.model if total["clips"] and encoders.has_model else None
        about = None if model is None else model.about
        vision = SampledIndex(
            lambda kind, step: self._sample("vision", kind, step),
            total["clips"],
            total["span_rows"],
            total["windows"],
            head_of(about),
            None if about is None else about.moments,
            lambda: self._encoder.blocks("vision"),
        )
        speech = SampledIndex(lambda kind, step: self._sample("speech", kind, step), total["cue_vectors"])
        self._unsampled = {}
        self._searched = SearchedLibrary(counts, vision, speech, self._encoder)
        return self._searched

    def _sample(self, stream: str, kind: SampleKind, step: int) -> list[SamplePart]:
        questions = self.source.begin()
        asked = {"stream": stream, "kind": kind, "step": step}
        found: dict[int, SamplePart] = questions.ask("sample", dict.fromkeys(questions.parts, asked))
        self._unsampled |= questions.failed
        return list(found.values())

    def _finish(self, results: Results, questions: Questions, began: float) -> Results:
        """Finish the results. If the sample lacks a part, they are incomplete, and the next search samples again."""
        if self._unsampled:
            questions.failed |= self._unsampled
            self._searched, self._unsampled = None, {}
        questions.finish(results)
        results.took = time.perf_counter() - began
        return results
