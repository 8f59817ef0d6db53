"""A library made by hand: vectors of words, so that what a clip shows is said in words and scores are known."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.reader import Snapshot, take_snapshot
from momentseek.library.segments import build_segment, write_segment
from momentseek.library.video import Video
from momentseek.library.words import content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.fused import FusedEvidence
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.search.options import SearchOptions
from momentseek.search.part import LibraryPart, OneLibraryQuestions
from momentseek.search.query import Query
from momentseek.search.requests import SearchRequest
from momentseek.search.session import SearchedLibrary, SearchSession
from momentseek.search.stream_index import SampledIndex, StreamIndex
from momentseek.search.streams.vision import VisionQuery

DIM = 64
SECONDS = 1.5


class WordVectors:
    """A text's vector is the sum of its words' random directions; the same for texts and for described clips."""

    name, dim, fingerprint, short_side = "words", DIM, "words-1", 8

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        return np.stack([self.one(text) for text in texts])

    def encode_images(self, images: Sequence[object]) -> Vectors:
        raise NotImplementedError

    @staticmethod
    def one(text: str) -> Vectors:
        rows = [np.random.default_rng(zlib.crc32(w.encode())).standard_normal(DIM) for w in content_words(text)]
        total = np.sum(rows, axis=0)
        return (total / np.linalg.norm(total)).astype(np.float32)


class TwoHalves(WordVectors):
    """The same vectors as if two encoders had made a half of the columns each, the second with a margin."""

    parts = tuple(SimpleNamespace(name=name, dim=DIM // 2) for name in ("first", "second"))

    def evidence(self, text: str) -> FusedEvidence:
        """The second half's cosine is the margin; the first half names nothing."""
        return FusedEvidence(no_labels, DIM // 2, self.one(text)[DIM // 2 :])


def no_labels(rows: Vectors) -> Vectors:
    """No sign of anything by name."""
    return np.zeros(len(rows), np.float32)


def film(shows: Sequence[tuple[str, int]], noise: float = 0.6, seed: int = 0) -> Vectors:
    """Clips that show something: ``[("dog beach", 4), ...]`` is four clips of a dog on a beach, and so on."""
    rng = np.random.default_rng(seed)
    rows = [WordVectors.one(what) + noise * rng.standard_normal(DIM) / DIM**0.5 for what, n in shows for _ in range(n)]
    return np.stack([row / np.linalg.norm(row) for row in rows]).astype(np.float32)


def nothing(clips: int, seed: int) -> Vectors:
    """Clips of unnamed things, a new one every few clips."""
    rng = np.random.default_rng(seed)
    scenes = np.repeat(rng.standard_normal((-(-clips // 4), DIM)), 4, axis=0)[:clips]
    rows = scenes + 0.3 * rng.standard_normal((clips, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def fill(
    folder: Path,
    films: Mapping[str, Vectors],
    cues: Mapping[str, Sequence[Cue]] = {},
    *,
    hashes: Mapping[str, str] = {},
    times: Mapping[str, float] = {},
    speech: WordVectors | None = None,
) -> Catalog:
    """Put films into the library of a folder, in their order."""
    (folder / "segments").mkdir(parents=True, exist_ok=True)
    catalog = Catalog(folder, create=True)
    with catalog.changes():
        catalog.set("clip_seconds", SECONDS)
        ids = []
        for name, rows in films.items():
            said = list(cues.get(name, ()))
            video = Video(
                0, folder / name, name, 1, int(times.get(name, 1e9) * 1e9), hashes.get(name, name), len(rows) * SECONDS,
                640, 360, Fraction(25), "h264", len(rows), len(said), (), 0.0,
            )  # fmt: skip
            ids.append(catalog.insert_video(video, said))
        _segment(catalog, folder, "vision", ids, list(films.values()))
        if speech is not None:
            talkative = [(i, n) for i, n in zip(ids, films, strict=True) if cues.get(n)]
            vectors = [speech.encode([cue.text for cue in cues[n]]) for _, n in talkative]
            _segment(catalog, folder, "speech", [i for i, _ in talkative], vectors)
    return catalog


def vision_session(
    index: StreamIndex, videos: Mapping[int, Video], query: VisionQuery, **options: Any
) -> SearchSession:
    """A search for what is seen in some videos, by their vectors alone."""
    known = SimpleNamespace(
        vision=index,
        damaged=False,
        catalog=None,
        videos=lambda ids: {id: videos[id] for id in ids},
        video_cards=lambda ids: {id: videos[id] for id in ids},
    )
    library = SearchedLibrary({}, SampledIndex.of(index), SampledIndex.of(index), SimpleNamespace())  # type: ignore[arg-type]
    asked = SearchRequest(Query(), SearchOptions(streams=("vision",), **options), 0.0)
    session = SearchSession(library, OneLibraryQuestions(LibraryPart(known)), asked, {})  # type: ignore[arg-type]
    session.vision_query = query
    return session


class OpenLibrary:
    """As much of a library as an engine reads: a catalog made by :func:`fill`, with vectors of words."""

    def __init__(self, folder: Path, catalog: Catalog, encoder: WordVectors, taken: Snapshot | None = None) -> None:
        self.catalog, self.clip_seconds = catalog, SECONDS
        self.paths, self.origin = SimpleNamespace(plan=None, speech_plan=None), None
        self.encoders = SimpleNamespace(model=None, has_model=False, for_queries=lambda stream: encoder)
        self._snapshot = taken or take_snapshot(catalog, folder / "segments")

    def snapshot(self) -> Snapshot:
        return self._snapshot


def _segment(catalog: Catalog, folder: Path, stream: str, ids: list[int], vectors: list[Vectors]) -> None:
    name = write_segment(folder / "segments", build_segment(stream, ids, vectors))
    catalog.insert_segment(SegmentRow(name, stream, len(ids), sum(map(len, vectors)), ids[0]))
