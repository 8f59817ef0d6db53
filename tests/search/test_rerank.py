"""Re-ranking by an exported model, in numpy and ONNX Runtime, against ``models.inference`` in torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from small_library import SECONDS, OpenLibrary, WordVectors, fill, film, nothing

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.models.export.writing import export
from momentseek.models.features.data import Data, Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.recognition.exported.reranker import RerankedSpans, Reranker, VideoFeatures, load_reranker
from momentseek.search.engine import Engine
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.rerank import suppress_spans

MAP = {"hidden": 16, "max_clips": 12, "longest": 12, "map_layers": 2, "kernel": 3, "text_layers": 1, "videos": 6}
EDGES = {"hidden": 16, "heads": 4, "layers": 1, "max_clips": 400, "longest": 12, "videos": 6}
WINDOW = 600.0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("simulated") / "data"
    simulate(folder, SimulationSettings(videos=30, queries=40, seed=0, video_dim=24, text_dim=16))
    with Data.open(folder) as opened:
        yield opened


def exported(
    data: Data, name: str, folder: Path, settings: dict[str, Any], **more: Any
) -> tuple[CorpusModel, Reranker]:
    torch.manual_seed(0)
    columns = data.dims
    model = build(name, settings, Dims(columns.query, columns.video, columns.subtitle)).eval()
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.3)
    made = {kind: EncoderRef(kind, kind, getattr(columns, kind)) for kind in ("video", "subtitle", "query")}
    export(model, name, folder / "model", encoders=made, **{"window": WINDOW, **more})
    return model, load_reranker(folder / "model")


def seen(data: Data, joint: Reranker, name: str, seconds: float) -> VideoFeatures:
    assert data.video is not None
    assert data.subtitle is not None
    said = data.subtitle.read(name) if joint.about.subtitle else None
    return VideoFeatures(data.video.read(name) if joint.about.video else None, said, seconds)


@pytest.mark.parametrize(
    ("name", "settings", "more"),
    [
        ("tan2d", MAP, {"nms": 0.4}),
        ("mdd", {**MAP, "modalities": "video+subtitle", "heads": 4}, {"nms": 0.5}),
        ("cet", EDGES, {"nms": 0.5}),
        ("cet", {**EDGES, "shortest": 2}, {"nms": 1.0, "end_time": "start"}),
    ],
    ids=["tan2d", "mdd", "cet", "cet-ends-early"],
)
def test_moments_are_those_that_predict_finds(
    data: Data, name: str, settings: dict[str, Any], more: dict[str, Any], tmp_path: Path
) -> None:
    model, joint = exported(data, name, tmp_path, settings, **more)
    split = data.split("test")
    queries, names = split.truth.query_ids[:12], split.corpus
    scores = np.random.default_rng(0).random((len(split.truth.query_ids), len(names)))
    run = predict(model, data, "test", k=30, videos=scores, **more)
    told = 0
    for at, query in enumerate(queries):
        best = np.argsort(-scores[at], kind="stable")[:6]
        films = [seen(data, joint, names[i], split.durations[names[i]]) for i in best]
        spans = joint.spans_of(split.query.read(query), split.truth.text(query) or "", films)
        ours = [(names[i], *m) for i, s in zip(best, spans, strict=True) for m in suppress_spans(s, joint.about.nms)]
        rows = run.rows(query)
        theirs = zip(
            (run.videos[v] for v in run.video[rows]),
            run.start[rows].tolist(), run.end[rows].tolist(), run.score[rows].tolist(), strict=True,
        )  # fmt: skip
        found = {m[:3]: m[3] for m in ours}
        wanted = {m[:3]: m[3] for m in theirs}
        clear = [m for m, score in wanted.items() if abs(score - min(wanted.values())) > 2e-4]
        assert len(clear) > 3
        for moment in clear:  # of those that tie for the last place, any may be there
            assert found[moment] == pytest.approx(wanted[moment], abs=1e-4)
        better = [m for m, score in found.items() if score > min(wanted.values()) + 2e-4]
        assert set(better) <= set(wanted)
        told += len(clear)
    assert told > 100


def test_long_videos_are_read_in_windows(data: Data, tmp_path: Path) -> None:
    """A moment is found in the window in whose middle it lies, with the times of the whole video."""
    _, joint = exported(data, "tan2d", tmp_path, MAP, window=18.0)
    assert joint.about.window_clips == 12
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((31, data.dims.video or 0)).astype(np.float32)
    words = rng.standard_normal((4, data.dims.query)).astype(np.float32)
    (whole,) = joint.spans_of(words, "", [VideoFeatures(rows, None, 46.0)], limit=10_000)
    assert whole.end.max() == 46.0
    assert (np.diff(whole.score) <= 0).all()
    assert len({(s, e) for s, e in zip(whole.start.tolist(), whole.end.tolist(), strict=True)}) == len(whole.start)
    (first,) = joint.spans_of(words, "", [VideoFeatures(rows[:12], None, 18.0)], limit=10_000)
    early = times(whole, until=9.0)
    alone = times(first, until=9.0)
    assert early.keys() == alone.keys()
    assert len(early) > 20
    for moment, score in early.items():
        assert alone[moment] == pytest.approx(score, abs=1e-5)
    middles = (whole.start + whole.end) / 2
    assert np.histogram(middles, bins=8, range=(0, 46))[0].min() > 5


def times(spans: RerankedSpans, until: float) -> dict[tuple[float, float], float]:
    """Scores by times, of the spans whose middle is before a time."""
    rows = zip(spans.start.tolist(), spans.end.tolist(), spans.score.tolist(), strict=True)
    return {(start, end): score for start, end, score in rows if (start + end) / 2 < until}


def test_videos_do_not_change_each_other(data: Data, tmp_path: Path) -> None:
    _, joint = exported(data, "cet", tmp_path, EDGES)
    split = data.split("test")
    films = [seen(data, joint, name, split.durations[name]) for name in split.corpus[:6]]
    words = split.query.read(split.truth.query_ids[0])
    together = joint.spans_of(words, "", films)
    for video, one in zip(films, together, strict=True):
        (alone,) = joint.spans_of(words, "", [video])
        np.testing.assert_allclose(one.score, alone.score, atol=1e-5)


def test_long_queries_and_none(data: Data, tmp_path: Path) -> None:
    _, joint = exported(data, "tan2d", tmp_path, MAP)
    blank = VideoFeatures(np.ones((9, data.dims.video or 0), np.float32), None, 13.5)
    words = np.random.default_rng(0).standard_normal((50, data.dims.query)).astype(np.float32)
    (long,), (cut,) = joint.spans_of(words, "", [blank]), joint.spans_of(words[:30], "", [blank])
    np.testing.assert_array_equal(long.score, cut.score)
    assert joint.spans_of(words, "", []) == []


class Half:
    """A model that finds the first half of every video, and likes short ones."""

    name, about = "half 12345678", SimpleNamespace(subtitle=None, video="any", nms=None, clip_seconds=SECONDS)

    def __init__(self) -> None:
        self.looked = 0

    def spans(self, text: str, videos: list[VideoFeatures]) -> list[RerankedSpans]:
        self.looked += len(videos)
        assert text == "dog beach"
        ends = [np.array([video.duration / 2]) for video in videos]
        return [RerankedSpans(np.zeros(1), end, (-end).astype(np.float32)) for end in ends]


def test_as_many_videos_are_looked_at_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those in which the search itself sought no moment; sure ones are shown, the model's best first."""
    films = {f"other{i}.mp4": nothing(20 + i, seed=i) for i in range(30)}
    films |= {f"shore{i}.mp4": film([("dog beach", 8 + i)], seed=i) for i in range(3)}
    catalog = fill(tmp_path, films)
    model = Half()
    on = Engine(OpenLibrary(tmp_path, catalog, WordVectors()))
    monkeypatch.setattr("momentseek.search.rerank.open_reranker", lambda folder, catalog, clip_seconds: model)
    found = on.search(Query.parse("dog beach -leash"), SearchOptions(rerank="there", rerank_videos=25, k=5))
    assert model.looked == 25
    assert [hit.name for hit in found] == ["shore0.mp4", "shore1.mp4", "shore2.mp4"]
    assert [(hit.start, hit.end) for hit in found] == [(0.0, 6.0), (0.0, 6.75), (0.0, 7.5)]
    assert {hit.level for hit in found} == {"strong"}
    assert sorted(hit.first.rank for hit in found if hit.first) == [1, 2, 3]
    assert found.hidden == 20
    everything = on.search(Query.parse("dog beach"), SearchOptions(rerank="there", rerank_videos=25, k=50, all=True))
    assert len(everything) == 25
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)
