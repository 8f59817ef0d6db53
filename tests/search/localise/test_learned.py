"""Searching with an exported model, in numpy and ONNX Runtime, against ``models.inference`` in torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_library import vision_session

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.core.moments.run import Run
from momentseek.library import segments
from momentseek.library.video import Video
from momentseek.models.export.writing import export
from momentseek.models.features.data import Data, Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.recognition.exported.boundary_head import BoundaryHead, log_shares, response
from momentseek.recognition.exported.encoder import TrainedEncoder, load_trained_encoder
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.search.localise.learned import learned
from momentseek.search.localise.localiser import Curve, localise
from momentseek.search.query import Part
from momentseek.search.stream_index import SampledIndex, StreamIndex
from momentseek.search.streams.vision import MAX_VIDEOS, build_vision_query

SMALL = {"hidden": 32, "heads": 4, "longest": 12, "max_clips": 200}  # longer videos differ: they are cut there


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("simulated") / "data"
    simulate(folder, SimulationSettings(videos=24, queries=40, seed=0, video_dim=24, text_dim=16))
    with Data.open(folder) as opened:
        yield opened


def exported(data: Data, name: str, folder: Path, **settings: Any) -> tuple[CorpusModel, TrainedEncoder]:
    torch.manual_seed(0)
    columns = data.dims
    model = build(name, {**SMALL, **settings}, Dims(columns.query, columns.video, columns.subtitle)).eval()
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.3)
    made = {kind: EncoderRef(kind, kind, getattr(columns, kind)) for kind in ("video", "subtitle", "query")}
    export(model, name, folder / "model", encoders=made)
    return model, load_trained_encoder(folder / "model")


def searched(
    data: Data, model: TrainedEncoder, split: str, *, half: bool
) -> dict[str, list[tuple[str, float, float, float]]]:
    """Moments of each query, as the library's vision stream finds them."""
    asked = data.split(split)
    names, ids = asked.corpus, asked.truth.query_ids
    rows = []
    for name in names:
        video = data.video.read(name) if data.video and model.about.video else None
        subtitle = data.subtitle.read(name) if data.subtitle and model.about.subtitle else None
        rows.append(model.context(video, subtitle))
    kept = []
    for stream in (0, 1):
        made = segments.build_segment("vision", range(len(names)), [r[stream] for r in rows])
        exact = np.concatenate([r[stream] for r in rows])
        kept.append(made if half else replace(made, half=exact))
    index = StreamIndex((kept[0],), np.zeros(0, np.int64), 1.5, spans=(kept[1],), head=BoundaryHead.of(model.about))
    vectors = {query: model.queries([asked.query.read(query)]) for query in ids}
    known = {i: film(i, name, asked.durations[name], len(rows[i][0])) for i, name in enumerate(names)}

    def encode(which: int) -> Any:
        return lambda texts: np.concatenate([vectors[text][which] for text in texts])

    found = {}
    for query in ids:
        target = build_vision_query(SampledIndex.of(index), [Part(query)], [], encode(0), encode(1))
        session = vision_session(index, known, target, localiser="learned")
        moments, _ = session.paged_search(target, MAX_VIDEOS).result(10_000)
        found[query] = [(names[m.video], m.start, m.end, m.score) for m in moments]
    return found


def film(id: int, name: str, seconds: float, clips: int) -> Video:
    return Video(id, Path(name), name, 1, 0, name, seconds, 1, 1, Fraction(25), "", clips, 0, (), 0.0)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("xml", {}), ("reloclnet", {"kernel": 3}), ("xml", {"modalities": "video", "shortest": 2})],
    ids=["xml", "reloclnet", "video-only"],
)
def test_the_library_finds_what_the_model_finds(data: Data, name: str, settings: dict[str, Any], tmp_path: Path):
    model, model_there = exported(data, name, tmp_path, **settings)
    wanted = five_a_video(predict(model, data, "test", k=400, nms=0.5))
    found = searched(data, model_there, "test", half=False)
    sure = 0
    for query, moments in wanted.items():
        theirs = moments[:12]
        ours = found[query][: len(theirs)]
        np.testing.assert_allclose([m[3] for m in ours], [m[3] for m in theirs], atol=1e-4)
        gaps = np.diff([m[3] for m in (theirs[0], *moments[:13])], append=-np.inf) < -2e-4
        for i in range(len(theirs)):  # moments with the same score may stand in any order
            if (i == 0 or gaps[i]) and gaps[i + 1]:
                assert ours[i][:3] == theirs[i][:3]
                sure += 1
    assert sure > 6 * len(wanted)


def five_a_video(run: Run) -> dict[str, list[tuple[str, float, float, float]]]:
    """Each query's moments, without a video's sixth and later, which the library does not take."""
    found = {}
    for at, query in enumerate(run.query_ids):
        counts: Counter[str] = Counter()
        found[query] = []
        for row in range(run.offsets[at], run.offsets[at + 1]):
            video = run.videos[run.video[row]]
            counts[video] += 1
            if counts[video] <= 5:
                found[query].append((video, float(run.start[row]), float(run.end[row]), float(run.score[row])))
    return found


def test_half_precision_changes_little(data: Data, tmp_path: Path):
    _, model = exported(data, "xml", tmp_path)
    exact, rounded = (searched(data, model, "test", half=half) for half in (False, True))
    first = [(exact[query][0], rounded[query][0]) for query in exact]
    assert np.mean([a[:3] == b[:3] for a, b in first]) > 0.9
    assert max(abs(a[3] - b[3]) for a, b in first) < 0.05


def test_long_videos_are_read_in_windows(data: Data, tmp_path: Path):
    """Clips in the middle of a window are what they would be in a video of that window alone."""
    _, model = exported(data, "xml", tmp_path, max_clips=20)
    rng = np.random.default_rng(0)
    video = rng.standard_normal((75, data.dims.video or 0)).astype(np.float32)
    said = rng.standard_normal((75, data.dims.subtitle or 0)).astype(np.float32)
    match, spans = model.context(video, said)
    assert match.shape == (75, 64)
    np.testing.assert_allclose(np.linalg.norm(match, axis=1), 1, atol=1e-5)
    alone = model.context(video[:20], said[:20])
    np.testing.assert_allclose(spans[:10], alone[1][:10], atol=1e-5)
    short = model.context(video[:1], said[:1])
    assert short[0].shape == (1, 64)


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=40),
    st.lists(st.floats(-2, 2), min_size=1, max_size=4).map(lambda half: half[::-1] + half[1:]),
)
def test_filters_answer_as_written(curve: Sequence[float], kernel: Sequence[float]):
    reach = len(kernel) // 2
    wanted = [
        sum(kernel[j + reach] * curve[i + j] for j in range(-reach, reach + 1) if 0 <= i + j < len(curve))
        for i in range(len(curve))
    ]
    np.testing.assert_allclose(response(np.array(curve), np.array(kernel)), wanted, atol=1e-9)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40), st.integers(1, 50))
def test_shares_add_up_to_one_where_the_window_holds_all(values: Sequence[float], window: int):
    shares = np.exp(log_shares(np.array(values), window))
    assert (shares <= 1 + 1e-9).all()
    if window >= len(values):
        assert shares.sum() == pytest.approx(1)
    else:
        assert shares.sum() >= 1 - 1e-9


def test_what_is_to_be_avoided_costs_the_spans_that_show_it():
    head = BoundaryHead(np.float32([0, 1, 0]), np.float32([0, 1, 0]), 1, 3, 10.0, 1, 100)
    curve = np.float32([0, 4, 4, 0, 0, 4, 4, 0])
    edges = np.arange(9) * 1.5
    plain = head.bounds(curve, 0.5)
    first = learned(Curve(curve, edges, bounds=plain))
    assert (first.start[0], first.score[0]) == (1.5, pytest.approx(first.score[1]))
    avoided = head.bounds(curve, 0.5, np.array([0, 1.0, 1.0, 0, 0, 0, 0, 0]))
    spans = learned(Curve(curve, edges, bounds=avoided))
    assert spans.start[0] == 7.5
    assert spans.score[0] == pytest.approx(first.score[0])


def test_a_part_of_a_curve_keeps_its_bounds():
    head = BoundaryHead(np.float32([0, 1, 0]), np.float32([0, 1, 0]), 1, 3, 10.0, 1, 100)
    scores = np.float32([0] * 20 + [4, 4] + [0] * 20)
    whole = Curve(scores, np.arange(43) * 1.5, bounds=head.bounds(scores, 0.5))
    part = whole.part(10, 30)
    assert localise(part, "learned").start[0] == localise(whole, "learned").start[0] == 30.0
    assert localise(part, "learned").score[0] == pytest.approx(localise(whole, "learned").score[0])


def test_ends_where_the_last_clip_starts_if_the_model_was_trained_so():
    head = BoundaryHead(np.float32([1]), np.float32([1]), 1, 3, 1.0, 1, 100, "start")
    curve = np.float32([0, 9, 0])
    spans = learned(Curve(curve, np.arange(4) * 1.5, bounds=head.bounds(curve, 0.0)))
    assert (spans.start[0], spans.end[0]) == (1.5, 3.0)
