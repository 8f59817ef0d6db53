"""Pages of moments where a map model made the library's vectors: what is on them depends on nothing but the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_library import DIM, SECONDS, fill, nothing

from momentseek.library.reader import take_snapshot
from momentseek.library.segments import build_segment
from momentseek.library.video import VideoCard
from momentseek.recognition.encoders.protocol import Understanding, Vectors
from momentseek.recognition.exported.moment_map import MomentMap
from momentseek.search.hit import Hit
from momentseek.search.options import SearchOptions
from momentseek.search.part import LibraryPart, OneLibraryQuestions
from momentseek.search.query import Query
from momentseek.search.requests import PartCounts, SearchRequest
from momentseek.search.session import SearchedLibrary, SearchSession
from momentseek.search.state import LibraryState
from momentseek.search.stream_index import SampledIndex, StreamIndex

HALF = 16
START, LENGTH = np.array([(start, n) for n in (1, 2, 3, 4) for start in range(5 - n)]).T
KNOWN = MomentMap(4, START, LENGTH, 8, 0.5, 10.0, 4)
ASKED = np.eye(HALF, dtype=np.float32)[0]


def moments(match: float, overlap: float, seed: int) -> Vectors:
    """Rows of a video's ten moments whose cosines with what is asked for are about these."""
    rng = np.random.default_rng(seed)
    sides = []
    for cos in (match, overlap):
        rest = rng.standard_normal((len(START), HALF))
        rest[:, 0] = 0
        along = np.clip(cos + 0.02 * rng.standard_normal(len(START)), -1, 1)[:, None]
        rest *= np.sqrt(1 - along**2) / np.linalg.norm(rest, axis=1, keepdims=True)
        sides.append((along * ASKED + rest) / np.sqrt(2))
    return np.concatenate(sides, axis=1).astype(np.float32)


class MomentLibrary:
    """Videos ``1, 2, …`` with the moments given for them."""

    def __init__(
        self,
        folder: Path,
        rows: Sequence[Vectors],
        clips: int = 8,
        seconds: Mapping[int, float] = {},
        hashes: Mapping[int, str] = {},
    ) -> None:
        counts = {i: 1 if seconds.get(i, 99.0) <= SECONDS else clips for i in range(1, len(rows) + 1)}
        films = {f"film{i:03}.mp4": nothing(count, seed=i) for i, count in counts.items()}
        named = {f"film{i:03}.mp4": content for i, content in hashes.items()}
        self.catalog = fill(folder, films, hashes=named)
        taken, none = take_snapshot(self.catalog, folder / "segments"), np.zeros(0, np.int64)
        spans = build_segment("spans", list(counts), list(rows))
        self.state = LibraryState(
            self.catalog,
            taken,
            StreamIndex(taken.vision, none, SECONDS, spans=(spans,), moments=KNOWN),
            StreamIndex((), none, SECONDS),
        )
        for video in self.catalog.videos(list(counts)):
            length = seconds.get(video.id, video.duration)
            self.state.known_videos[video.id] = replace(video, duration=length)
            self.state.known_cards[video.id] = VideoCard(video.id, length, video.hash)

    def search(self, **options: object) -> list[Hit]:
        given = {"localiser": "map", "streams": ("vision",), **options}
        vision, speech = SampledIndex.of(self.state.vision), SampledIndex.of(self.state.speech)
        library = SearchedLibrary({0: PartCounts()}, vision, speech, OneVector())  # type: ignore[arg-type]
        asked = SearchRequest(Query.parse("dog"), SearchOptions(**given), 0.0)  # type: ignore[arg-type]
        session = SearchSession(library, OneLibraryQuestions(LibraryPart(self.state)), asked, {})
        return session.show(session.rank())


class OneVector:
    """An encoder for which every text is the same."""

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, stream: str, texts: Sequence[str]) -> Vectors:
        asked = np.concatenate([ASKED, ASKED]) / np.sqrt(2) if stream == "spans" else np.eye(DIM)[0]
        return np.stack([asked.astype(np.float32)] * len(texts))

    def knows_words(self, stream: str, texts: Sequence[str]) -> bool:
        return True

    def understand(self, stream: str, texts: Sequence[str]) -> Understanding:
        return Understanding()

    def evidence(self, stream: str, text: str) -> None:
        return None


@pytest.mark.parametrize("group", ["clip", "video"])
@pytest.mark.parametrize("seed", range(3))
def test_a_short_page_is_the_beginning_of_a_long_one(group: str, seed: int, tmp_path: Path) -> None:
    """Also where sure moments, which go first, score less than others: a model's score is not how sure it is."""
    rng = np.random.default_rng(seed)
    rows = [moments(rng.uniform(-0.1, 0.1), 0.9, 100 * seed + i) for i in range(30)]
    rows += [moments(rng.uniform(-0.1, 0.1), rng.uniform(-0.5, 0.0), 1000 + i) for i in range(60)]
    rows += [moments(0.9, 0.0, 2000 + seed), moments(0.8, -0.02, 3000 + seed)]
    library = MomentLibrary(tmp_path, rows)
    long = [(hit.video_id, hit.start, hit.end) for hit in library.search(k=200, all=True, group=group)]
    assert long[0][0] in (91, 92)
    for k in (1, 2, 3, 5, 20):
        assert [(hit.video_id, hit.start, hit.end) for hit in library.search(k=k, all=True, group=group)] == long[:k]


def test_copies_and_further_moments_of_a_video_take_no_room(tmp_path: Path) -> None:
    rows = [moments(0.6, 0.9, 0)] * 8 + [moments(0.5, 0.5, seed) for seed in range(1, 5)]
    library = MomentLibrary(tmp_path, rows, hashes=dict.fromkeys(range(1, 9), "one film"))
    found = [hit.video_id for hit in library.search(k=3, all=True, group="video")]
    assert len(found) == len(set(found)) == 3
    assert found[0] == 1
    assert min(found[1:]) > 8


@pytest.mark.parametrize("seconds", [1.0, 0.4])
def test_no_moment_of_a_short_film_is_told_twice(seconds: float, tmp_path: Path) -> None:
    """Moments are made long enough to be looked at before it is asked which of them say the same."""
    library = MomentLibrary(tmp_path, [moments(0.3, 0.3, seed) for seed in range(4)], seconds={2: seconds})
    spans = [(hit.start, hit.end) for hit in library.search(k=50, all=True) if hit.video_id == 2]
    assert spans
    assert len(set(spans)) == len(spans)
    assert all(end - start >= min(0.5, seconds) - 1e-9 for start, end in spans)
    for i, (start, end) in enumerate(spans):
        for other, until in spans[:i]:
            assert min(end, until) - max(start, other) <= 0.5 * min(end - start, until - other) + 1e-9
