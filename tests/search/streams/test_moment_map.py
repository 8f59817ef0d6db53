"""Searching moments with an exported MMN or CroCs, in numpy and ONNX Runtime, against ``models.inference`` in torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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

from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.core.moments.run import Run
from momentseek.library import segments
from momentseek.library.video import Video
from momentseek.models.export.writing import export
from momentseek.models.features.data import Data, Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.recognition.exported.encoder import MomentMapEncoder, TrainedEncoder, load_trained_encoder
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.recognition.exported.moment_map import MomentMap, combine_cosines
from momentseek.search.confidence import Scale
from momentseek.search.fusion import fit_spans
from momentseek.search.query import Part
from momentseek.search.stream_index import SampledIndex, StreamIndex
from momentseek.search.streams.moment_map import bound_videos, list_by_planes, score_moments, tangent
from momentseek.search.streams.span_search import sort_hits
from momentseek.search.streams.vision import VisionQuery, build_vision_query

SMALL = {"hidden": 16, "space": 12, "max_clips": 8, "longest": 8, "map_layers": 2, "kernel": 3}
SPLIT = "test_iid"
QUERIES = 16
Told = tuple[str, float, float, float]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("films") / "data"
    simulate_grounding(folder, GroundingSettings(videos=160, pool=5, video_dim=16, text_dim=12))
    with Data.open(folder) as opened:
        yield opened


def exported(data: Data, name: str, folder: Path, **given: Any) -> tuple[CorpusModel, TrainedEncoder]:
    more = {key: given.pop(key) for key in ("window", "end_time") if key in given}
    torch.manual_seed(0)
    model = build(name, {**SMALL, **given}, Dims(data.dims.query, data.dims.video, None)).eval()
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.4)
    made = {kind: EncoderRef(kind, kind, getattr(data.dims, kind)) for kind in ("video", "query")}
    wide = {"window": 1000.0, **more}  # longer videos differ: they are cut there
    export(model, name, folder / "model", encoders=made, clip_seconds=data.clip_seconds, **wide)
    return model, load_trained_encoder(folder / "model")


class Library:
    """The videos of a split as a library's vision stream has them, and its queries."""

    def __init__(self, data: Data, model: TrainedEncoder, *, half: bool = False) -> None:
        asked = data.split(SPLIT)
        assert data.video is not None
        self.names, self.ids = asked.corpus, asked.truth.query_ids[:QUERIES]
        rows = [model.context(data.video.read(name), None) for name in self.names]
        kept = []
        for stream in (0, 1):
            made = segments.build_segment("vision", range(len(rows)), [r[stream] for r in rows])
            kept.append(made if half else replace(made, half=np.concatenate([r[stream] for r in rows])))
        none = np.zeros(0, np.int64)
        self.index = StreamIndex((kept[0],), none, data.clip_seconds, spans=(kept[1],), moments=model.about.moments)
        self._vectors = {query: model.queries([asked.query.read(query)]) for query in self.ids}
        self.known = {i: film(i, name, asked.durations[name], len(rows[i][0])) for i, name in enumerate(self.names)}

    def query(self, query: str, *avoid: str) -> VisionQuery:
        index = SampledIndex.of(self.index)
        return build_vision_query(index, [Part(query)], [Part(a) for a in avoid], self._encode(0), self._encode(1))

    def search(
        self, query: str, *avoid: str, localiser: str = "map", page: int = 10_000, depth: int = 100
    ) -> list[Told]:
        target = self.query(query, *avoid)
        session = vision_session(self.index, self.known, target, localiser=localiser)
        if localiser == "map":
            found = sort_hits(session.search_by_map(target, depth))
        else:
            found, _ = session.paged_search(target, depth).result(page)
        return [(self.names[m.video], m.start, m.end, m.score) for m in found]

    def _encode(self, which: int) -> Any:
        return lambda texts: np.concatenate([self._vectors[text][which] for text in texts])


def film(id: int, name: str, seconds: float, clips: int) -> Video:
    return Video(id, Path(name), name, 1, 0, name, seconds, 1, 1, Fraction(25), "", clips, 0, (), 0.0)


@pytest.mark.parametrize(
    ("name", "settings", "more"),
    [
        ("mmn", {}, {}),
        ("crocs", {"text": "lstm", "text_layers": 2, "alpha": 0.5, "power": 0.3}, {}),
        ("mmn", {"padding": "first", "norm": False}, {"end_time": "start"}),
        ("mmn", {"max_clips": 32, "longest": 32, "endpoints": True}, {}),
    ],
    ids=["mmn", "crocs", "ends-early", "more-clips-than-rows"],
)
def test_the_library_finds_what_the_model_finds(
    data: Data, name: str, settings: dict[str, Any], more: dict[str, Any], tmp_path: Path
) -> None:
    model, there = exported(data, name, tmp_path, **settings, **more)
    wanted = five_a_video(predict(model, data, SPLIT, k=400, nms=0.5, **more))
    library = Library(data, there)
    sure = 0
    for query in library.ids:
        moments = wanted[query]
        theirs = moments[:12]
        ours = library.search(query)[: len(theirs)]
        np.testing.assert_allclose([m[3] for m in ours], [m[3] for m in theirs], atol=1e-4)
        gaps = np.diff([m[3] for m in (theirs[0], *moments[:13])], append=-np.inf) < -2e-4
        for i in range(len(theirs)):  # moments with the same score may stand in any order
            if (i == 0 or gaps[i]) and gaps[i + 1]:
                assert ours[i][0] == theirs[i][0]
                start, end = fit_spans([theirs[i][1]], [theirs[i][2]], data.split(SPLIT).durations[theirs[i][0]])
                assert ours[i][1:3] == pytest.approx((start[0], end[0]))  # a library shows none below half a second
                sure += 1
    assert sure > 6 * len(library.ids)


def five_a_video(run: Run) -> dict[str, list[Told]]:
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


def test_a_short_page_of_a_shallow_search_is_the_beginning_of_a_long_one(data: Data, tmp_path: Path) -> None:
    library = Library(data, exported(data, "mmn", tmp_path)[1], half=True)
    same = [library.search(q)[:6] == library.search(q, page=6, depth=12)[:6] for q in library.ids]
    assert np.mean(same) > 0.95


def test_no_video_has_a_better_moment_than_its_bound(data: Data, tmp_path: Path) -> None:
    library = Library(data, exported(data, "mmn", tmp_path)[1], half=True)
    for query in library.ids:
        target = library.query(query)
        assert target.moments is not None
        lists = list_by_planes(library.index, target.moments, None, depth=5)
        assert library.index.moments is not None
        bounds = bound_videos(library.index.moments, target.moments, lists)
        best = {video: score for video, _, _, score in reversed(library.search(query))}
        assert 5 <= len(bounds) <= 15
        assert all(bound >= best[library.names[id]] for id, bound in bounds.items())


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1), st.floats(0.1, 2), st.floats(1, 20))
def test_a_tangent_never_lies_below_the_score(
    match: float, overlap: float, other: float, far: float, power: float, sharpness: float
) -> None:
    known = MomentMap(1, np.array([0]), np.array([1]), 1, power, sharpness, 1)
    by_match, by_overlap, constant = tangent(known, match, overlap)
    score = combine_cosines(np.array([other]), np.array([far]), power, sharpness)[0]
    assert by_match * other + by_overlap * far + constant >= score - 1e-6 * max(1, abs(score))


def test_half_precision_changes_little(data: Data, tmp_path: Path) -> None:
    model = exported(data, "mmn", tmp_path)[1]
    exact, rounded = (Library(data, model, half=half) for half in (False, True))
    first = [(exact.search(q)[0], rounded.search(q)[0]) for q in exact.ids]
    assert np.mean([a[:3] == b[:3] for a, b in first]) > 0.9
    assert max(abs(a[3] - b[3]) for a, b in first) < 0.02


def test_what_is_to_be_avoided_costs_the_moments_that_show_it(data: Data, tmp_path: Path) -> None:
    library = Library(data, exported(data, "mmn", tmp_path)[1])
    plain = library.query(library.ids[0]).moments
    assert plain is not None
    rows = library.index.spans[0].vectors(3)
    against = replace(plain, avoid=((rows[20], 2.0, Scale(0.5, 0.1, 100)),))
    before, after = (score_moments(library.index, target, library.known[3]) for target in (plain, against))
    assert before is not None
    assert after is not None
    wanted = 2 * plain.spread * np.maximum(0, (rows @ rows[20] - 0.5) / 0.1 - 1)[: len(before.score)]
    np.testing.assert_allclose(before.score - after.score, wanted, atol=1e-6)
    assert np.argmax(wanted) == 20
    one = library.search(library.ids[0], library.ids[7])  # and the way there
    assert len(one) == len(library.search(library.ids[0]))


def test_other_localisers_see_how_clips_match(data: Data, tmp_path: Path) -> None:
    library = Library(data, exported(data, "mmn", tmp_path)[1])
    found = library.search(library.ids[0], localiser="watershed")
    assert found
    assert all(0 <= start < end for _, start, end, _ in found)


def test_a_long_video_is_read_in_windows(data: Data, tmp_path: Path) -> None:
    """Moments near the middle of a window are those of a video of that window alone, and no moment is kept twice."""
    model = exported(data, "mmn", tmp_path, window=16 * data.clip_seconds)[1]
    assert isinstance(model, MomentMapEncoder)
    video = np.random.default_rng(0).standard_normal((40, data.dims.video or 0)).astype(np.float32)
    clips, moments = model.context(video, None)
    assert clips.shape == (40, 12)
    np.testing.assert_allclose(np.linalg.norm(clips, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(moments, axis=1), 1, atol=1e-5)
    at = model.moments.of(40)
    assert len(at) == len(moments) == model.span_rows(40)
    spans = list(zip(at.start.tolist(), at.end.tolist(), strict=True))
    assert len(set(spans)) == len(spans)
    wide = replace(model.moments, whole=24)
    assert (len(wide.of(24)), wide.count(24)) == (36, 1)  # read whole: all candidates of eight clips
    assert wide.of(25).window.max() + 1 == wide.count(25) == model.moments.count(25) > 1
    alone = model.context(video[8:24], None)[1]
    places = model.moments.of(16)
    for start, end, row in zip(places.start + 8, places.end + 8, alone, strict=True):
        if 12 <= (start + end) / 2 < 20:
            np.testing.assert_allclose(moments[spans.index((start, end))], row, atol=1e-5)
