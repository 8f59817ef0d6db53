import io
import sys

from momentseek.cli import progress
from momentseek.cli.progress import ProgressLines, progress_bar, progress_bars


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_a_terminal(monkeypatch):
    shown = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def test_progress_is_a_line_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    with progress_bar(1000, "encoding") as advance:
        advance(400)
        advance(600)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("encoding: 1,000 to do, ")
    assert told[1].startswith("  done: 1,000 in ")


def test_progress_is_a_bar_with_the_rate_on_a_terminal(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    with progress_bar(1000, "enc[b]oding\x1b]0;title\x07") as advance:
        advance(500)
        advance(500)
    assert "1,000/1,000" in terminal.getvalue()
    assert "/s" in terminal.getvalue()
    assert "enc[b]oding\\u001b]0;title\\u0007" in terminal.getvalue()


def test_work_of_unknown_size_has_a_bar_each_time(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    with progress_bars("encoding") as show:
        for total in (30, 20):
            for done in (0, 10, total):
                show(done, total)
    lines = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert [line.split(" in ")[0] for line in lines] == [
        "encoding: 30 to do", "  done: 30", "encoding: 20 to do", "  done: 20",
    ]  # fmt: skip


def test_lines_update_in_place_and_notes_stay(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    lines = ProgressLines()
    lines.show("adding 1 of 2", "  a\x1b[2J.mp4", share=0.5)
    lines.note("failed: b\x1b[2J.mp4")
    lines.clear()
    shown = terminal.getvalue()
    assert "adding 1 of 2" in shown
    assert "failed: b\\u001b[2J.mp4\n" in shown
    assert "\x1b[2J" not in shown
    assert shown.endswith("\x1b[2K")  # the lines are gone
