from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.cli import main
from momentseek.cli.options import echo_table
from momentseek.cli.terminal import GuardedStream, bare_stream, draw, escape_controls, guard_streams

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\rspoof\x08\x7f\u202egpj.mp4"
CONTROLS = set(map(chr, (*range(9), 11, 12, *range(14, 32), *range(127, 160)))) | {"\u202e"}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def _screen() -> Iterator[_Terminal]:
    """Return what a terminal receives on stdout and stderr."""
    shown = _Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", shown)
        patch.setattr(sys, "stderr", shown)
        yield shown


def _shown(*words: object) -> str:
    """Return the output of a command."""
    with _screen() as screen, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["momentseek", *map(str, words)])
        with pytest.raises(SystemExit):
            main()
    return screen.getvalue()


@given(st.text())
def test_control_sequences_are_escaped(text: str) -> None:
    shown = escape_controls(text + HOSTILE)
    assert not CONTROLS & set(shown.replace("\x1b[1m", "").replace("\x1b[22m", ""))
    assert "\r" not in shown.replace("\r\n", "")


@given(st.text(st.characters(codec="utf-8")))
def test_json_means_the_same_afterwards(text: str) -> None:
    assert json.loads(escape_controls(json.dumps([text], ensure_ascii=False))) == [text]


def test_lines_and_bold_type_stay() -> None:
    text = "a\tb\r\n\x1b[1mc\x1b[22m é\n"
    assert escape_controls(text) == text


def test_direction_marks_are_escaped_only_on_terminals() -> None:
    pipe, terminal = io.StringIO(), _Terminal()
    for stream in (pipe, terminal):
        print("\u202bשלום\x1b", file=GuardedStream(stream))  # type: ignore[type-var]
    assert (pipe.getvalue(), terminal.getvalue()) == ("\u202bשלום\\u001b\n", "\\u202bשלום\\u001b\n")


def test_own_drawing_bypasses_the_filter() -> None:
    with _screen() as screen:
        guard_streams()
        guard_streams()
        click.echo("\x1b[2J", color=True)
        draw("\x1b[1A")
        assert bare_stream(sys.stdout) is screen
        with pytest.raises(TypeError):
            sys.stdout.write(b"\x1b")  # type: ignore[arg-type]
        assert not hasattr(sys.stdout, "buffer")
    assert screen.getvalue() == "\\u001b[2J\n\x1b[1A"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    row = {"query_id": HOSTILE, "query": HOSTILE, "video": HOSTILE, "start": 0.0, "end": 1.0}
    named = {name: tmp_path / f"{name}{HOSTILE.replace('/', '')}.jsonl" for name in ("run", "truth", "odd")}
    named["run"].write_text(json.dumps({**row, "score": 1.0}) + "\n")
    named["truth"].write_text(json.dumps({**row, "relevance": 1}) + "\n")
    named["odd"].write_text('{"\x9b31m": 1, "' + "x\u202e" + '": [' + "\n")
    return named


@pytest.mark.parametrize("words", [
    ("formats", "run"), ("formats", "odd"), ("formats", "run", "--json"), ("convert", "odd", "out"),
    ("convert", "run", "out", "--to", HOSTILE), ("evaluate", "run", "-t", "truth"), ("evaluate", "run", "-t", "odd"),
    ("evaluate", "run", "-t", "truth", "-m", HOSTILE), ("compare", "run", "run", "-t", "truth"),
    (HOSTILE,), ("evaluate", HOSTILE), ("status", "--library", HOSTILE),
])  # fmt: skip
def test_no_command_prints_foreign_control_sequences(
    files: dict[str, Path], tmp_path: Path, words: tuple[str, ...]
) -> None:
    shown = _shown(*(files.get(word, tmp_path / "out.jsonl" if word == "out" else word) for word in words))
    assert shown
    assert not CONTROLS & set(shown.replace("\x1b[1m", "").replace("\x1b[22m", ""))
    assert "\r" not in shown.replace("\r\n", "")


def test_library_commands_print_no_foreign_control_sequences(tmp_path: Path, make_video: Any) -> None:
    pytest.importorskip("av")
    films = tmp_path / "films"
    films.mkdir()
    make_video(films / f"one{HOSTILE}.mp4", [(3.0, (250, 0, 0))], rate=5, size=(64, 48))
    (films / f"one{HOSTILE}.srt").write_text(f"1\n00:00:00,500 --> 00:00:02,000\nsaid {HOSTILE}\n")
    (films / f"broken{HOSTILE}.mp4").write_bytes(b"no video")
    library = ("--library", tmp_path / "library")
    shown = ""
    for words in (
        ("add", films, *library), ("status", *library), ("status", "--failed", *library), ("list", *library),
        ("list", "--long", *library), ("search", "said", "--all", *library), ("search", "said", "--csv", *library),
        ("search", "said", "--json", *library), ("verify", *library), ("retry", *library),
        ("remove", "one*", "--yes", *library),
    ):  # fmt: skip
        shown += _shown(*words)
    assert "said" in shown
    shown = re.sub("\x1b\\[(?:\\?25[lh]|[0-9;]*[AmK])|\r", "", shown)  # rich renews the progress lines
    assert not CONTROLS & set(shown.replace("\x1b[1m", "").replace("\x1b[22m", ""))


def test_table_fits_the_terminal_and_escapes_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with _screen() as screen:
        guard_streams()
        echo_table(["name", "size"], [[HOSTILE, "1"], ["a long name " * 10, "12"]], align="lr")
    shown = screen.getvalue()
    assert not CONTROLS & set(shown)
    assert "\\u001b]0;owned" in shown
    assert max(map(len, shown.splitlines())) <= 60


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_real_terminal(files: dict[str, Path]) -> None:
    outer, inner = os.openpty()
    words = [sys.executable, "-m", "momentseek", "formats", str(files["run"])]
    process = subprocess.Popen(words, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    shown = b""
    try:
        while piece := os.read(outer, 1 << 16):
            shown += piece
    except OSError:  # the other end is closed
        pass
    assert process.wait(60) == 0
    os.close(outer)
    assert b"native" in shown
    assert b"\x1b" not in shown
    assert b"\\u001b" in shown
