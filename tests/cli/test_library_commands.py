"""The library's commands, end to end."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.cli.ingesting import IngestLines, step_lines
from momentseek.core.errors import MomentseekError
from momentseek.library.report import AddInterrupted, AddReport, IngestNote, IngestStep
from momentseek.library.store import LibraryStore

LIGHT = Path(__file__).parent.parent / "library" / "light.py"
RED, BLUE = (220, 20, 20), (20, 20, 220)
Run = Callable[..., "Done"]


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``momentseek`` with trivial encoders, on the test's own library."""
    from momentseek.recognition.encoders import registry

    monkeypatch.setenv("MOMENTSEEK_LIBRARY", str(tmp_path / "library"))
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    runpy.run_path(str(LIGHT))["install"]()

    def command(*arguments: object) -> Done:
        result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
        if isinstance(result.exception, MomentseekError):
            return Done(result.exception.exit_code, result.stdout, f"{result.stderr}momentseek: {result.exception}\n")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return command


@pytest.fixture
def films(tmp_path: Path, make_video: Callable[..., Path]) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    for name, colour in (("red.mp4", RED), ("blue\n🎬.mp4", BLUE)):
        make_video(folder / name, [(3.0, colour)], rate=5, size=(64, 48))
    (folder / "red.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nLook, red!\n")
    return folder


def test_life_cycle_of_a_library(run: Run, films: Path) -> None:
    (films / "zero.mp4").touch()
    added = run("add", films, "--encoder", "colours")
    assert added.returncode == 0
    assert added.stdout == ""
    assert "failed: zero.mp4: is empty; get another copy" in added.stderr
    assert "2 videos added, 1 failed; 00:00:06 of video" in added.stderr

    status = run("status").stdout
    assert "videos    2 (00:00:06)" in status
    assert "failed    1 file (momentseek status --failed)" in status
    assert f"{films}/zero.mp4: is empty; get another copy" in run("status", "--failed").stdout
    assert json.loads(run("status", "--json").stdout)["clips"] == 4
    assert json.loads(run("status", "--failed", "--json").stdout)[0]["tries"] == 1

    table = run("list").stdout.splitlines()
    assert table[0].split() == ["name", "length", "size", "clips", "cues", "shots"]
    assert table[1].startswith("blue\\n🎬.mp4")
    listed = json.loads(run("list", "RED*", "--json").stdout)
    assert [(video["name"], video["cues"], video["rate"]) for video in listed] == [("red.mp4", 1, "5")]

    again = run("add", films, "--json")
    assert json.loads(again.stdout)["unchanged"] == 2
    assert "2 videos unchanged, 1 failed before" in again.stderr

    (films / "zero.mp4").unlink()
    assert "0 videos added" in run("retry").stderr

    assert run("remove", "red*").returncode == 2  # nobody to ask
    assert "would be removed" in run("remove", "red*", "--dry-run").stderr
    assert json.loads(run("remove", "red*", "--yes", "--json").stdout)["removed"] == [str(films / "red.mp4")]
    compacted = run("compact", "--json")
    assert json.loads(compacted.stdout)["videos"] == 1
    verified = run("verify")
    assert verified.returncode == 0
    assert "checked 1 video, 1 segment, 2 rows, 0 cues: nothing wrong" in verified.stderr

    assert "the same" not in run("reencode", "--encoder", "colours-2").stderr
    assert "colours" in run("status").stdout
    refused = run("add", films, "--encoder", "colours")
    assert refused.returncode == 2
    assert "momentseek reencode --library" in refused.stderr


def test_reports_unusable_subtitles(run: Run, films: Path) -> None:
    (films / "red.srt").write_bytes(b"\0\1\2" * 50)
    added = run("add", films, "--encoder", "colours", "--quiet", "--json")
    assert f"note: red.mp4: {films}/red.srt: " in added.stderr
    report = json.loads(added.stdout)
    assert [noted["path"] for noted in report["noted"]] == [str(films / "red.mp4")]
    assert "red.srt" in report["noted"][0]["text"]
    assert "partly    1 video used only in part" in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["noted"] == 1
    assert "red.srt" in run("list", "--long").stdout
    (films / "red.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nLook, red!\n")
    assert "1 video with new subtitles, 1 unchanged\n" in run("add", films).stderr
    assert "partly" not in run("status").stdout
    (films / "red.srt").write_bytes(b"\0\1\2" * 50)
    assert "1 video with new subtitles, 1 unchanged (1 of them only in part)" in run("add", films).stderr


def test_hints_name_the_library(run: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (films / "zero.mp4").touch()
    other = tmp_path / "other films"
    added = run("add", films, "--encoder", "colours", "-l", other)
    where = f"--library '{other}'"
    assert f"momentseek status --failed {where}; to try again: momentseek retry {where}" in added.stderr
    assert f"(momentseek status --failed {where})" in run("status", "-l", other).stdout
    assert f"momentseek retry {where}" in run("status", "--failed", "-l", other).stderr
    assert f"`momentseek compact {where}`" in run("remove", "red.mp4", "--yes", "-l", other).stderr

    def stopped(*_: object, **__: object) -> AddReport:
        raise AddInterrupted(AddReport())

    monkeypatch.setattr(LibraryStore, "add", stopped)
    typed = ("--exclude", "old*", "--no-transcribe", "--jobs", "2", "--no-ocr")
    ended = run("add", films, *typed, "-l", other)
    assert ended.returncode == 130
    hint = f"momentseek add {films} --exclude 'old*' --no-transcribe --no-ocr --jobs 2 {where}"
    assert ended.stderr.endswith(f"run: {hint}\n")
    monkeypatch.undo()
    with LibraryStore.open(other) as library:
        library.catalog.set("adding", {"since": 0.0})
        library.catalog.set("reencoding", ["file:/models/new one", "print"])
    told = run("status", "-l", other).stdout
    assert f"({hint} continues)" in told
    assert f"(momentseek reencode --encoder 'file:/models/new one' {where} continues)" in told
    for command in re.findall(r"\((momentseek [^()]*?)(?: continues)?\)", told):  # each can be run as it is printed
        words = shlex.split(command)[1:]
        found = cli.get_command(click.Context(cli), words[0])
        assert found is not None
        found.make_context(words[0], words[1:])


def test_command_to_continue_has_absolute_paths(
    run: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(films)
    run("add", "red.mp4", "--encoder", "colours", "--subtitles", ".")
    with LibraryStore.open(tmp_path / "library") as library:
        library.catalog.set("adding", {"since": 0.0})
    told = run("status").stdout
    assert f"(momentseek add {films / 'red.mp4'} --subtitles {films} --encoder colours continues)" in told


def test_missing_files_are_counted(run: Run, films: Path) -> None:
    run("add", films, "--encoder", "colours")
    assert "\nmissing " not in run("status").stdout
    (films / "red.mp4").unlink()
    assert "missing   1 video whose file is gone (momentseek remove --missing)" in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["missing"] == 1


def test_video_with_a_broken_file_is_marked(run: Run, films: Path) -> None:
    run("add", films, "--encoder", "colours")
    good = (films / "red.mp4").read_bytes()
    state = (films / "red.mp4").stat()
    (films / "red.mp4").write_bytes(b"broken")
    assert "1 failed" in run("add", films).stderr
    assert "changed   1 video since added" in run("status").stdout
    listed = json.loads(run("list", "--json").stdout)
    assert {video["name"]: video["changed"] for video in listed} == {"red.mp4": True, "blue\n🎬.mp4": False}
    assert "changed since" in run("list", "--long").stdout
    (films / "red.mp4").write_bytes(good)
    os.utime(films / "red.mp4", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert "2 videos unchanged" in run("add", films).stderr
    assert "changed" not in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["failures"] == 0


def test_add_recreates_an_empty_catalog(run: Run, films: Path, tmp_path: Path) -> None:
    run("add", films, "--encoder", "colours")
    for name in ("catalog.sqlite-wal", "catalog.sqlite-shm"):
        (tmp_path / "library" / name).unlink(missing_ok=True)
    (tmp_path / "library" / "catalog.sqlite").write_bytes(b"")
    said = run("status")
    assert said.returncode == 2
    assert "is empty" in said.stderr
    assert "momentseek add FOLDER" in said.stderr
    assert "2 videos added" in run("add", films, "--encoder", "colours").stderr
    assert run("verify").returncode == 0


def test_verify_fails_and_repairs(run: Run, films: Path, tmp_path: Path) -> None:
    run("add", films, "--encoder", "colours")
    for path in (tmp_path / "library" / "segments").iterdir():
        path.write_bytes(path.read_bytes()[:300])
    bad = run("verify")
    assert bad.returncode == 1
    assert bad.stdout.startswith("problem: ")
    assert not json.loads(run("verify", "--json").stdout)["clean"]
    assert run("verify", "--repair").returncode == 0
    assert "2 videos added" in run("retry").stderr
    assert run("verify").returncode == 0


def test_nothing_to_add_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    nothing = run("add", tmp_path / "empty", "--encoder", "colours")
    assert nothing.returncode == 2
    assert "no videos found" in nothing.stderr
    (tmp_path / "empty" / "bad.mp4").write_bytes(b"bad")
    bad = run("add", tmp_path / "empty")
    assert bad.returncode == 2
    assert "no file could be added" in bad.stderr


def test_missing_path_creates_no_library(run: Run, tmp_path: Path) -> None:
    done = run("add", tmp_path / "none")
    assert done.returncode == 2
    assert done.stderr == f"momentseek: {tmp_path / 'none'}: does not exist; check the path\n"
    assert not (tmp_path / "library").exists()


@pytest.mark.parametrize("verb", ["status", "list", "retry", "verify", "compact"])
def test_missing_library_is_reported(run: Run, verb: str) -> None:
    done = run(verb)
    assert done.returncode == 2
    assert "has no library; make one with: momentseek add FOLDER" in done.stderr


def test_watching_adds_new_files(films: Path, tmp_path: Path) -> None:
    env = {**os.environ, "MOMENTSEEK_LIBRARY": str(tmp_path / "library")}
    process = subprocess.Popen(
        [sys.executable, str(LIGHT), "add", str(films), "--encoder", "colours", "--watch"],
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    while not (tmp_path / "library" / "segments").is_dir() or not list(
        (tmp_path / "library" / "segments").glob("*.vec")
    ):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    _, said = process.communicate()
    assert process.returncode == 0
    assert "2 videos added" in said
    assert said.endswith("stopped watching; what is done is kept\n")
    with LibraryStore.open(tmp_path / "library") as library:
        assert library.verify().clean


def test_progress_of_all_files_and_the_current_one() -> None:
    step = IngestStep(1, 4, 250, 1000, "a\nb.mp4", 1.5, 3.0, 1.5, 1.0, 1.0, 250)
    assert step_lines(step) == (
        "adding  1 of 4 files  25 %  1.5 x real time  about 00:00:03 left",
        "  a\\nb.mp4  00:00:02 of 00:00:03",
    )


def test_progress_without_a_terminal_is_an_occasional_line(capsys: Any) -> None:
    display = IngestLines()
    step = IngestStep(1, 4, 250, 1000, "a.mp4", 0.0, 0.0, 1.5, 1.0, 1.0, 250)
    display(step)
    assert capsys.readouterr().err == ""
    display.last -= 60
    display(step)
    assert capsys.readouterr().err.startswith("adding  1 of 4 files  25 %")
    quiet = IngestLines(quiet=True)
    quiet.last -= 60
    quiet(step)
    quiet(IngestNote("resumed", None, "a.mp4: resumed"))
    assert capsys.readouterr().err == ""


def test_missing_device_is_refused_before_anything_is_created(
    run: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("momentseek.media.container._answers", lambda kind: False)
    done = run("add", films, "--hardware")
    assert done.returncode == 2
    assert "--hardware: no device that decodes videos answers here" in done.stderr
    assert not (tmp_path / "library").exists()
    done = run("add", films, "--jobs", 2, "--on", "local")
    assert done.returncode == 2
    assert "--jobs and --hardware mean nothing" in done.stderr


def test_hints_at_a_library_in_the_current_folder(tmp_path, monkeypatch):
    from momentseek.library.location import folder_here, library_folder

    monkeypatch.chdir(tmp_path)
    assert folder_here(library_folder("films")) == ""
    (tmp_path / "films").mkdir()
    assert folder_here(library_folder("films")) == "; the folder here is --library ./films"
    assert folder_here(library_folder("./films")) == ""
