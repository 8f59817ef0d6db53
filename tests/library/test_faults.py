"""What must not happen: a library that is half of something, whatever is killed, full, replaced or broken."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from processes import start_momentseek

from momentseek.core.errors import MomentseekError
from momentseek.library.ingest import batches, run
from momentseek.library.ingest import decoding as reading
from momentseek.library.options import WritePace
from momentseek.library.paths import hold_lock
from momentseek.library.report import AddInterrupted, IngestStep
from momentseek.library.store import LibraryStore

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
Film = Callable[..., Path]
Content = Callable[[LibraryStore], dict[str, Any]]


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(process, signal.SIGKILL)


def run_process(*arguments: object, kill_after: float | None = None) -> int:
    """The exit code of the command in a process of its own; minus 9 if it was killed when its time was over."""
    process = start_momentseek(*arguments, light=True, env={**os.environ, "LIGHT_SLOW": "0.001"})
    timer = threading.Timer(kill_after or 0, _kill, (process.pid,))
    if kill_after is not None:
        timer.start()
    try:
        return process.wait()
    finally:
        timer.cancel()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "sampling"),
    [
        (5, "exact"),
        pytest.param(50, "exact", marks=pytest.mark.figures),
        pytest.param(50, "quick", marks=pytest.mark.figures),
    ],
)
def test_kill_at_any_instant_does_not_change_the_result(
    times: int, sampling: str, tmp_path: Path, film: Film, light: ModuleType, content: Content
) -> None:
    films = tmp_path / "films"
    films.mkdir()
    for i in range(6):
        film(films / f"{i}.mp4", RED, (20 * i, 200, 0), seconds=1 + i % 3)
    film(films / "4-long.mp4", *[RED, GREEN, BLUE] * 4, seconds=2)
    (films / "4-long.srt").write_text(
        "".join(f"{i}\n00:00:{i:02d},000 --> 00:00:{i:02d},900\nLine {i}.\n\n" for i in range(1, 20))
    )
    (films / "bad.mp4").write_bytes(b"none")
    grid = ("--encoder", "colours", "--clip-seconds", "0.5", "--sampling", sampling, "--jobs", 2 if times < 50 else 3)
    whole = tmp_path / "whole"
    begun = time.monotonic()
    assert run_process("add", films, "--library", whole, *grid) == 0
    length = time.monotonic() - begun
    with LibraryStore.open(whole) as library:
        want = content(library)
        assert len(want) == 7
        assert len(want["4-long.mp4"][2]) == 11  # cuts
        assert library.verify().clean

    chance = random.Random(4)
    kills = resumed = 0
    while kills < times:
        folder, before, begun = tmp_path / f"killed-{kills}", kills, time.monotonic()
        while (
            code := run_process("add", films, "--library", folder, *grid, kill_after=chance.uniform(0, length))
        ) != 0:
            assert code == -signal.SIGKILL
            kills += 1
            if not (folder / "catalog.sqlite").exists():
                continue
            try:
                library = LibraryStore.open(folder, create=False)
            except MomentseekError:
                continue  # killed before the catalog's first transaction
            with library:
                resumed += any((folder / "work").glob("*/*.part"))
                assert library.verify().problems == []
                seen = content(library)
                assert seen == {name: want[name] for name in seen}
        if kills == before:  # nothing was killed: the first may have taken far longer, on a busy machine
            length = min(length, time.monotonic() - begun)
        with LibraryStore.open(folder) as library:
            report = library.verify()
            assert report.clean
            assert not any("stopped" in note for note in report.notes)
            assert content(library) == want
            assert [failure.path.name for failure in library.failures()] == ["bad.mp4"]
        shutil.rmtree(folder)
    assert resumed > 0 or times < 50


def test_a_killed_long_video_goes_on_and_says_so(
    tmp_path: Path, library: LibraryStore, film: Film, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = film(tmp_path / "long.mp4", *[RED, GREEN, BLUE] * 7, seconds=3)
    with LibraryStore.open(tmp_path / "whole", create=True, encoder="colours") as whole:
        whole.options = replace(whole.options, pace=WritePace(part_clips=8))
        whole.add(path)
        want = content(whole)
    library.options = replace(library.options, pace=WritePace(part_clips=8))
    real = batches.VideoParts.save

    def save(self: Any, part: int, *rest: Any) -> None:
        real(self, part, *rest)
        if part == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batches.VideoParts, "save", save)
        with pytest.raises(AddInterrupted) as stopped:
            library.add(path)
    assert stopped.value.report.in_library == 0
    assert library.videos() == []
    told: list[Any] = []
    report = library.add(path, progress=told.append)
    assert report.interrupted_before
    assert [(r.at, r.duration) for r in report.resumed] == [(36.0, 63.0)]
    texts = [event.text for event in told if hasattr(event, "text")]
    assert texts == [
        "the last add was interrupted; continuing from there",
        "long.mp4: resumed at 00:00:36 of 00:01:03",
    ]
    assert report.seconds == pytest.approx(27.0)
    assert content(library) == want


def test_a_damaged_part_is_made_again(
    tmp_path: Path, library: LibraryStore, film: Film, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = film(tmp_path / "long.mp4", *[RED, GREEN, BLUE] * 7, seconds=3)
    library.options = replace(library.options, pace=WritePace(part_clips=8))
    with monkeypatch.context() as patch:
        patch.setattr(reading, "decode_video", _interrupted_after(3))
        with pytest.raises(AddInterrupted):
            library.add(path)
    parts = sorted((library.path / "work").glob("*/*.part"))
    assert len(parts) == 3
    whole = parts[1].read_bytes()
    parts[1].write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert library.add(path).resumed[0].at == 12.0
    assert library.verify().clean


def _interrupted_after(parts: int) -> Callable[..., Iterator[Any]]:
    real = reading.decode_video

    def decoded(*arguments: Any) -> Iterator[Any]:
        for event in real(*arguments):
            if isinstance(event, reading.PartEnd) and event.part == parts:
                raise KeyboardInterrupt
            yield event

    return decoded


def test_ctrl_c_keeps_what_is_whole(tmp_path: Path, film: Film) -> None:
    films = tmp_path / "films"
    films.mkdir()
    for i in range(30):
        film(films / f"{i:02d}.mp4", RED, (8 * i, 0, 0), seconds=2)
    words = ("add", films, "--library", tmp_path / "l", "--encoder", "colours")
    process = start_momentseek(*words, light=True, env={**os.environ, "LIGHT_SLOW": "0.1", "LIGHT_PACE": "0.2"})
    while not _videos(tmp_path / "l"):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "what is done is kept. To continue, run: momentseek add" in said
    assert "Traceback" not in said
    kept = _videos(tmp_path / "l")
    assert 0 < kept < 30
    with LibraryStore.open(tmp_path / "l") as library:
        assert library.verify().clean


def test_whoever_keeps_interrupting_loses_no_whole_video(
    tmp_path: Path, library: LibraryStore, film: Film, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server's job does: every report of progress says that it is to stop."""
    monkeypatch.setattr(run, "SECONDS_BETWEEN_STEPS", 0.0)
    films = [film(tmp_path / f"{i}.mp4", RED, (30 * i, 0, 0), seconds=1) for i in range(6)]  # whole in one batch

    def interrupt(event: object) -> None:
        if isinstance(event, IngestStep) and event.files:
            raise KeyboardInterrupt

    with pytest.raises(AddInterrupted) as stopped:
        library.add(films, progress=interrupt)
    assert stopped.value.report.added == len(library.videos()) > 1


def _videos(folder: Path) -> int:
    try:
        with LibraryStore.open(folder, create=False) as library:
            return len(library.videos())
    except MomentseekError:
        return 0


ODD = ("cut", "zero", "tiny", "sound", "pipe", "nowhere", "line\nbreak 🎬", "socket")


def test_odd_files_are_reported_and_none_is_fatal_or_lost(
    tmp_path: Path, library: LibraryStore, film: Film, make_video: Film
) -> None:
    import av
    import numpy as np

    films = tmp_path / "films"
    films.mkdir()
    film(films / "good.mp4", RED)
    whole = film(tmp_path / "whole.mp4", RED, BLUE).read_bytes()
    (films / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (films / "zero.mp4").touch()
    make_video(films / "tiny.mkv", [(2.0, RED)], rate=5, size=(1, 1), codec="ffv1", pix_fmt="bgr0")
    with av.open(str(films / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=48000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 48000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    os.mkfifo(films / "pipe.mp4")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(films)
        server.bind("socket.mp4")
        os.chdir(here)
    (films / "nowhere.mp4").symlink_to(films / "nowhere.mp4")
    (films / "loop").symlink_to(films)
    film(films / "line\nbreak 🎬.mp4", GREEN)
    raw = Path(os.fsdecode(os.fsencode(films) + b"/caf\xe9.mp4"))
    shutil.copy(film(tmp_path / "x.mp4", BLUE), raw)
    film(films / "garbage.mp4", BLUE, GREEN)
    with (films / "garbage.srt").open("wb") as file:
        chance = random.Random(1)
        for _ in range(50):
            file.write(chance.randbytes(1_000_000))
    report = library.add(films)
    failed = {failure.path.name: failure.reason for failure in report.failed}
    assert set(failed) == {"cut.mp4", "zero.mp4", "pipe.mp4", "socket.mp4", "nowhere.mp4"}
    assert failed["pipe.mp4"] == "is a pipe, not a file"
    assert failed["nowhere.mp4"] == "is a link that leads nowhere"
    names = {video.name: video for video in library.videos()}
    assert set(names) == {"good.mp4", "tiny.mkv", "sound.mp4", "line\nbreak 🎬.mp4", "caf\ufffd.mp4", "garbage.mp4"}
    assert names["tiny.mkv"].clips == 2
    assert names["caf\ufffd.mp4"].path == raw
    assert "garbage.srt" in names["garbage.mp4"].notes[0]
    assert {failure.path.name for failure in library.failures()} == set(failed)
    assert library.verify().clean
    again = library.add(films)
    assert (again.unchanged, again.added) == (6, 0)


def test_a_file_replaced_while_it_is_read_is_not_mixed(
    tmp_path: Path, library: LibraryStore, films: Path, film: Film, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = film(tmp_path / "other.mp4", BLUE, BLUE, BLUE)
    real = reading.PartReader.clips

    def clips(self: Any, clock: Any) -> Iterator[Any]:
        for at, pixels in enumerate(real(self, clock)):
            yield pixels
            if at == 1 and self.job.file.name == "a.mp4":
                os.replace(other, films / "a.mp4")

    with monkeypatch.context() as patch:
        patch.setattr(reading.PartReader, "clips", clips)
        report = library.add(films)
    assert [(f.path.name, f.reason) for f in report.failed] == [("a.mp4", reading.FILE_CHANGED)]
    assert [video.name for video in library.videos()] == ["b.mp4", "deep/c.mkv"]
    report = library.add(films)
    assert (report.added, report.failed) == (1, [])
    video = next(v for v in library.videos() if v.path == films / "a.mp4")
    assert video is not None
    assert video.clips == 6
    assert library.failures() == []
    assert library.verify().clean


def test_a_file_that_grows_while_it_is_hashed_is_left_for_later(
    library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reading.content_hash

    def hash_and_grow(path: Path) -> str:
        found = real(path)
        if path.name == "b.mp4":
            with Path(path).open("ab") as file:
                file.write(b"\0" * 10)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(reading, "content_hash", hash_and_grow)
        report = library.add(films)
    assert [f.path.name for f in report.failed] == ["b.mp4"]
    assert library.add(films).added == 1


def test_unexpected_error_in_one_file_does_not_affect_others(
    library: LibraryStore, films: Path, misbehave: Callable[[str], None]
) -> None:
    misbehave("if name.endswith('a.mp4'): raise ZeroDivisionError('in a decoder')")
    report = library.add(films)
    assert report.added == 2
    assert report.failed[0].reason == "cannot be read (ZeroDivisionError: in a decoder)"


MISBEHAVIOUR = """
if name.endswith("a.mp4"):
    import ctypes
    ctypes.string_at(0)
if name.endswith("b.mp4"):
    import ctypes
    ctypes.PyDLL(None).sleep(1000)  # never lets go of the interpreter, so only a signal ends it
if name.endswith("hungry.mp4"):
    more = bytearray(2**33)
"""


def test_a_crash_a_hang_and_a_memory_bomb_cost_one_file_each(
    library: LibraryStore,
    films: Path,
    film: Film,
    misbehave: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    film(films / "hungry.mp4", GREEN)
    misbehave(MISBEHAVIOUR)
    monkeypatch.setenv("MOMENTSEEK_DECODE_SECONDS", "5")
    monkeypatch.setenv("MOMENTSEEK_DECODE_GIGABYTES", "0.5")
    report = library.add(films)
    failed = {failure.path.name: failure.reason for failure in report.failed}
    assert failed == {
        "a.mp4": "crashes the decoder (SIGSEGV); convert it, or get another copy",
        "b.mp4": "decoding it made no progress for 5 seconds and was given up; convert it",
        "hungry.mp4": "its pictures take more memory than decoding may have; make a smaller copy, or allow more "
        "(MOMENTSEEK_DECODE_GIGABYTES)",
    }
    assert report.added == 1
    assert [video.name for video in library.videos()] == ["deep/c.mkv"]
    assert {failure.path.name for failure in library.failures()} == set(failed)
    assert library.verify().clean


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


@pytest.mark.skipif(shutil.which("mount") is None, reason="no mount")
def test_full_disk_is_reported_and_library_stays_intact(
    tmp_path: Path, light: ModuleType, films: Path, film: Film, content: Content
) -> None:
    folder = tmp_path / "disk" / "library"
    with small_disk(tmp_path / "disk", "1m"), LibraryStore.open(folder, create=True, encoder="colours") as library:
        library.add(films / "a.mp4")
        before = content(library)
        filler = tmp_path / "disk" / "filler"
        _fill(filler)
        with pytest.raises(MomentseekError, match=r"full|make room"):
            library.add(films)
        assert content(library) == before
        assert library.verify().clean
        filler.unlink()
        report = library.add(films)
        assert (report.added, report.unchanged) == (2, 1)
        assert library.verify().clean


def test_a_quota_is_said_and_the_library_stays_whole(
    tmp_path: Path, films: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """No file may grow beyond 100 kB: the catalog's log hits that first."""
    folder = tmp_path / "library"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # noqa: E731
    assert command("add", films / "b.mp4", "--library", folder, "--encoder", "colours").returncode == 0
    lines = (" ".join(f"word{i}x{j}" for j in range(200)) for i in range(90))
    cues = "".join(f"{i}\n00:00:01,{i:03d} --> 00:00:02,{i:03d}\n{line}\n\n" for i, line in enumerate(lines))
    (films / "a.srt").write_text(cues)
    done = command("add", films, "--library", folder, preexec_fn=limit)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    with LibraryStore.open(folder) as library:
        assert [video.name for video in library.videos()] == ["b.mp4"]
        assert library.verify().clean
    assert command("add", films, "--library", folder).returncode == 0
    with LibraryStore.open(folder) as library:
        assert len(library.videos()) == 3


def test_a_second_adder_is_refused_by_name_or_waits(library: LibraryStore, films: Path) -> None:
    with hold_lock(library.path), LibraryStore.open(library.path) as other:
        with pytest.raises(MomentseekError, match=rf"process {os.getpid()} .*wait=600"):
            other.add(films)
        release = threading.Event()
    with LibraryStore.open(library.path, wait=20) as other:
        with hold_lock(library.path):
            done = threading.Thread(target=lambda: (other.add(films), release.set()))
            done.start()
            assert not release.wait(0.3)
        done.join()
    assert len(library.videos()) == 3


def test_readers_see_only_whole_videos_while_another_process_adds(
    tmp_path: Path, film: Film, light: ModuleType
) -> None:
    films = tmp_path / "films"
    films.mkdir()
    for i in range(24):
        film(films / f"{i:02d}.mp4", RED, (9 * i, 0, 0), seconds=2)
    folder = tmp_path / "library"
    LibraryStore.open(folder, create=True, encoder="colours").close()
    codes: list[int] = []
    adding = threading.Thread(target=lambda: codes.append(run_process("add", films, "--library", folder)))
    seen: list[set[int]] = [set(), set()]
    problems: list[str] = []

    def read(at: int) -> None:
        with LibraryStore.open(folder) as library:
            while adding.is_alive():
                state = library.snapshot()
                ids = {int(id) for segment in state.vision for id in segment.ids}
                rows = sum(segment.rows for segment in state.vision)
                if rows != 3 * len(ids):
                    problems.append(f"{rows} rows of {len(ids)} videos")
                seen[at].add(len(ids))
                time.sleep(0.002)

    adding.start()
    readers = [threading.Thread(target=read, args=(at,)) for at in (0, 1)]
    for reader_ in readers:
        reader_.start()
    for thread in (*readers, adding):
        thread.join()
    assert codes == [0]
    assert problems == []
    assert max(map(len, seen)) > 1
    with LibraryStore.open(folder) as library:
        assert len(library.videos()) == 24
        assert len(library.catalog.segments("vision")) < 8


@pytest.mark.parametrize("log", [False, True])
def test_with_no_byte_free_a_library_is_read(
    log: bool, tmp_path: Path, library: LibraryStore, films: Path, command: Callable[..., Any]
) -> None:
    library.add(films)
    folder = library.path
    if log:  # as a process that was killed leaves it, its last change only in the log
        folder = tmp_path / "copied"
        library.remove("a.mp4")
        shutil.copytree(library.path, folder)
        (folder / "catalog.sqlite-shm").unlink()
        assert (folder / "catalog.sqlite-wal").stat().st_size
    library.close()
    none = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # noqa: E731
    for words in (("search", "blue"), ("list",), ("verify",), ("status",)):
        done = command(*words, "--library", folder, preexec_fn=none)
        assert done.returncode == 0, done.stderr
        assert "b.mp4" in done.stdout or words[0] in ("verify", "status")
        assert ("a.mp4" in done.stdout) == (words[0] in ("search", "list") and not log)
    assert "were not checked" in command("verify", "--library", folder, preexec_fn=none).stdout
    done = command("compact", "--library", folder, preexec_fn=none)
    assert done.returncode == 2
    assert "make room" in done.stderr
    assert command("verify", "--library", folder).returncode == 0


def test_a_reader_on_a_full_disk_sees_what_is_written_once_there_is_room(library: LibraryStore, films: Path) -> None:
    library.add(films / "b.mp4")
    library.close()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        reader = LibraryStore.open(library.path, create=False)
        assert reader.catalog.read_only
        assert len(reader.snapshot().vision) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    with reader, LibraryStore.open(library.path) as writer:
        writer.add(films)
        assert sum(len(segment.ids) for segment in reader.snapshot().vision) == 3
        assert not reader.catalog.read_only


def test_compacting_on_a_full_disk_calls_nothing_damaged(
    library: LibraryStore, films: Path, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    library.remove("a.mp4")
    want = content(library)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("momentseek.library.segments.flush_file", full)
        with pytest.raises(MomentseekError, match=r"cannot be written.*No space left.*make room") as said:
            library.compact()
        assert "damaged" not in str(said.value)
    assert library.verify().clean
    assert content(library) == want
    assert library.compact().videos == 1
    assert content(library) == want


def test_a_file_that_may_not_be_read_now_is_not_taken_for_damaged(
    library: LibraryStore, films: Path, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    library.remove("a.mp4")
    want = content(library)

    def refuse(path: Path) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    with monkeypatch.context() as patch:
        patch.setattr("momentseek.library.segments.read_or_map", refuse)
        for do in (library.compact, library.verify, lambda: library.verify(repair=True)):
            with pytest.raises(MomentseekError, match=r"cannot be read now.*Too many open files"):
                do()
    assert content(library) == want
    assert library.verify().clean
