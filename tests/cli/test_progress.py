import io
import sys

from momentseek.cli import progress
from momentseek.cli.progress import ProgressBar, progress_bars


def test_progress_is_a_line_elsewhere_and_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    with ProgressBar(1000, "encoding") as bar:
        bar.advance(400)
        bar.advance(600)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("encoding: 1,000 to do, ")
    assert told[1].startswith("  done: 1,000 in ")
    with ProgressBar(1000, "encoding", enabled=False) as bar:
        bar.advance(400)
    assert not capsys.readouterr().err

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressBar(1000, "encoding") as bar:
        bar.advance(1000)
    assert "1,000/1,000" in terminal.getvalue()
    assert "/s" in terminal.getvalue()


def test_work_that_finds_out_how_much_there_is_has_a_bar_each_time(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    with progress_bars("encoding") as show:
        for total in (30, 20):
            for done in (0, 10, total):
                show(done, total)
    lines = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert [line.split(" in ")[0] for line in lines] == [
        "encoding: 30 to do", "  done: 30", "encoding: 20 to do", "  done: 20",
    ]  # fmt: skip
