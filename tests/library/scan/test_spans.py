"""The best spans of a library's videos: against loops, in both kernels, and by bounds that never lie below."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from momentseek.core.native.kernels import every_processor
from momentseek.library.scan import spans as spans_module
from momentseek.library.scan.kernels import KERNEL_VARIABLE, has_kernels
from momentseek.library.scan.plan import build_plan, open_plan
from momentseek.library.scan.scan import Scan
from momentseek.library.scan.spans import (
    _leads_task,
    best_span_videos,
    measure_span_recall,
    sample_span_queries,
    search_spans,
    shortlist,
    span_bounds,
    span_scores,
)
from momentseek.library.scan.threads import share_rows
from momentseek.library.segments import Segment, build_segment
from momentseek.recognition.exported.span_head import SpanHead, SpanQuery

COLUMNS, LENGTHS = 20, 6


def made(videos: int = 40, seed: int = 0, columns: int = COLUMNS) -> list[Segment]:
    """Two segments of unit rows, float16, among them a video of one clip and a long one."""
    rng = np.random.default_rng(seed)
    clips = [1, 60, *rng.integers(2, 12, videos - 2).tolist()]
    rows = [rng.standard_normal((n, columns)) for n in clips]
    rows = [(x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in rows]
    half = videos // 3
    return [
        build_segment("vision", list(range(1, half + 1)), rows[:half], "one"),
        build_segment("vision", list(range(half + 1, videos + 1)), rows[half:], "two"),
    ]


def asked(seed: int = 1, shortest: int = 1, columns: int = COLUMNS) -> SpanQuery:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((3, columns)).astype(np.float32) * np.float32([[2.0], [0.7], [0.5]])
    return SpanQuery(vectors, rng.standard_normal(LENGTHS).astype(np.float32), shortest)


def best_by_loops(rows: np.ndarray, query: SpanQuery) -> float:
    x, best = rows.astype(np.float64), -np.inf
    what, start, end = query.vectors.astype(np.float64)
    nothing = np.zeros(x.shape[1])
    for s in range(len(x)):
        for at, length in enumerate(query.lengths.tolist()):
            e = s + query.shortest + at - 1
            if e >= len(x):
                break
            before, after = (x[s - 1] if s else nothing), (x[e + 1] if e + 1 < len(x) else nothing)
            z = what @ x[s : e + 1].mean(0) + start @ (x[s] - before) + end @ (x[e] - after) + length
            best = max(best, z)
    return best


def true_scores(segments: list[Segment], query: SpanQuery) -> dict[int, float]:
    return {
        int(id): best_by_loops(segment.vectors(at), query)
        for segment in segments
        for at, id in enumerate(segment.ids.tolist())
    }


@pytest.fixture(params=["native", "numpy"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "native" and not has_kernels():
        pytest.skip("the kernels are not built")
    monkeypatch.setenv(KERNEL_VARIABLE, request.param)
    return str(request.param)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("shortest", [1, 2])
def test_a_videos_best_span_is_that_of_loops(shortest: int) -> None:
    segments, query = made(), asked(shortest=shortest)
    true = true_scores(segments, query)
    parts = [(segment, None) for segment in segments]
    found = span_scores(parts, query)
    np.testing.assert_allclose(found, list(true.values()), atol=1e-4)
    assert (np.isneginf(found) == np.isneginf(list(true.values()))).all()


@pytest.mark.parametrize("columns", [8, 20, 64])
def test_bounds_lie_above_scores_and_not_far(columns: int) -> None:
    segments = made(seed=3, columns=columns)
    parts = [(segment, None) for segment in segments]
    for seed in range(5):
        query = asked(seed, columns=columns)
        bounds, scores = span_bounds(parts, query), span_scores(parts, query)
        assert (bounds >= scores).all()
        assert (bounds - scores).max() < 0.2 * query.reach.sum()


@pytest.mark.skipif(not has_kernels(), reason="the kernels are not built")
def test_kernels_for_every_processor_give_the_same() -> None:
    parts, query = [(segment, None) for segment in made()], asked()
    bounds, scores = span_bounds(parts, query), span_scores(parts, query)
    with every_processor():
        np.testing.assert_array_equal(span_bounds(parts, query), bounds)
        np.testing.assert_allclose(span_scores(parts, query), scores, atol=1e-5)


@pytest.mark.usefixtures("kernel")
def test_the_best_videos_are_all_found_in_order() -> None:
    segments, query = made(), asked()
    true = true_scores(segments, query)
    wanted = sorted(true, key=lambda id: -true[id])
    found = best_span_videos(segments, query, 7, [None, None])
    assert found.ids[0].tolist() == wanted[:7]
    for id, score, owner, at in zip(found.ids[0], found.scores[0], found.segment[0], found.at[0], strict=True):
        assert score == pytest.approx(true[int(id)], abs=1e-4)
        assert segments[owner].ids[at] == id
    gone = np.array(wanted[:2], np.int64)
    assert search_spans(Scan(segments), query, 3, gone=gone).ids[0].tolist() == wanted[2:5]
    allowed = np.isin(np.concatenate([s.ids for s in segments]), wanted[3:6])
    assert search_spans(Scan(segments), query, 9, allowed=allowed).ids[0].tolist() == wanted[3:6]


def test_damaged_clips_are_no_answer() -> None:
    segments, query = made(), asked()
    first = best_span_videos(segments, query, 1, [None, None])
    owner, at = int(first.segment[0, 0]), int(first.at[0, 0])
    segment = segments[owner]
    segment.half[segment.offsets[at] : segment.offsets[at + 1]] = np.nan
    assert best_span_videos(segments, query, 1, [None, None]).ids[0, 0] != first.ids[0, 0]


def test_nothing_is_found_in_nothing() -> None:
    assert best_span_videos([], asked(), 5, []).ids.shape == (1, 0)


def led(videos: int = 600, columns: int = 80, directions: int = 12) -> list[Segment]:
    """Segments whose clips lie near few directions, one segment with a video of no clip and some damaged rows."""
    rng = np.random.default_rng(5)
    few = np.linalg.qr(rng.standard_normal((columns, columns)))[0][:directions]
    clips = [1, 0, 300, *rng.integers(1, 40, videos - 3).tolist()]
    rows = [rng.standard_normal((n, directions)) @ few + 0.05 * rng.standard_normal((n, columns)) for n in clips]
    rows = [(x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in rows]
    half = videos // 2
    return [
        build_segment("vision", list(range(half)), rows[:half], "one"),
        build_segment("vision", list(range(half, videos)), rows[half:], "two"),
    ]


def asked_like(segment: Segment, seed: int) -> SpanQuery:
    """A query in the directions of a segment's clips."""
    query = asked(seed, columns=30)
    return SpanQuery(query.vectors @ segment.half[:30].astype(np.float32), query.lengths, query.shortest)


@pytest.mark.skipif(not has_kernels(), reason="the kernels are not built")
def test_leading_columns_rule_out_only_what_cannot_be_found(tmp_path: Path) -> None:
    segments = led()
    plan = build_plan(segments[:1], tmp_path / "part", spans=True)
    whole = build_plan(segments, tmp_path / "whole", spans=True)
    again = open_plan(tmp_path / "whole", segments)
    assert again is not None
    assert sorted(again.leading) == ["one", "two"]
    for seed in range(6):
        query = asked_like(segments[0], seed)
        known = [whole.leading[s.name] for s in segments]
        left = shortlist(segments, known, query, 5, [None, None])
        assert sum(map(len, left)) < 100
        with every_processor():
            assert [p.tolist() for p in shortlist(segments, known, query, 5, [None, None])] == [
                p.tolist() for p in left
            ]
        for scan in (Scan(segments, plan), Scan(segments, whole)):
            for open_ in (None, np.arange(600) % 3 > 0):
                found = search_spans(scan, query, 5, allowed=open_, gone=np.array([7]))
                truth = search_spans(Scan(segments), query, 5, allowed=open_, gone=np.array([7]))
                np.testing.assert_array_equal(found.ids, truth.ids)
                np.testing.assert_array_equal(found.scores, truth.scores)
    assert search_spans(Scan(segments, whole), query, 0).ids.shape == (1, 0)
    assert search_spans(Scan(segments, whole), query, 1000).ids.shape[1] == 599


def test_recall_of_spans_compares_with_all_bytes_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segments, head = made(), SpanHead(COLUMNS, 1, LENGTHS, (2.0, 1.0, 0.5), 9)
    for query in sample_span_queries(Scan(segments), head, 12):
        np.testing.assert_allclose(query.reach, head.scales, rtol=1e-5)
    away = np.array([3])
    assert measure_span_recall(Scan(segments), head, sample=8, k=5, gone=away).complete == 1
    assert measure_span_recall(Scan([]), head, gone=away).queries == 0
    whole = search_spans
    monkeypatch.setattr(spans_module, "search_spans", lambda *given, gone: whole(*given))  # shows what was removed
    assert measure_span_recall(Scan(segments), head, sample=8, k=40, gone=away).complete == 0


@pytest.mark.skipif(not has_kernels(), reason="the kernels are not built")
def test_leading_columns_bound_every_span(tmp_path: Path) -> None:
    segments = led(videos=60)
    plan = build_plan(segments, tmp_path, spans=True)
    for seed, need in ((1, -np.inf), (2, 1.0), (3, np.inf)):
        query = asked_like(segments[0], seed)
        for segment in segments:
            bounds, scores = np.empty(len(segment.ids), np.float32), span_scores([(segment, None)], query)
            share_rows([_leads_task(segment, plan.leading[segment.name], query, need, bounds)], 3)
            assert (bounds + 1e-4 >= scores).all()
            near = np.isfinite(scores) & (bounds >= need)
            assert (bounds[near] - scores[near]).max(initial=0) < 0.2 * query.reach.sum()


@pytest.mark.skipif(not has_kernels(), reason="the kernels are not built")
def test_bounds_of_leading_columns_depend_on_no_other_video(tmp_path: Path) -> None:
    segment, query = led(videos=120)[0], asked_like(led()[0], 4)
    leading = build_plan([segment], tmp_path, spans=True).leading[segment.name]
    together, alone = (np.empty(len(segment.ids), np.float32) for _ in "ta")
    for need in (-np.inf, 2.0):
        _leads_task(segment, leading, query, need, together)[0](0, len(together))
        for video in range(len(alone)):
            _leads_task(segment, leading, query, need, alone)[0](video, video + 1)
        np.testing.assert_array_equal(together, alone)
        assert ((together >= need) & (together < np.inf)).sum() > 10


@pytest.mark.skipif(not has_kernels(), reason="the kernels are not built")
@pytest.mark.parametrize(("directions", "columns"), [(12, 16), (20, 24), (28, 32), (50, 64)])
def test_no_more_columns_are_kept_than_hold_most(directions: int, columns: int, tmp_path: Path) -> None:
    plan = build_plan(led(videos=60, directions=directions), tmp_path, spans=True)
    assert plan.leading["one"].blocks.shape[1] == columns // 2


@pytest.mark.skipif(not has_kernels(), reason="the kernels are not built")
def test_no_columns_lead_where_none_hold_most(tmp_path: Path) -> None:
    assert not build_plan(made(100, columns=96), tmp_path / "noise", spans=True).leading
    assert not build_plan(led(60), tmp_path / "clips").leading
    longer = led(60)
    longer[0].half[:] *= 2
    assert not build_plan(longer, tmp_path / "longer", spans=True).leading
