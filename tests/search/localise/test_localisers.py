"""What every localiser owes: spans inside the video, the same ones each time, clean moments found as they are."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.moment import iou
from momentseek.search.localise.localiser import (
    LOCALISERS,
    MAX_CLIPS,
    Background,
    Curve,
    Proposals,
    localise,
    peak_neighbourhoods,
    suppress,
)

ALL = sorted(LOCALISERS)
EXACT = ["contrast", "scenes", "tag"]


def video(seed: int, clips: int, kind: str = "noise") -> Curve:
    rng = np.random.default_rng(seed)
    scores = {
        "noise": 0.2 + 0.03 * rng.normal(size=clips),
        "constant": np.full(clips, 0.2),
        "negative": -0.5 + 0.01 * rng.normal(size=clips),
        "spike": np.where(np.arange(clips) == seed % clips, 0.9, 0.1),
        "two values": rng.choice([0.1, 0.3], clips),
    }[kind]
    features = rng.normal(size=(clips, 8)).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    duration = clips * 1.5 - rng.uniform(0, 1.4)
    shots = np.sort(rng.uniform(0, duration, rng.integers(0, 6)))
    usual = Background.of(scores) if seed % 2 else None
    return Curve.regular(
        scores,
        1.5,
        duration,
        features=features if seed % 3 else None,
        shots=shots if seed % 5 else (),
        background=usual,
    )


@pytest.mark.parametrize("name", ALL)
@given(
    seed=st.integers(0, 10_000),
    clips=st.integers(1, 60),
    kind=st.sampled_from(["noise", "constant", "negative", "spike", "two values"]),
)
def test_spans_lie_in_the_video_best_first_and_repeat(name, seed, clips, kind):
    curve = video(seed, clips, kind)
    spans = LOCALISERS[name](curve)
    again = LOCALISERS[name](video(seed, clips, kind))
    assert len(spans) >= 1
    assert (spans.start >= 0).all()
    assert (spans.end <= curve.duration).all()
    assert (spans.start < spans.end).all()
    assert (spans.start <= spans.peak).all()
    assert (spans.peak <= spans.end).all()
    assert (np.diff(spans.score) <= 0).all()
    assert np.isfinite(spans.score).all()
    for column in ("start", "end", "score", "peak"):
        assert np.array_equal(getattr(spans, column), getattr(again, column))


@pytest.mark.parametrize("name", ALL)
def test_one_and_two_clips(name):
    assert LOCALISERS[name](Curve.regular([0.2], 1.5, 0.4)).end.tolist() == [0.4]
    spans = LOCALISERS[name](Curve.regular([0.1, 0.3], 1.5))
    assert float(spans.start[0]) in (0.0, 1.5)
    assert float(spans.end[0]) == 3.0


@pytest.mark.parametrize("name", EXACT)
@given(start=st.integers(0, 50), size=st.integers(4, 20), after=st.integers(4, 30), height=st.floats(0.02, 0.8))
def test_a_clean_plateau_is_found_exactly(name, start, size, after, height):
    size = min(size, max(4, (start + after) // 2))  # tag and contrast look at half a video at most
    before = max(start, 4)
    scores = np.full(before + size + after, 0.1)
    scores[before : before + size] += height
    vectors = np.where((scores > 0.1)[:, None], [[0.6, 0.8]], [[1.0, 0.0]]).astype(np.float32)
    spans = LOCALISERS[name](Curve.regular(scores, 2.0, features=vectors))
    truth = before * 2.0, (before + size) * 2.0
    assert float(iou(spans.start[0], spans.end[0], *truth)) > (0.95 if name != "tag" else 0.5)


@given(gap=st.integers(3, 30), sizes=st.tuples(st.integers(4, 15), st.integers(4, 15)), noise=st.floats(0, 0.01))
def test_scenes_finds_both_plateaus_and_no_union(gap, sizes, noise):
    rng = np.random.default_rng(gap)
    parts = [np.full(10, 0.1), np.full(sizes[0], 0.3), np.full(gap, 0.1), np.full(sizes[1], 0.3), np.full(10, 0.1)]
    scores = np.concatenate(parts)
    edges = np.cumsum([len(p) for p in parts])
    spans = localise(Curve.regular(scores + noise * rng.normal(size=len(scores)), 1.0), "scenes")
    for a, b in (edges[:2], edges[2:4]):
        assert iou(spans.start[:2], spans.end[:2], a, b).max() > 0.7
    assert not ((spans.start < edges[1]) & (spans.end > edges[2])).any()


@pytest.mark.parametrize("name", ["scenes", "contrast", "watershed"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), shift=st.sampled_from([-0.5, 0.25, 1.0]))
def test_adding_a_constant_moves_no_span(name, seed, shift):
    scores = np.round(np.random.default_rng(seed).normal(size=40) * 2**10) / 2**12  # sums stay exact in float32
    plain, moved = (LOCALISERS[name](Curve.regular(s, 1.5)) for s in (scores, scores + shift))
    assert sorted(zip(plain.start, plain.end, strict=True)) == sorted(zip(moved.start, moved.end, strict=True))


@pytest.mark.parametrize("name", ["height", "scenes"])
def test_cuts_give_the_exact_edges(name):
    scores = np.where((np.arange(40) >= 10) & (np.arange(40) < 16), 0.3, 0.1)
    curve = Curve.regular(scores, 2.0, shots=[20.7, 31.4, 50.0])
    spans = localise(curve, name)
    assert (spans.start[0], spans.end[0]) == (20.7, 31.4)


@pytest.mark.parametrize("name", ["height", "scenes"])
def test_a_video_that_is_all_alike_is_shown_whole(name):
    spans = localise(Curve.regular([0.3] * 20, 1.5, shots=[6.0, 12.0]), name)
    assert (spans.start.tolist(), spans.end.tolist()) == ([0.0], [30.0])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), clips=st.integers(1, 20))
def test_a_short_video_that_shows_the_thing_throughout_is_not_cut_to_pieces(seed, clips):
    rng = np.random.default_rng(seed)
    usual = Background.of(rng.normal(0.0, 0.1, 400))
    spans = localise(Curve.regular(0.6 + 0.05 * rng.normal(size=clips), 1.5, background=usual))
    assert (spans.start.tolist(), spans.end.tolist()) == ([0.0], [clips * 1.5])


def test_a_shot_is_one_moment_though_its_clips_scatter():
    scores = np.array([0.0, 0.1, -0.1, 0.0, 0.7, 0.2, 0.4, 0.7, 0.3, 0.0, -0.1, 0.1])
    usual = Background.of(np.random.default_rng(1).normal(0.0, 0.1, 400))
    spans = localise(Curve.regular(scores, 1.5, shots=[6.2, 13.4], background=usual))
    assert (spans.start.tolist(), spans.end.tolist()) == ([6.2], [13.4])


@pytest.mark.parametrize("name", ALL)
def test_ten_hours(name):
    rng = np.random.default_rng(3)
    scores = 0.2 + 0.01 * rng.normal(size=24_000)
    for at, size in ((700, 20), (12_000, 12), (23_950, 30)):
        scores[at : at + size] += 0.15
    spans = localise(Curve.regular(scores, 1.5), name, limit=5)
    assert 1 <= len(spans) <= 5
    if name in EXACT:
        for at, size in ((700, 20), (12_000, 12), (23_950, 30)):
            assert iou(spans.start, spans.end, at * 1.5, (at + size) * 1.5).max() > (0.7 if name == "scenes" else 0.4)


def test_neighbourhoods_are_disjoint_and_hold_the_peaks():
    scores = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    scores[[10, 300, 2500, 2550, 4990]] += 20
    places = sorted(peak_neighbourhoods(Curve.regular(scores, 1.5), 5))
    assert all(b - a <= MAX_CLIPS for a, b in places)
    assert all(x[1] <= y[0] for x, y in pairwise(places))
    for peak in (10, 300, 2500, 2550, 4990):
        assert any(a <= peak < b for a, b in places)


def test_names():
    with pytest.raises(MomentseekError, match="did you mean 'contrast'"):
        LOCALISERS["contrasts"]
    with pytest.raises(MomentseekError, match="already exists"):
        LOCALISERS.register("scenes")(lambda curve: localise(curve))
    with pytest.raises(MomentseekError, match=r"there are .*whole, window"):
        LOCALISERS["zzz"]


@pytest.mark.parametrize(
    ("scores", "edges", "features"),
    [
        ([], [0.0], None),
        ([0.1], [0.0], None),
        ([0.1, np.nan], [0.0, 1.0, 2.0], None),
        ([0.1, 0.2], [0.0, 1.0, 1.0], None),
        ([0.1, 0.2], [0.0, 1.0, 2.0], np.ones((3, 2), dtype=np.float32)),
    ],
)
def test_curves_that_make_no_sense_are_refused(scores, edges, features):
    with pytest.raises(MomentseekError):
        Curve(np.array(scores, dtype=np.float32), np.array(edges), features)


@given(seed=st.integers(0, 1000), limit=st.integers(1, 8))
def test_suppression_keeps_the_best_and_only_unlike_ones(seed, limit):
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 50, 30)
    end = start + rng.uniform(1, 30, 30)
    spans = Proposals.from_columns(start, end, rng.random(30), start)
    kept = suppress(spans, 0.5, limit)
    assert kept.start[0] == spans.start[0]
    assert len(kept) <= limit
    for i in range(len(kept)):
        assert (iou(kept.start[:i], kept.end[:i], kept.start[i], kept.end[i]) <= 0.5).all()
    if len(kept) < limit:  # each one dropped is near one kept
        for a, b in zip(start, end, strict=True):
            assert iou(kept.start, kept.end, a, b).max() > 0.5
