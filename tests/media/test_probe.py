from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from momentseek.core.errors import MediaError
from momentseek.media import probe as module
from momentseek.media.probe import probe, sane_rate
from momentseek.media.sandbox.calls import probe as probe_elsewhere

Maker = Callable[..., Path]


@pytest.mark.parametrize(
    ("name", "codec", "format", "settings"),
    [
        ("a.mp4", "h264", "mov", {}),
        ("a.mkv", "h264", "matroska", {}),
        ("a.webm", "vp9", "matroska", {"codec": "libvpx-vp9"}),
        ("a.avi", "mpeg4", "avi", {"codec": "mpeg4"}),
        ("a.ts", "h264", "mpegts", {}),
        ("a.gif", "gif", "gif", {"codec": "gif", "pix_fmt": "rgb8"}),
        ("a.wmv", "wmv2", "asf", {"codec": "wmv2"}),
    ],
)
def test_containers(make_video: Maker, tmp_path: Path, name: str, codec: str, format: str, settings: dict) -> None:
    found = probe(make_video(tmp_path / name, [(1.6, (200, 0, 0))], **settings))
    assert (found.codec, found.format, found.audio) == (codec, format, False)
    assert (found.width, found.height, found.rotation, found.rate) == (160, 120, 0, 25)
    assert found.duration == pytest.approx(1.6, abs=0.05)


def test_busy_machine_does_not_make_a_file_damaged(
    make_video: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_video(tmp_path / "a.mp4", [(1.6, (200, 0, 0))])
    clock = itertools.count(0.0, 30.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))  # half a minute passes between two packets
    assert probe(path).width == 160


def test_sound_and_container_start(make_video: Maker, tmp_path: Path) -> None:
    found = probe(make_video(tmp_path / "a.mkv", [(2.0, (9, 9, 9))], audio=True, start=5.0))
    assert found.audio
    assert found.start == pytest.approx(5.0, abs=0.03)
    assert found.duration == pytest.approx(2.0, abs=0.05)


def test_recording_time_and_place(make_video: Maker, tmp_path: Path) -> None:
    plain = probe(make_video(tmp_path / "plain.mp4"))
    assert (plain.recorded, plain.place) == (None, None)
    tags = {"creation_time": "2019-03-04T05:06:07Z", "location": "+48.8577+002.2950/"}
    camera = probe(make_video(tmp_path / "camera.mp4", tags=tags))
    assert (camera.recorded, camera.place) == (1551675967.0, (48.8577, 2.295))
    tags["com.apple.quicktime.creationdate"] = "2019-03-04T06:00:00+0200"  # the phone's own clock goes first
    phone = probe(make_video(tmp_path / "phone.mov", tags=tags))
    assert phone.recorded == 1551672000.0
    assert probe_elsewhere(tmp_path / "phone.mov") == phone


def test_pictures_may_end_before_the_sound(make_video: Maker, tmp_path: Path) -> None:
    for name in ("a.mp4", "a.mkv"):
        path = make_video(tmp_path / name, [(1.0, (9, 9, 9))], audio=True, audio_seconds=3.0)
        assert probe(path).duration == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_rotation(make_video: Maker, tmp_path: Path, rotation: int) -> None:
    found = probe(make_video(tmp_path / "a.mp4", [(0.2, (9, 9, 9))], rotation=rotation, size=(96, 160)))
    assert (found.rotation, found.width, found.height) == (rotation, 96, 160)


def test_non_square_pixels(make_video: Maker, tmp_path: Path) -> None:
    found = probe(make_video(tmp_path / "a.mp4", [(0.2, (9, 9, 9))], aspect=Fraction(4, 3), size=(90, 80)))
    assert (found.width, found.height) == (120, 80)


def test_variable_frame_rate_is_averaged(make_video: Maker, tmp_path: Path) -> None:
    assert probe(make_video(tmp_path / "a.mp4", [(4.0, (9, 9, 9))], vfr=True)).rate == 15


@pytest.mark.parametrize("rate", [Fraction(24000, 1001), Fraction(30000, 1001), 24, 50])
def test_standard_rates_are_exact(make_video: Maker, tmp_path: Path, rate: Fraction) -> None:
    path = make_video(tmp_path / "a.mkv", [(3.0, (9, 9, 9))], rate=rate)
    assert probe(path).rate == rate


def test_unusual_rate_is_kept() -> None:
    assert sane_rate(Fraction(37, 2)) == Fraction(37, 2)
    assert sane_rate(Fraction(1, 2000)) > 0


def test_missing_duration_is_found_by_reading(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.h264", [(2.0, (200, 0, 0))])
    assert probe(path).duration == pytest.approx(2.0, abs=0.1)


def test_absurd_duration_is_found_by_reading(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", [(2.0, (200, 0, 0))])
    data = path.read_bytes()
    at = data.index(b"\x44\x89\x88") + 3  # the segment's duration, a double in milliseconds
    path.write_bytes(data[:at] + np.array([1e15], ">f8").tobytes() + data[at + 8 :].replace(b"DURATION", b"DIRATION"))
    assert probe(path).duration == pytest.approx(2.0, abs=0.1)


def write_sound(path: Path, cover: bool = False) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48000, layout="mono")
        picture = container.add_stream("mjpeg", rate=1) if cover else None
        if picture is not None:
            picture.width, picture.height, picture.pix_fmt = 32, 32, "yuvj420p"
            picture.disposition = av.stream.Disposition.attached_pic
            frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), "rgb24")
            frame.pts = 0
            container.mux([*picture.encode(frame), *picture.encode(None)])
        for i in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "flt", "mono")
            frame.sample_rate, frame.pts = 48000, i * 1024
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def picture_file(path: Path, codec: str) -> Path:
    encoder = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.time_base = 32, 32, Fraction(1)
    encoder.pix_fmt = {"mjpeg": "yuvj420p", "png": "rgb24", "libwebp": "yuv420p", "gif": "rgb8"}[codec]
    frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), "rgb24").reformat(format=encoder.pix_fmt)
    frame.pts = 0
    path.write_bytes(b"".join(bytes(p) for p in [*encoder.encode(frame), *encoder.encode(None)]))
    return path


def refused(path: Path | str) -> str:
    with pytest.raises(MediaError) as caught:
        probe(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message.removeprefix(str(path))
    return message


@pytest.mark.parametrize("cover", [False, True])
def test_audio_recording_has_no_size_despite_cover_art(tmp_path: Path, cover: bool) -> None:
    found = probe(write_sound(tmp_path / ("a.mp4" if cover else "a.m4a"), cover=cover))
    assert (found.width, found.height, found.audio) == (0, 0, True)
    assert found.duration > 0


@pytest.mark.parametrize(
    ("codec", "name", "word"), [("mjpeg", "a.jpg", "JPEG"), ("png", "a.png", "PNG"), ("libwebp", "a.webp", "WebP")]
)
def test_rejects_pictures(tmp_path: Path, codec: str, name: str, word: str) -> None:
    assert word in refused(picture_file(tmp_path / name, codec))
    assert word in refused(picture_file(tmp_path / "disguised.mp4", codec))


def test_rejects_still_gif(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.gif", [(0.04, (9, 99, 9))], codec="gif", pix_fmt="rgb8")
    assert "single picture" in refused(path)


def test_rejects_empty_and_non_regular_files(tmp_path: Path) -> None:
    empty = tmp_path / "empty.mp4"
    empty.touch()
    assert "is empty" in refused(empty)
    assert "is a folder" in refused(tmp_path)
    assert "No such file" in refused(tmp_path / "nothing.mp4")
    loop = tmp_path / "loop.mp4"
    loop.symlink_to(loop)
    assert "cannot be read" in refused(loop)
    assert "null" in refused("nothing\0at all.mp4")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_and_devices_never_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    assert "pipe, socket or device" in refused(tmp_path / "pipe.mp4")
    assert "pipe, socket or device" in refused("/dev/zero")


def test_rejects_garbage_and_playlists(tmp_path: Path) -> None:
    noise = tmp_path / "noise.mp4"
    noise.write_bytes(np.random.default_rng(0).bytes(20_000))
    assert "no video that can be read" in refused(noise)
    text = tmp_path / "text.mkv"
    text.write_text("Dear diary, " * 1000)
    assert "video" in refused(text)
    playlist = tmp_path / "list.m3u8"
    playlist.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nhttp://127.0.0.1:9/secret.ts\n#EXT-X-ENDLIST\n")
    assert "is a playlist" in refused(playlist)


def test_scripts_are_not_followed(make_video: Maker, tmp_path: Path) -> None:
    make_video(tmp_path / "other.mp4", [(0.4, (9, 9, 9))])
    script = tmp_path / "script.ffconcat"
    script.write_text("ffconcat version 1.0\nfile other.mp4\n")
    refused(script)


def test_mp4_without_index(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", [(1.0, (9, 9, 9))])
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"moov") - 4])
    assert "without its index" in refused(path)


def test_rejects_huge_pictures(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "wide.mkv", [(0.04, (9, 9, 9))], codec="ffv1", size=(20_000, 2))
    assert "20000 × 2" in refused(path)


def test_rejects_encrypted_video(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", [(0.4, (9, 9, 9))])
    path.write_bytes(path.read_bytes().replace(b"avc1", b"encv"))
    assert "protected" in refused(path)


@pytest.mark.parametrize("name", ["with\nnewline 🎬.mp4", "concat:a|b.mp4", "http:x.mp4", "100%d.mp4", "-i.mp4"])
def test_any_file_name(make_video: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make_video(tmp_path / "a.mp4", [(0.2, (9, 9, 9))]).rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert probe(name).width == 160


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_file_name_that_is_not_unicode(make_video: Maker, tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.mp4")
    make_video(tmp_path / "a.mp4", [(0.2, (9, 9, 9))]).rename(name)
    assert probe(name).width == 160


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
@pytest.mark.parametrize(
    "text",
    [
        "ffconcat version 1.0\nfile other.ts\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nother.ts\n#EXT-X-ENDLIST\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
    ],
    ids=["concat", "hls", "sdp"],
)
def test_scripts_with_non_unicode_names_are_not_followed(
    make_video: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    make_video(tmp_path / "other.ts", [(0.4, (9, 9, 9))])
    script = os.fsdecode(os.fsencode(tmp_path) + b"/cc\xff.mp4")
    Path(script).write_text(text)
    monkeypatch.chdir(tmp_path)
    refused(script)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_whitelist_applies_to_every_name(monkeypatch: pytest.MonkeyPatch, make_video: Maker, tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []
    real = av.open

    def on_picture(*arguments: Any, **settings: Any) -> Any:
        seen.append(settings["options"])
        return real(*arguments, **settings)

    plain = make_video(tmp_path / "a.mp4", [(0.2, (9, 9, 9))])
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mp4")
    Path(odd).write_bytes(plain.read_bytes())
    monkeypatch.setattr(av, "open", on_picture)
    probe(plain)
    probe(odd)
    assert seen[0]["protocol_whitelist"] == "file"
    assert all(options == seen[0] for options in seen)


def test_ffmpeg_prints_nothing(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", [(2.0, (9, 9, 9))])
    data = bytearray(path.read_bytes())
    middle = len(data) // 3
    data[middle : middle + 40] = b"\xaa" * 40
    path.write_bytes(data)
    code = f"from momentseek.media.decode import frames\ntry:\n list(frames({str(path)!r}, 5))\nexcept Exception: pass"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_import_is_fast() -> None:
    code = "import sys, momentseek.media; print('av' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
