"""Engine: answers queries over a library, and keeps what it needs for them warm."""

from __future__ import annotations

import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from momentseek.encoders.protocol import TextEncoder, Vectors
from momentseek.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.snapshot import Snapshot
from momentseek.search.dates import period
from momentseek.search.gather import Search, State
from momentseek.search.options import Options
from momentseek.search.query import Query
from momentseek.search.rerank import UNASKED, reranked, reranker
from momentseek.search.results import Results
from momentseek.search.streams.sights import Encode, Ids, StreamIndex
from momentseek.trained.boundary_head import BoundaryHead
from momentseek.trained.encoder import TrainedEncoder
from momentseek.trained.manifest import EncoderManifest

REMEMBERED = 512
"""Vectors of texts."""


class Engine:
    """Answers queries; keeps encoders, query vectors and the library's state warm between them."""

    def __init__(
        self,
        catalog: Catalog,
        snapshot: Callable[[], Snapshot],
        encoder: Callable[[str], TextEncoder],
        clip_seconds: float,
        plan: Path | None = None,
    ) -> None:
        self._catalog = catalog
        self._take = snapshot
        self._encoder = encoder
        self._clip_seconds = clip_seconds
        self._plan = plan
        self._kept: State | None = None
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()

    def search(self, query: Query, options: Options) -> Results:
        """The best moments for a query."""
        began = time.perf_counter()
        if not query:
            raise MomentseekError(_nothing_asked(query))
        model = None
        if options.rerank is not None and query.seen:
            model = reranker(options.rerank, self._catalog, self._clip_seconds)
        state = self._state()
        allowed = self._allowed(query)
        if allowed is not None and not len(allowed):
            return Results([], query, 0, time.perf_counter() - began, "no video passes the filters of the query")
        search = Search(self._catalog, self.encode, self.knows, state, query, options, allowed)
        candidates = search.candidates()
        hits, hidden, note = search.shown(candidates if model is None else reranked(search, candidates, model))
        if options.rerank is not None and model is None:
            note = "; ".join(filter(None, (note, UNASKED)))
        return Results(hits, query, hidden, time.perf_counter() - began, note)

    def encode(self, stream: str) -> Encode:
        """The encoder of a stream's queries, which remembers what it was asked."""

        def vectors(texts: Sequence[str]) -> Vectors:
            new = [text for text in dict.fromkeys(texts) if (stream, text) not in self._vectors]
            if new:
                for text, row in zip(new, self._encoder(stream).encode(new), strict=True):
                    self._vectors[stream, text] = row
            for text in texts:
                self._vectors.move_to_end((stream, text))
            out = np.stack([self._vectors[stream, text] for text in texts])
            while len(self._vectors) > REMEMBERED:
                self._vectors.popitem(last=False)
            return out

        return vectors

    def knows(self, stream: str, texts: Sequence[str]) -> bool:
        """Whether the stream's encoder knows any word of the texts; one that does not say is taken to know letters."""
        own = getattr(self._encoder(stream), "knows", None)
        return any(map(own or _legible, texts))

    def _state(self) -> State:
        snapshot = self._take()
        if self._kept is None or self._kept.snapshot is not snapshot:
            if self._kept is not None and self._kept.snapshot.encoders != snapshot.encoders:
                self._vectors.clear()  # those of an encoder whose vectors were made anew by another
            about = self._manifest() if snapshot.spans else None
            self._kept = State(
                snapshot,
                StreamIndex(
                    snapshot.vision,
                    snapshot.gone,
                    self._clip_seconds,
                    self._plan,
                    spans=snapshot.spans,
                    head=BoundaryHead.of(about) if about is not None and about.moments is None else None,
                    moments=None if about is None else about.moments,
                ),
                StreamIndex(snapshot.speech, snapshot.gone, self._clip_seconds),
            )
        return self._kept

    def _manifest(self) -> EncoderManifest | None:
        """What a trained model says of itself, if one made the library's vectors."""
        model = self._encoder("vision")
        return model.about if isinstance(model, TrainedEncoder) else None

    def _allowed(self, query: Query) -> Ids | None:
        """The videos that pass the query's filters; None for all."""
        since, until = period(query.after, query.before, time.time())
        if since is not None and until is not None and since >= until:
            raise MomentseekError(f"no time is after {query.after} and before {query.before}; widen one of them")
        allowed = None
        if query.within or since is not None or until is not None:
            allowed = self._catalog.ids(names=query.within, after=since, before=until)
        if query.outside:
            allowed = self._catalog.ids() if allowed is None else allowed
            allowed = allowed[~np.isin(allowed, self._catalog.ids(names=query.outside))]
        return allowed


def _legible(text: str) -> bool:
    """Whether a text has letters, digits or pictograms.

    >>> [_legible(text) for text in ("a dog", "😀", "* ...")]
    [True, True, False]
    """
    return any(c.isalnum() or unicodedata.category(c) == "So" for c in text)


def _nothing_asked(query: Query) -> str:
    if query.avoid or query.unsaid:
        return "the query only says what to avoid; add what to look for"
    if query.within or query.outside or query.after or query.before:
        return "the query only says where to look; add what to look for (momentseek list shows the videos)"
    return "the query is empty; say what to look for, as: a dog runs on the beach"
