"""The windows that re-ranking reads, and the spans that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported import reranker
from momentseek.recognition.exported.manifest import EncoderRef, RerankerManifest
from momentseek.recognition.exported.preparation import Preparation
from momentseek.recognition.exported.reranker import Reranker, VideoFeatures, warm_reranker

WORDS = np.ones((2, 3), np.float32)


class Blank(Reranker):
    """A model that scores every span of a window by the maximum of its clips."""

    read = 0
    graph = object()

    def grid(self, asked: Mapping[str, Any], part: Mapping[str, Vectors]) -> Vectors:
        self.read += 1
        exists = np.add.outer(np.arange(8), np.arange(8)) < 8
        return np.where(exists, np.float32(part["video"].max()), -np.inf)


def model(clip_seconds: float = 1.5, window: int = 8) -> Blank:
    source = EncoderRef("words", "words-1", 3)
    return Blank(
        RerankerManifest(
            folder=Path("model"), model="tan2d", fingerprint="0" * 64, clip_seconds=clip_seconds, video=source,
            subtitle=None, query=source, max_words=30, max_clips=8,
            preparation=Preparation(8, "stretch", video=False, words=False),
            shortest=1, roles=False, end_time="inclusive", nms=None, window=window * clip_seconds, rows=8,
        )
    )  # fmt: skip


@pytest.mark.parametrize("clip_seconds", [0.1, 0.7, 1 / 3, 1.1, 2.3])
def test_span_on_the_seam_of_two_windows_counts_once(clip_seconds: float) -> None:
    """Whatever the length of a clip: times in seconds are rounded, and clips are whole."""

    def spans(seconds: float) -> list[tuple[float, float]]:
        video = VideoFeatures(np.ones((131, 3), np.float32), None, 131 * seconds)
        (found,) = model(seconds).spans_of(WORDS, "", [video], limit=100_000)
        rows = zip((found.start / seconds).round(6).tolist(), (found.end / seconds).round(6).tolist(), strict=True)
        return sorted(rows)

    wanted = spans(1.0)
    assert len(set(wanted)) == len(wanted) > 500
    assert spans(clip_seconds) == wanted


def test_long_films_read_only_promising_windows() -> None:
    """At most 200 for a query: those with the best clips, and of every video its best one."""
    rng = np.random.default_rng(0)
    films = []
    for clips in (5000, 6, 3000, 40):
        rows = rng.random((clips, 3)).astype(np.float32)
        films.append(
            VideoFeatures(rows, None, 1.5 * clips, clip_scores=rows.max(axis=1) - (0.5 if clips == 40 else 0.0))
        )
    reader = model()
    found = reader.spans_of(WORDS, "", films)
    assert reader.read == 200
    assert [spans.score.max() for spans in found] == [film.video.max() for film in films if film.video is not None]
    best = [1.5 * (int(np.argmax(film.clip_scores)) + 0.5) for film in films if film.clip_scores is not None]
    for spans, time in zip(found, best, strict=True):
        assert ((spans.start <= time) & (time <= spans.end)).any()
    many = [VideoFeatures(np.ones((40, 3), np.float32), None, 60.0) for _ in range(230)]
    other = model()
    assert all(len(spans.score) for spans in other.spans_of(WORDS, "", many))
    assert other.read == 230


def test_cache_depends_on_the_windows_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Texts:
        def words(self, texts: Sequence[str]) -> list[Vectors]:
            return [WORDS for _ in texts]

    rows = np.arange(1200 * 3, dtype=np.float32).reshape(-1, 3)
    film = VideoFeatures(rows, None, 1800.0, key="film", clip_scores=-rows.max(axis=1))
    other = VideoFeatures(rows, None, 1800.0, clip_scores=rows.max(axis=1))
    reader = model()
    monkeypatch.setitem(reader.__dict__, "texts", Texts())
    (beside, _), read = reader.spans("a", [film, other]), reader.read
    (alone,) = reader.spans("a", [film])
    assert read == 200
    assert beside.score.max() < alone.score.max()
    reader.spans("a", [film])
    assert reader.read == read + 200


def test_warming_rejects_a_missing_word_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = model()
    monkeypatch.setattr("momentseek.recognition.exported.reranker.word_encoder", missing)
    with pytest.raises(MomentseekError, match="missing"):
        reader.warm()
    other = SimpleNamespace(name="words", fingerprint="words-2")
    monkeypatch.setattr("momentseek.recognition.exported.reranker.word_encoder", lambda spec: other)
    with pytest.raises(MomentseekError, match="queries by another 'words'"):
        reader.warm()


def missing(spec: str) -> None:
    raise MomentseekError(f"{spec}: is missing; install it")


def test_recently_used_models_stay_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded: list[str] = []

    def load(place: Path) -> Any:
        loaded.append(place.name)
        return SimpleNamespace(warm=lambda: None)

    monkeypatch.setattr(reranker, "load_reranker", load)
    names = [f"model{i}" for i in range(8)]
    for name in (*names, names[0], "new", names[0], "new", names[1]):
        warm_reranker(tmp_path / name)
    assert loaded == [*names, "new", names[1]]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "model.json").write_bytes(b"{}")
    warm_reranker(tmp_path / "new")
    assert loaded[-1] == "new"
