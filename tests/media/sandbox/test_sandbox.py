"""The decoding process: it gives the same results, and can neither harm nor outlive its program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.pinned_file import FileChangedError, PinnedFile
from momentseek.media import cut, decode, probe
from momentseek.media.container import MAX_EMPTY_PACKETS, DecodingBudget, packets, set_budget
from momentseek.media.decode import sound
from momentseek.media.sandbox import calls as sandbox
from momentseek.media.sandbox.process import SandboxLimits, close_idle
from momentseek.media.shots import ShotDetector
from momentseek.media.subtitles.find import cues_of

Video = Callable[..., Path]


@pytest.fixture(autouse=True)
def _no_processes_left() -> Iterator[None]:
    yield
    close_idle()


def _same_frames(path: Path, **settings: Any) -> None:
    detector = ShotDetector()
    here, there = (
        decode.frames(path, 2.0, on_picture=detector.push, **settings),
        sandbox.frames(path, 2.0, shots=True, **settings),
    )
    for one, other in zip(here, there, strict=True):
        assert one.time == other.time
        assert np.array_equal(one.pixels, other.pixels)
    assert (there.duration, there.damage, list(there.shots)) == (here.duration, here.damage, detector.boundaries())


def test_results_are_bit_identical_to_this_process(counting: Video, tmp_path: Path) -> None:
    path = counting("a.mp4", audio=True)
    assert sandbox.probe(path) == probe.probe(path)
    _same_frames(path, short_side=50)
    _same_frames(path, start=1.2, end=3.0)
    assert sandbox.thumbnail(path, 1.0, 64) == decode.thumbnail(path, 1.0, 64)
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nGrüße\n")
    assert sandbox.cues_of(path, duration=4.0) == cues_of(path, duration=4.0)
    assert np.array_equal(np.concatenate(list(sandbox.sound(path))), np.concatenate(list(sound(path))))
    made = sandbox.cut(path, 1.0, 2.0, tmp_path / "one.mp4")
    assert made == cut.cut(path, 1.0, 2.0, tmp_path / "one.mp4")
    assert sorted(os.listdir(tmp_path)) == ["a.mp4", "a.srt", "one.mp4"]


def test_real_videos_decode_identically(data: Path) -> None:
    for name in ("r047.avi", "r055.mkv"):
        _same_frames(data / "real-videos" / "videos" / name, end=4.0, short_side=64)


def test_damage_is_reported_identically(counting: Video, tmp_path: Path) -> None:
    whole = counting("a.mkv", audio=True).read_bytes()
    (tmp_path / "half.mkv").write_bytes(whole[: len(whole) // 2])
    _same_frames(tmp_path / "half.mkv")
    (tmp_path / "none.mp4").write_bytes(b"nothing")
    for call in (sandbox.probe, probe.probe):
        with pytest.raises(MediaError, match=re.escape(f"{tmp_path / 'none.mp4'}: is no video that can be read")):
            call(tmp_path / "none.mp4")
    with pytest.raises(MomentseekError, match="the start must lie in the video"):
        sandbox.cut(tmp_path / "half.mkv", 50.0, 60.0, tmp_path / "x.mp4")


def test_non_unicode_name_is_passed_on(counting: Video, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.mp4"))
    counting("a.mp4").rename(odd)
    assert sandbox.probe(odd).path == odd


def test_pinned_file_is_read_or_refused(counting: Video) -> None:
    path = counting("a.mp4")
    state = path.stat()
    whole = PinnedFile(path, state.st_size, state.st_mtime_ns)
    assert sandbox.probe(whole).duration == 4.0
    with pytest.raises(FileChangedError, match="has changed since it was added"):
        next(sandbox.frames(PinnedFile(path, 1, 1), 1.0))
    link = path.with_name("link.mp4")
    link.symlink_to(path)
    with pytest.raises(FileChangedError, match="links are not followed"):
        sandbox.thumbnail(PinnedFile(link), 0.0)


def test_process_is_reused_and_replaced_after_a_crash(counting: Video, misbehave: Callable[[str], None]) -> None:
    misbehave("if name.endswith('bad.mp4'): __import__('os').abort()")
    good, bad = counting("good.mp4"), counting("bad.mp4", seconds=0.2)
    first = _workers(good)
    assert _workers(good) == first
    for call in (sandbox.probe, lambda p: sandbox.thumbnail(p, 0.0), lambda p: next(sandbox.frames(p, 1.0))):
        with pytest.raises(MediaError, match=r"bad.mp4: crashes the decoder \(SIGABRT\); convert it"):
            call(bad)
    target = bad.with_name("clip.mp4")
    with pytest.raises(MediaError, match="crashes the decoder"):
        sandbox.cut(bad, 0.0, 0.1, target)
    assert sorted(os.listdir(bad.parent)) == ["bad.mp4", "good.mp4", "misbehaviour"]
    assert _workers(good) != first


def _workers(path: Path) -> list[str]:
    """Return the decoding processes of this one, after it has run a task."""
    sandbox.probe(path)
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    found = [child for file in listed for child in file.read_text().split()]
    return [child for child in found if b"sandbox.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_closing_frames_ends_their_process(counting: Video) -> None:
    path = counting("a.mp4")
    source = sandbox.frames(path, 25.0)
    next(source)
    source.close()
    assert next(source, None) is None
    assert sandbox.probe(path).duration == 4.0


PROGRAM = """
import sys, time
from momentseek.media.sandbox import calls as sandbox
if __name__ == "__main__":
    frames = sandbox.frames(sys.argv[1], 1000.0)
    next(frames)
    print("going", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_process_ends_with_its_program(counting: Video, tmp_path: Path, how: signal.Signals) -> None:
    path = counting("a.mp4")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"going\n"
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    assert len(children) == 1
    program.send_signal(how)
    program.wait(10)
    program.stdout.close()
    deadline = time.monotonic() + 10
    while _is_running(children[0]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_running(children[0])


def _is_running(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SandboxLimits.from_environment() == SandboxLimits(4.0, 60.0)
    monkeypatch.setenv("MOMENTSEEK_DECODE_GIGABYTES", "1.5")
    assert SandboxLimits.from_environment().gigabytes == 1.5
    for bad in ("many", "-1", "0", "nan", "inf"):
        monkeypatch.setenv("MOMENTSEEK_DECODE_SECONDS", bad)
        with pytest.raises(MomentseekError, match=r"MOMENTSEEK_DECODE_SECONDS is .*; set it to a number above 0"):
            SandboxLimits.from_environment()


def test_gives_up_on_a_file_read_in_circles() -> None:
    class Circle:
        name, size = "round.mp4", 10

        def demux(self, _: object) -> Iterator[int]:
            yield from range(10 + 2 * MAX_EMPTY_PACKETS)

    with pytest.raises(MediaError, match=r"round.mp4: is read in circles"):
        list(packets(Circle(), []))  # type: ignore[arg-type]


def _picture_bomb(path: Path, side: int, pictures: int, seconds: float) -> Path:
    """Make a small file of large pictures: PNG compresses empty ones to almost nothing."""
    import av

    with av.open(str(path), "w") as out:
        stream = out.add_stream("png", rate=30)
        stream.width = stream.height = side
        stream.pix_fmt = "rgb24"
        frame = av.VideoFrame.from_ndarray(np.zeros((side, side, 3), np.uint8), "rgb24")
        frame.pts = 0
        packet = stream.encode(frame)[0]
        for at in range(pictures):
            copy = av.Packet(bytes(packet))
            copy.stream, copy.time_base = stream, packet.time_base
            copy.pts = copy.dts = round(at * seconds / pictures / packet.time_base)
            copy.is_keyframe = True
            out.mux(copy)
    return path


def test_gives_up_on_a_file_over_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _picture_bomb(tmp_path / "bomb.mov", 3000, 30, 1.0)
    assert path.stat().st_size < 2_000_000
    assert len(list(sandbox.frames(path, 2.0))) == 2
    monkeypatch.setenv("MOMENTSEEK_DECODE_EFFORT", "0.1")
    begun = time.monotonic()
    with pytest.raises(MediaError, match=r"took more than 0\.\d s of processor time \(0\.1 a second.*DECODE_EFFORT"):
        list(sandbox.frames(path, 2.0))
    assert time.monotonic() - begun < 60


def test_declared_length_does_not_raise_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("momentseek.media.container.MAX_PIXEL_RATE", 100_000)
    short, long = (_picture_bomb(tmp_path / f"{n}.mov", 100, 30, n) for n in (1.0, 100.0))
    try:
        set_budget(DecodingBudget())
        with pytest.raises(MediaError, match=r"more than 100,000 pixels a second of video; make a smaller copy"):
            list(decode.frames(short, 1.0))
        set_budget(DecodingBudget())
        assert len(list(decode.frames(long, 1.0))) > 90
    finally:
        set_budget(None)
