"""Quick sampling: the ticks of exact sampling, pictures near them, and exact sampling for unusual files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.media.decode import default_sampling, frames
from momentseek.media.pixels import Pixels
from momentseek.media.quick_sampling import QuickReader, Ticks
from momentseek.media.shots import ShotDetector

Maker = Callable[..., Path]
Number = Callable[[Any], int]

FILES: list[tuple[str, dict[str, Any], str]] = [
    ("a.mp4", {"options": {"bf": "3", "g": "30"}}, "quick"),
    ("a.mp4", {"options": {"bf": "0", "g": "25"}}, "quick"),
    ("a.mp4", {"options": {"g": "1000", "sc_threshold": "0"}}, "quick"),  # one key frame in the whole file
    ("a.mp4", {"options": {"x264-params": "open-gop=1:keyint=20:bframes=3"}}, "quick"),
    ("a.mp4", {"options": {"x264-params": "intra-refresh=1:keyint=20"}}, "quick"),
    ("a.mp4", {"codec": "libx265", "options": {"x265-params": "keyint=25:log-level=none"}}, "quick"),
    ("a.mp4", {"codec": "mpeg4", "options": {"bf": "2", "g": "12", "b": "4000000"}}, "quick"),
    ("a.mkv", {"start": 7.0, "options": {"g": "30"}}, "quick"),
    ("a.ts", {"options": {"g": "30"}}, "quick"),
    ("a.webm", {"codec": "libvpx-vp9", "options": {"g": "30"}}, "quick"),
    ("a.mkv", {"codec": "libsvtav1", "options": {"g": "30", "preset": "12", "svtav1-params": "level=0"}}, "quick"),
    ("a.mkv", {"codec": "mjpeg", "pix_fmt": "yuvj420p"}, "quick"),
    ("a.avi", {"codec": "mpeg4", "options": {"b": "4000000"}}, "exact"),
    ("a.avi", {"options": {"bf": "2", "g": "12"}}, "exact"),
]
RATE = 0.7
NEAR = 0.25 / RATE


@pytest.mark.parametrize(("name", "settings", "sampling"), FILES)
def test_picture_near_every_tick(
    counting: Maker, number: Number, name: str, settings: dict[str, Any], sampling: str
) -> None:
    if settings.get("codec") in ("libx265", "libsvtav1") and settings["codec"] not in av.codecs_available:
        pytest.skip("this encoder is not here")
    path = counting(name, **settings)
    exact, quick = frames(path, RATE), frames(path, RATE, sampling="quick")
    wanted, got = list(exact), list(quick)
    assert [f.time for f in got] == [f.time for f in wanted]
    assert quick.duration == pytest.approx(exact.duration)
    assert quick.damage == exact.damage
    assert quick.sampling in (sampling, "exact")
    for f in got:
        assert -0.24 - 1e-6 <= min(f.time, 3.96) - number(f.pixels) / 25 <= max(NEAR, 0.24) or (
            abs(number(f.pixels) / 25 - f.time) <= NEAR + 0.04
        )


def test_no_artefacts_if_p_frames_refer_to_b_frames(counting: Maker, number: Number) -> None:
    path = counting(options={"x264-params": "bframes=3:b-pyramid=normal:ref=4:keyint=100:scenecut=0", "crf": "23"})
    every = [f.pixels.astype(int) for f in frames(path, 25, phase=0.0)]
    for f in frames(path, 3.1, sampling="quick"):
        assert np.abs(f.pixels.astype(int) - every[number(f.pixels)]).max() <= 8


@pytest.mark.parametrize("at", [0.3, 1.5, 2.0, 3.3])
def test_windows_add_up_to_the_whole_video(counting: Maker, at: float) -> None:
    path = counting(options={"g": "12"})
    whole = list(frames(path, 2.0, sampling="quick"))
    parts = [*frames(path, 2.0, end=at, sampling="quick"), *frames(path, 2.0, start=at, sampling="quick")]
    assert [f.time for f in parts] == [f.time for f in whole]
    assert all((a.pixels == b.pixels).all() for a, b in zip(parts, whole, strict=True))


def test_damage_costs_no_more_than_in_exact_sampling(counting: Maker) -> None:
    path = counting("a.mkv", options={"g": "25"})
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) * 7 // 10] = bytes(len(data) * 7 // 10 - len(data) // 2)
    path.write_bytes(data)
    exact, quick = frames(path, 2.0), frames(path, 2.0, sampling="quick")
    wanted, got = list(exact), list(quick)
    assert [f.time for f in got] == [f.time for f in wanted]
    assert exact.damage is not None
    assert quick.damage is not None
    assert (quick.damage.readable, quick.damage.reason) == (exact.damage.readable, exact.damage.reason)


def test_damaged_key_frame_at_the_start_of_a_window(counting: Maker) -> None:
    path = counting(options={"g": "25", "bf": "0"})
    with av.open(str(path)) as container:
        keys = [(p.pos, p.size) for p in container.demux(video=0) if p.is_keyframe and p.pos is not None]
    data = bytearray(path.read_bytes())
    for place, size in keys[1:]:
        middle = place + size // 2
        data[middle : middle + 20] = bytes(20)
    path.write_bytes(data)
    wanted, got = list(frames(path, 2.0, start=2.0)), list(frames(path, 2.0, start=2.0, sampling="quick"))
    assert [f.time for f in got] == [f.time for f in wanted]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many packets each call of quick sampling decodes."""
    seen: list[int] = []
    plain = QuickReader._decode

    def count(self: QuickReader, some: Any) -> Iterator[Any]:
        seen.append(sum(packet is not None for packet in some))
        return plain(self, some)

    monkeypatch.setattr(QuickReader, "_decode", count)
    return seen


def noise(seed: int) -> Pixels:
    return np.random.default_rng(seed).integers(0, 255, (6, 8, 3), np.uint8).repeat(20, 0).repeat(20, 1)


def test_still_video_decodes_only_key_frames(make_video: Maker, tmp_path: Path, decoded: list[int]) -> None:
    path = make_video(tmp_path / "a.mp4", [(12.0, noise(0))], options={"g": "50", "sc_threshold": "0"})
    assert len(list(frames(path, 2 / 3, sampling="quick"))) == 8
    assert sum(decoded) <= 6 + 50  # the last group has no key frame after it, so nobody knows


def test_finds_a_cut_inside_a_group(make_video: Maker, tmp_path: Path, decoded: list[int]) -> None:
    scenes = [(3.4, noise(0)), (5.0, noise(1)), (3.6, noise(2))]
    path = make_video(tmp_path / "a.mp4", scenes, options={"g": "50", "sc_threshold": "0", "bf": "0"})
    detector = ShotDetector()
    list(frames(path, 2 / 3, on_picture=detector.push, sampling="quick"))
    assert detector.boundaries() == pytest.approx([3.4, 8.4], abs=0.13)
    assert sum(decoded) < 12 * 25


def test_key_frame_of_the_next_shot_is_not_taken(make_video: Maker, tmp_path: Path) -> None:
    scenes = [(7.0, noise(0)), (4.0, noise(1)), (3.0, noise(2))]  # x264 places key frames at cuts; ticks at 6.75, 11.25
    path = make_video(tmp_path / "a.mp4", scenes, options={"g": "250"})
    with av.open(str(path)) as container:
        assert 7.0 in [packet.pts * packet.time_base for packet in container.demux(video=0) if packet.is_keyframe]
    exact, quick = (list(frames(path, 2 / 3, sampling=sampling)) for sampling in ("exact", "quick"))
    for one, other in zip(exact, quick, strict=True):
        assert np.abs(one.pixels.astype(int) - other.pixels).mean() < 12, one.time


def test_movement_between_key_frames_that_show_the_same(make_video: Maker, tmp_path: Path) -> None:
    # a square moves and is back at every key frame: no packet is large, but together they show movement
    def draw(seconds: float) -> Pixels:
        picture = noise(0).copy()
        left = int(120 * abs(math.sin(math.pi * seconds / 3)))
        picture[40:70, left : left + 30] = noise(1)[:30, :30]
        return picture

    path = make_video(tmp_path / "a.mp4", [(12.0, draw)], options={"g": "75", "sc_threshold": "0", "bf": "0"})
    exact, quick = (list(frames(path, 2 / 3, sampling=sampling)) for sampling in ("exact", "quick"))
    for one, other in zip(exact, quick, strict=True):
        assert np.abs(one.pixels.astype(int) - other.pixels).mean() < 5, one.time


@given(st.floats(0.1, 30), st.floats(0, 0.99), st.floats(0, 50))
def test_last_tick_before_a_time(rate: float, phase: float, end: float) -> None:
    ticks = [(k + phase) / rate for k in range(math.ceil(end * rate) + 2)]
    found = Ticks(rate, phase).before(end)
    assert found is None or found < end + 1e-4
    assert not [t for t in ticks if t < end - 1e-4 and (found is None or t > found + 1e-4)]


def test_default_sampling_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOMENTSEEK_SAMPLING", raising=False)
    assert default_sampling() == "exact"
    monkeypatch.setenv("MOMENTSEEK_SAMPLING", "Quick")
    assert default_sampling() == "quick"
    monkeypatch.setenv("MOMENTSEEK_SAMPLING", "fast")
    with pytest.raises(MomentseekError, match="MOMENTSEEK_SAMPLING is 'fast'; set it to exact or quick, or unset it"):
        default_sampling()
