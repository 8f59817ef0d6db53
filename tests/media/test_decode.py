from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.media.container import open_media
from momentseek.media.decode import first_tick, frames
from momentseek.media.probe import probe
from momentseek.media.reader import Damage, Reader

Maker = Callable[..., Path]
Number = Callable[[Any], int]

CONTAINERS = [
    ("a.mp4", {"options": {"bf": "3", "g": "30"}}),
    ("a.mkv", {"options": {"g": "30"}}),
    ("a.mkv", {"start": 7.0}),
    ("a.ts", {"options": {"g": "30"}}),
    ("a.webm", {"codec": "libvpx-vp9", "options": {"g": "30"}}),
    ("a.avi", {"codec": "mpeg4", "options": {"b": "4000000"}}),
]


@pytest.mark.parametrize(("name", "settings"), CONTAINERS)
def test_frame_shown_at_each_tick(counting: Maker, number: Number, name: str, settings: dict[str, Any]) -> None:
    path = counting(name, **settings)
    got = list(frames(path, 3.1))
    assert len(got) == math.ceil(4.0 * 3.1)
    assert [f.time for f in got] == [(k + 0.5) / 3.1 for k in range(len(got))]
    assert [number(f.pixels) for f in got] == [min(99, math.floor(f.time * 25 + 1e-6)) for f in got]


def test_every_frame_at_its_own_time(counting: Maker, number: Number) -> None:
    assert [number(f.pixels) for f in frames(counting(), 25, phase=0.0)] == list(range(100))


B_FRAMES = [
    ("a.avi", {"codec": "mpeg4", "options": {"bf": "2", "g": "12", "b": "4000000"}}),
    ("a.avi", {"options": {"bf": "2", "g": "12"}}),
    ("a.avi", {"options": {"bf": "16", "b_strategy": "0", "g": "50"}}),
    ("a.mkv", {"options": {"bf": "3", "g": "30"}}),
]


def every_picture(path: Path, number: Number) -> tuple[list[int], list[float]]:
    with open_media(path) as container:
        reader = Reader(container, path)
        pictures = [(number(p.frame.to_ndarray(format="rgb24")), p.time) for p in reader.pictures()]
        assert reader.damage(4.0) is None
    return [n for n, _ in pictures], [time for _, time in pictures]


@pytest.mark.parametrize(("name", "settings"), B_FRAMES)
def test_b_frames_are_decoded_once_in_order(counting: Maker, number: Number, name: str, settings: Any) -> None:
    seen, times = every_picture(counting(name, **settings), number)
    assert seen == list(range(100))
    assert np.diff(times) == pytest.approx(np.full(99, 1 / 25))


def test_packed_b_frames_are_decoded_once_in_order(packed_avi: Path, number: Number) -> None:
    seen, times = every_picture(packed_avi, number)
    assert seen == list(range(100))
    assert np.diff(times) == pytest.approx(np.full(99, 1 / 25))


def test_late_b_frames_are_decoded(counting: Maker, number: Number, tmp_path: Path) -> None:
    """Matroska copied from AVI keeps the decoding order, here with B-frames in the second half."""
    path = tmp_path / "late.mkv"
    with av.open(str(counting("b.mp4", options={"bf": "2", "b_strategy": "0", "g": "25"}))) as source:
        stream = source.streams.video[0]
        coded = [packet for packet in source.demux(stream) if packet.size]
        with av.open(str(path), "w") as container:
            copy = container.add_stream_from_template(stream)
            stamps = [packet.pts for packet in coded]
            in_order = sorted(stamps)
            for place, packet in enumerate(coded):
                if place >= 50:
                    packet.pts = in_order[place]
                packet.dts = in_order[place] - in_order[3]
                packet.stream = copy
                container.mux(packet)
    seen, times = every_picture(path, number)
    assert seen == list(range(100))
    assert all(one < other for one, other in pairwise(times))


def test_variable_frame_rate(counting: Maker, number: Number) -> None:
    times = [0.0, 0.04, 0.08, 0.6, 0.64, 1.52, 1.56, 1.6, 3.0, 3.04]
    path = counting("vfr.mp4", times=times)
    got = list(frames(path, 10))
    assert [number(f.pixels) for f in got] == [round(25 * max(t for t in times if t <= f.time + 1e-6)) for f in got]
    assert len(got) == 31


def test_last_clip_may_be_shorter(make_video: Maker, tmp_path: Path) -> None:
    for seconds, count in ((0.04, 1), (1.48, 1), (1.52, 2), (3.0, 2), (3.04, 3)):
        path = make_video(tmp_path / "a.mp4", [(seconds, (9, 9, 9))])
        source = frames(path, 2 / 3)
        assert len(list(source)) == count
        assert source.duration == pytest.approx(seconds)
        assert source.damage is None


def test_pictures_may_start_after_the_sound(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", [(2.0, (200, 9, 9))], audio=True, times=[0.5 + i / 25 for i in range(37)])
    got = list(frames(path, 4))
    assert [f.time for f in got] == [(k + 0.5) / 4 for k in range(8)]
    assert all(f.pixels[0, 0, 0] > 150 for f in got)


@pytest.mark.parametrize(("name", "settings"), CONTAINERS)
@pytest.mark.parametrize("at", [0.5, 1.0, 2.74, 3.99])
def test_windows_add_up_to_the_whole_video(counting: Maker, name: str, settings: dict[str, Any], at: float) -> None:
    path = counting(name, **settings)
    whole = list(frames(path, 7))
    parts = [*frames(path, 7, end=at), *frames(path, 7, start=at)]
    assert [f.time for f in parts] == [f.time for f in whole]
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


@pytest.mark.parametrize("at", [0.5, 1.0, 2.74, 3.99])
def test_windows_of_packed_b_frames_add_up_to_the_whole_video(packed_avi: Path, number: Number, at: float) -> None:
    whole = [(f.time, number(f.pixels)) for f in frames(packed_avi, 7)]
    windows = [*frames(packed_avi, 7, end=at), *frames(packed_avi, 7, start=at)]
    assert [(f.time, number(f.pixels)) for f in windows] == whole


def test_window_after_the_end_is_empty(counting: Maker) -> None:
    assert list(frames(counting(), 5, start=10.0)) == []


@given(st.floats(0, 1e5), st.floats(0.01, 60), st.floats(0, 0.99))
def test_first_tick_is_minimal(start: float, rate: float, phase: float) -> None:
    k = first_tick(start, rate, phase)
    assert (k + phase) / rate >= start
    assert k == 0 or (k - 1 + phase) / rate < start


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_frames_are_upright(make_video: Maker, tmp_path: Path, rotation: int) -> None:
    picture = np.zeros((120, 160, 3), np.uint8)
    picture[:60, :80] = (250, 0, 0)
    picture[:60, 80:] = (0, 250, 0)
    picture[60:, :80] = (0, 0, 250)
    (got,) = frames(make_video(tmp_path / "a.mp4", [(0.2, picture)], rotation=rotation), 1)
    assert got.pixels.shape == (120, 160, 3)
    np.testing.assert_allclose(got.pixels[30, 40], (250, 0, 0), atol=12)
    np.testing.assert_allclose(got.pixels[30, 120], (0, 250, 0), atol=12)
    np.testing.assert_allclose(got.pixels[90, 40], (0, 0, 250), atol=12)
    np.testing.assert_allclose(got.pixels[90, 120], (0, 0, 0), atol=12)


@pytest.mark.parametrize(
    ("size", "aspect", "short_side", "shape"),
    [
        ((160, 120), None, 60, (60, 80, 3)),
        ((160, 120), None, 500, (120, 160, 3)),
        ((90, 80), Fraction(4, 3), None, (80, 120, 3)),
        ((90, 80), Fraction(4, 3), 40, (40, 60, 3)),
    ],
)
def test_frame_size(make_video: Maker, tmp_path: Path, size: Any, aspect: Any, short_side: Any, shape: Any) -> None:
    path = make_video(tmp_path / "a.mp4", [(0.2, (9, 200, 9))], size=size, aspect=aspect)
    (got,) = frames(path, 1, short_side=short_side)
    assert got.pixels.shape == shape
    np.testing.assert_allclose(got.pixels.reshape(-1, 3).mean(0), (9, 200, 9), atol=6)


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (13, 40)])
def test_tiny_and_odd_sizes(make_video: Maker, tmp_path: Path, size: tuple[int, int]) -> None:
    path = make_video(tmp_path / "a.mkv", [(1.0, (9, 200, 9))], codec="ffv1", size=size)
    small: list[Any] = []
    got = list(frames(path, 2, short_side=224, on_picture=lambda _, s: small.append(s)))
    assert [f.pixels.shape for f in got] == [(size[1], size[0], 3)] * 2
    assert len(small) == 25


def test_ten_bit_video(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", [(0.2, (9, 200, 9))], codec="ffv1", pix_fmt="yuv420p10le")
    (got,) = frames(path, 1)
    np.testing.assert_allclose(got.pixels[5, 5], (9, 200, 9), atol=4)


def test_size_changes_midway(make_video: Maker, tmp_path: Path) -> None:
    parts = [
        make_video(tmp_path / f"{i}.ts", [(1.0, colour)], size=size, start=1.0 + i)
        for i, (colour, size) in enumerate([((200, 0, 0), (160, 120)), ((0, 0, 200), (96, 64))])
    ]
    both = tmp_path / "both.ts"
    both.write_bytes(b"".join(p.read_bytes() for p in parts))
    got = list(frames(both, 2))
    assert [f.pixels.shape for f in got] == [(120, 160, 3)] * 2 + [(64, 96, 3)] * 2


def test_stream_appears_midway(make_video: Maker, tmp_path: Path) -> None:
    parts = [
        make_video(tmp_path / f"{i}.ts", [(2.0, (200, 0, 0))], audio=i > 0, start=1.0 + 2 * i).read_bytes()
        for i in range(2)
    ]
    both = tmp_path / "both.ts"
    both.write_bytes(b"".join(parts))
    assert len(list(frames(both, 2))) == 8
    assert len(list(frames(both, 2, start=3.0))) == 2


def test_callback_gets_each_frame_once_over_windows(counting: Maker, number: Number) -> None:
    path = counting()
    seen: list[tuple[float, int, int]] = []

    def on_picture(time: float, small: Any) -> None:
        seen.append((round(time * 25), number(small), small.shape[1]))

    list(frames(path, 1, end=1.7, on_picture=on_picture))
    list(frames(path, 1, start=1.7, on_picture=on_picture))
    assert seen == [(k, k, 64) for k in range(100)]


def test_callback_rate_is_limited(make_video: Maker, tmp_path: Path) -> None:
    times: list[float] = []
    path = make_video(tmp_path / "a.mp4", [(2.0, (9, 9, 9))], rate=120)
    list(frames(path, 1, on_picture=lambda t, _: times.append(t)))
    assert len(times) == 60
    assert min(b - a for a, b in pairwise(times)) > 0.03


def test_truncated_file_is_read_to_its_end(make_video: Maker, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("a.mkv", "a.mp4"):
        path = make_video(
            tmp_path / name,
            [(6.0, lambda _: rng.integers(0, 255, (120, 160, 3), np.uint8))],
            audio=True,
            options={"preset": "ultrafast"},
        )
        if name == "a.mp4":
            path = with_index_first(path)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * 0.4)])
        source = frames(path, 2)
        got = list(source)
        assert 3 <= len(got) <= 7
        assert isinstance(source.damage, Damage)
        assert source.damage.expected == pytest.approx(6.0, abs=0.1)
        assert source.damage.readable == source.duration
        assert 1.5 < source.damage.readable < 3.5
        assert str(source.damage).startswith(f"readable until {source.damage.readable:.1f} s of 6.0 s")


def with_index_first(path: Path) -> Path:
    out = path.with_name("first.mp4")
    with av.open(str(path)) as source, av.open(str(out), "w", options={"movflags": "faststart"}) as target:
        copies = {s.index: target.add_stream_from_template(s) for s in source.streams}
        for packet in source.demux():
            if packet.size:
                packet.stream = copies[packet.stream_index]
                target.mux(packet)
    return out


def test_damaged_parts_are_skipped(make_video: Maker, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scene = [(4.0, lambda _: rng.integers(0, 255, (120, 160, 3), np.uint8))]
    path = make_video(tmp_path / "a.mkv", scene, options={"g": "10"})
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = bytes(2000)
    path.write_bytes(data)
    source = frames(path, 5)
    assert len(list(source)) == 20
    assert source.damage is not None
    assert source.damage.skipped > 0


def test_clock_jump_ends_decoding(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", [(1.0, (9, 9, 9))], times=[0.0, 0.04, 0.08, 500_000.0, 500_000.04])
    source = frames(path, 10)
    assert len(list(source)) == 2
    assert source.damage is not None
    assert "clock jumps" in str(source.damage)


def test_stopping_early_closes_the_file(counting: Maker) -> None:
    source = frames(counting(), 5)
    next(source)
    source.close()
    assert list(source) == []
    assert source.damage is None


def test_file_without_decodable_frames(tmp_path: Path, make_video: Maker) -> None:
    path = make_video(tmp_path / "a.mp4", [(1.0, (9, 9, 9))])
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + 4
    data[start : data.index(b"moov")] = bytes(data.index(b"moov") - start)
    path.write_bytes(data)
    with pytest.raises(MediaError, match="none of its pictures"):
        list(frames(path, 1))


def test_rejects_invalid_rates(tmp_path: Path) -> None:
    for rate in (0.0, -1.0, math.nan):
        with pytest.raises(MomentseekError, match="rate > 0"):
            frames(tmp_path / "a.mp4", rate)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.webm", "a.ts", "a.avi"])
def test_hostile_files_give_frames_or_a_media_error(make_video: Maker, tmp_path: Path, name: str) -> None:
    codec = {"a.webm": "libvpx-vp9", "a.avi": "mpeg4"}.get(name, "libx264")
    rng = np.random.default_rng(sum(name.encode()))
    picture = rng.integers(0, 255, (48, 64, 3), np.uint8)
    scenes = [(0.4, picture), (0.4, (9, 200, 9))]
    sound = name != "a.avi"
    good = make_video(tmp_path / name, scenes, size=(64, 48), codec=codec, audio=sound).read_bytes()
    bad = tmp_path / f"bad{Path(name).suffix}"
    outcomes = set()
    for round_ in range(60):
        data = bytearray(good)
        if round_ % 3 == 0:
            data = data[: rng.integers(1, len(data))]
        else:
            for at in rng.integers(0, len(data) if round_ % 3 == 1 else min(600, len(data)), rng.integers(1, 30)):
                data[at] = rng.integers(256)
        bad.write_bytes(data)
        for action in (lambda: probe(bad), lambda: list(frames(bad, 5, short_side=32, on_picture=lambda _t, _s: None))):
            try:
                action()
                outcomes.add("good")
            except MediaError:
                outcomes.add("refused")
    assert outcomes == {"good", "refused"}
