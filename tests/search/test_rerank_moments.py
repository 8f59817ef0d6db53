"""What re-ranking makes of a model's spans: what it is told of the videos, and which moments are left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_library import SECONDS, OpenLibrary, WordVectors, fill, film, nothing

from momentseek.recognition.exported.reranker import RerankedSpans, VideoFeatures
from momentseek.search.engine import Engine
from momentseek.search.hit import Hit
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query

Span = tuple[float, float]


class Says:
    """A model that says the same spans of a video each time, best first."""

    name, about = "says 12345678", SimpleNamespace(subtitle=None, video="any", nms=None, clip_seconds=SECONDS)

    def __init__(self, of: Callable[[VideoFeatures], list[Span]]) -> None:
        self.of, self.told = of, list[VideoFeatures]()

    def spans(self, text: str, videos: list[VideoFeatures]) -> list[RerankedSpans]:
        self.told += videos
        return [self._ranked(self.of(video)) for video in videos]

    @staticmethod
    def _ranked(spans: list[Span]) -> RerankedSpans:
        start, end = np.array(spans, np.float64).reshape(-1, 2).T
        return RerankedSpans(start, end, -np.arange(len(spans), dtype=np.float32))


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Hit]]:
    """Search for a dog on a beach, with a model that re-ranks."""

    def search(films: dict[str, Any], model: Says, options: SearchOptions, **more: Any) -> list[Hit]:
        catalog = fill(tmp_path, films, **more)
        monkeypatch.setattr("momentseek.search.rerank.open_reranker", lambda folder, catalog, clip_seconds: model)
        on = Engine(OpenLibrary(tmp_path, catalog, WordVectors()))
        return list(on.search(Query.parse("dog beach"), options))

    return search


def test_the_model_is_told_where_the_search_found_the_most(searched: Callable[..., list[Hit]]) -> None:
    """So that of a long film it reads the windows that are worth it."""
    long = np.concatenate([nothing(900, seed=1), film([("dog beach", 4)], seed=2), nothing(300, seed=3)])
    model = Says(lambda video: [(0.0, 6.0)])
    searched({"long.mp4": long}, model, SearchOptions(rerank="there", k=5))
    (one,) = model.told
    assert one.clip_scores is not None
    assert len(one.clip_scores) == len(one) == 1204
    assert 900 <= int(np.argmax(one.clip_scores)) < 904


def test_one_video_does_not_fill_the_page(searched: Callable[..., list[Hit]]) -> None:
    """Of spans that lie in each other one is shown, and of many in a video five."""
    nested = [(0.0, 3.0 * 1.9**i) for i in range(6)]
    apart = [(90.0 + 4 * i, 93.0 + 4 * i) for i in range(9)]
    long = film([("dog beach", 100)])
    model = Says(lambda video: [*nested, *apart] if len(video) == 100 else [(0.0, 3.0)])
    films = {"long.mp4": long, "short.mp4": film([("dog beach", 12)], seed=1), "other.mp4": nothing(900, seed=2)}
    hits = searched(films, model, SearchOptions(rerank="there", k=20, all=True))
    found = [(hit.start, hit.end) for hit in hits if hit.name == "long.mp4"]
    assert found == [nested[0], *apart[:4]]
    assert "short.mp4" in {hit.name for hit in hits}
