from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.media.cut import cut
from momentseek.media.decode import frames
from momentseek.media.probe import Probe, probe

Maker = Callable[..., Path]
Number = Callable[[Any], int]


def numbers(path: Path, number: Number, phase: float = 0.5) -> list[int]:
    return [number(f.pixels) for f in frames(path, 25, phase=phase)]


def sound(path: Path) -> np.ndarray:
    """Return all samples at 48 kHz, placed by their time stamps from the container's start."""
    with av.open(str(path)) as container:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=48000)
        zero = (container.start_time or 0) / 1e6
        pieces = [p for f in container.decode(audio=0) for p in resampler.resample(f)]
        wave = np.zeros(48000 * 8, np.float32)
        for piece in pieces:
            at = round((float(piece.pts * piece.time_base) - zero) * 48000)
            samples = piece.to_ndarray()[0]
            wave[max(0, at) : max(0, at) + len(samples[max(0, -at) :])] = samples[max(0, -at) :]
        return wave


def clicks(wave: np.ndarray) -> list[float]:
    loud = np.flatnonzero(np.abs(wave) > 0.4) / 48000
    return [float(t) for i, t in enumerate(loud) if i == 0 or t - loud[i - 1] > 0.5]


@pytest.mark.parametrize("out", ["clip.mp4", "clip.mkv", "clip.mov", "clip.webm"])
@pytest.mark.parametrize(
    ("name", "settings"), [("a.mp4", {}), ("a.mkv", {"start": 7.0}), ("a.webm", {"codec": "libvpx-vp9"})]
)
def test_exact_cut(counting: Maker, number: Number, tmp_path: Path, out: str, name: str, settings: Any) -> None:
    source = counting(name, audio=True, **settings)
    made = cut(source, 1.2, 2.76, tmp_path / out)
    assert (made.path, made.start, made.end) == (tmp_path / out, 1.2, 2.76)
    assert made.frames == 39
    assert abs(made.duration - 1.56) <= 0.04
    found = probe(made.path)
    assert found.audio
    assert abs(found.duration - 1.56) <= 0.04
    assert numbers(made.path, number) == list(range(30, 69))


def test_packed_b_frames_keep_the_frame_rate(packed_avi: Path, number: Number, tmp_path: Path) -> None:
    made = cut(packed_avi, 1.0, 3.0, tmp_path / "clip.mp4")
    assert made.frames == 50
    assert probe(made.path).rate == 25
    assert numbers(made.path, number) == list(range(24, 74))  # an AVI's first picture is shown one frame late


def test_cut_between_two_frames(counting: Maker, number: Number, tmp_path: Path) -> None:
    made = cut(counting(), 1.01, 1.99, tmp_path / "clip.mp4")
    got = numbers(made.path, number, phase=0.0)
    assert got[0] == 25
    assert got[-1] == 49
    assert abs(made.duration - 0.98) <= 0.04


def test_sound_stays_in_sync(counting: Maker, tmp_path: Path) -> None:
    source = counting("a.mp4", audio=True)
    assert clicks(sound(source)) == pytest.approx([0, 1, 2, 3], abs=0.004)
    made = cut(source, 0.7, 3.3, tmp_path / "clip.mp4")
    assert clicks(sound(made.path)) == pytest.approx([0.3, 1.3, 2.3], abs=0.004)


def test_sound_that_begins_late_or_ends_early(counting: Maker, tmp_path: Path) -> None:
    source = counting("a.mkv", audio=True, audio_seconds=1.5)
    made = cut(source, 0.5, 3.0, tmp_path / "clip.mp4")
    assert clicks(sound(made.path)) == pytest.approx([0.5], abs=0.004)
    assert abs(made.duration - 2.5) <= 0.04


def test_variable_frame_rate(counting: Maker, number: Number, tmp_path: Path) -> None:
    source = counting("a.mp4", vfr=True)
    made = cut(source, 1.0, 3.0, tmp_path / "clip.mp4")
    assert numbers(made.path, number) == [number(f.pixels) for f in frames(source, 25, start=1.0, end=3.0)]
    assert abs(made.duration - 2.0) <= 0.07


def test_cut_at_the_end_of_the_video(counting: Maker, number: Number, tmp_path: Path) -> None:
    made = cut(counting(audio=True), 3.9, 99.0, tmp_path / "clip.mp4")
    assert numbers(made.path, number, phase=0.0) == [97, 98, 99]
    assert made.end == pytest.approx(4.0)


def test_padding(counting: Maker, tmp_path: Path) -> None:
    made = cut(counting(), 0.4, 2.0, tmp_path / "clip.mp4", pad=1.0)
    assert (made.start, made.end) == (0.0, 3.0)
    assert abs(made.duration - 3.0) <= 0.04


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_rotated_sources(make_video: Maker, tmp_path: Path, rotation: int, exact: bool) -> None:
    picture = np.zeros((120, 160, 3), np.uint8)
    picture[:60, :80] = (250, 0, 0)
    picture[60:, :80] = (0, 0, 250)
    source = make_video(tmp_path / "a.mp4", [(1.0, picture)], rotation=rotation)
    made = cut(source, 0.2, 0.6, tmp_path / "clip.mp4", exact=exact)
    got = next(frames(made.path, 5))
    assert got.pixels.shape == (120, 160, 3)
    np.testing.assert_allclose(got.pixels[30, 40], (250, 0, 0), atol=15)
    np.testing.assert_allclose(got.pixels[90, 40], (0, 0, 250), atol=15)


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"size": (161, 121), "codec": "ffv1"}, (160, 120)),
        ({"size": (1, 1), "codec": "ffv1"}, (2, 2)),
        ({"pix_fmt": "yuv420p10le", "codec": "ffv1"}, (160, 120)),
        ({"size": (90, 80), "aspect": Fraction(4, 3)}, (120, 80)),
    ],
)
def test_unusual_sources(make_video: Maker, tmp_path: Path, settings: Any, size: tuple[int, int]) -> None:
    source = make_video(tmp_path / "a.mkv", [(1.0, (9, 200, 9)), (1.0, (200, 9, 9))], **settings)
    made = cut(source, 0.5, 1.5, tmp_path / "clip.mp4")
    found = probe(made.path)
    assert (found.width, found.height) == size
    first, last = (f.pixels[0, 0] for f in frames(made.path, 2, end=1.0))
    np.testing.assert_allclose(first, (9, 200, 9), atol=8)
    np.testing.assert_allclose(last, (200, 9, 9), atol=8)


@pytest.mark.parametrize(
    ("name", "out"), [("a.mp4", "c.mp4"), ("a.mp4", "c.mkv"), ("a.ts", "c.mp4"), ("a.mkv", "c.mov")]
)
def test_fast_cut(counting: Maker, number: Number, tmp_path: Path, name: str, out: str) -> None:
    options = {"g": "25", "keyint_min": "25", "sc_threshold": "0"}
    source = counting(name, audio=True, options=options)
    made = cut(source, 1.6, 2.8, tmp_path / out, exact=False)
    offset = 0.0 if name != "a.ts" else made.start - 1.0
    assert made.start == pytest.approx(1.0 + offset)
    assert made.end >= 2.8
    assert made.duration >= 2.8 - made.start
    got = numbers(made.path, number)
    assert got[:45] == list(range(25, 70))
    assert probe(made.path).audio


def test_refused_cut_leaves_no_file(counting: Maker, tmp_path: Path, monkeypatch: Any) -> None:
    source = counting()
    folder = tmp_path / "out"
    folder.mkdir()
    for start, end, out, word in (
        (2.0, 2.0, folder / "a.mp4", "before the end"),
        (9.0, 12.0, folder / "a.mp4", "must lie in the video"),
        (1.0, 2.0, folder / "a.xyz", ".mp4, .mov, .mkv, .webm"),
        (1.0, 2.0, source, "the video itself"),
        (1.0, 2.0, folder, ".mp4"),
        (1.0, 2.0, folder / "none" / "a.mp4", "cannot be written"),
    ):
        before = source.read_bytes()
        with pytest.raises(MomentseekError, match=word.replace(".", r"\.")):
            cut(source, start, end, out)
        assert source.read_bytes() == before
    with pytest.raises(MomentseekError, match="cannot be written"):
        cut(source, 1.0, 2.0, folder / "a.webm", exact=False)
    monkeypatch.setattr(import_module("momentseek.media.cut"), "probe", lying(source))
    with pytest.raises(MediaError, match="was not kept"):
        cut(source, 1.0, 9.0, folder / "a.mp4")
    assert list(folder.iterdir()) == []


def lying(source: Path) -> Callable[[Path], Probe]:
    """Make the probe report twice the real duration, as for a truncated file."""
    from dataclasses import replace

    def look(path: Path) -> Probe:
        found = probe(path)
        return replace(found, duration=8.0) if path == source else found

    return look


def test_undecodable_sound_is_left_out(counting: Maker, number: Number, tmp_path: Path) -> None:
    source = counting(audio=True)
    source.write_bytes(source.read_bytes().replace(b"mp4a", b"zzzz").replace(b"esds", b"zzzz"))
    for exact in (True, False):
        made = cut(source, 1.0, 2.0, tmp_path / "clip.mp4", exact=exact)
        assert made.frames >= 25
        assert not probe(made.path).audio


def test_replaces_an_existing_clip(counting: Maker, tmp_path: Path) -> None:
    out = tmp_path / "clip.mp4"
    out.write_text("older")
    cut(counting(), 1.0, 2.0, out)
    assert probe(out).width == 160
