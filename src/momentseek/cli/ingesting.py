"""What ``add``, ``retry`` and ``reencode`` share: showing how far they are, and how they end."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from momentseek.cli.options import command_line, say

if TYPE_CHECKING:
    from momentseek.library import AddReport, IngestNote, IngestStep

EVERY = 15.0
"""Seconds between two lines where nobody sits at a terminal."""
BAR = 24
STARTS = {"failed": "failed: ", "odd": "failed: ", "noted": "note: "}
"""How notes begin that are said also where only failures are."""


class Display:
    """Two lines on a terminal, rewritten; elsewhere a line now and then. Notes stand above them and stay."""

    def __init__(self, *, quiet: bool = False, what: str = "adding") -> None:
        self.quiet, self.what = quiet, what
        self.terminal = sys.stderr.isatty() and not quiet
        self.lines = 0
        self.last = time.monotonic()

    def __call__(self, event: IngestStep | IngestNote) -> None:
        """Show an event."""
        from momentseek.library import IngestNote

        if isinstance(event, IngestNote):
            if event.kind in STARTS or not self.quiet:
                self.clear()
                say(f"{STARTS.get(event.kind, '')}{event.text}")
        elif self.terminal:
            self.clear()
            click.echo("\n".join(cut(line) for line in lines(event, self.what)), err=True)
            self.lines = 2
        elif not self.quiet and time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            say("; ".join(line.strip() for line in lines(event, self.what)))

    def clear(self) -> None:
        """Take the lines away."""
        if self.lines:
            click.echo(f"\x1b[{self.lines}A\x1b[J", err=True, nl=False, color=True)
            self.lines = 0


def lines(step: IngestStep, what: str = "adding") -> tuple[str, str]:
    """The whole, with rate and time left; and the present file.

    >>> from momentseek.library import IngestStep
    >>> step = IngestStep(3, 10, 400, 1000, "b.mp4", 30.0, 60.0, 120.0, 12.0, 10.0, 400)
    >>> print(*lines(step), sep=chr(10))
    adding  3 of 10 files  40 %  12.0 x real time  about 00:00:15 left
      b.mp4  [############            ] 00:00:30 of 00:01:00
    """
    from momentseek.library.paths import clock_text
    from momentseek.library.stamp import printable

    share = step.bytes / step.of_bytes if step.of_bytes else 1.0
    whole = f"{what}  {step.files:,} of {step.of_files:,} files  {100 * share:.0f} %"
    if step.encoding > 0 and step.bytes_encoded:
        left = (step.of_bytes - step.bytes) * step.encoding / step.bytes_encoded
        whole += f"  {step.seconds / step.encoding:,.1f} x real time  about {clock_text(left)} left"
    one = f"  {printable(step.name)}"
    if step.duration > 0:
        done = min(BAR, int(BAR * step.at / step.duration))
        one += f"  [{'#' * done}{' ' * (BAR - done)}] {clock_text(step.at)} of {clock_text(step.duration)}"
    return whole, one


def cut(line: str) -> str:
    """A line that fits the terminal."""
    return line[: max(20, shutil.get_terminal_size().columns - 1)]


@contextmanager
def stoppable() -> Iterator[None]:
    """A polite end (SIGTERM, as by systemd or docker stop) is like Ctrl-C."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def ingest(
    work: Callable[[Display], AddReport], display: Display, *, library: str | None, as_json: bool, again: Sequence[str]
) -> AddReport:
    """Do the work and say how it ended; Ctrl-C says what was kept and leaves with 130."""
    from momentseek.library import AddInterrupted

    try:
        with stoppable():
            report = work(display)
    except AddInterrupted as e:
        display.clear()
        conclude(e.report, library=library, as_json=as_json, quiet=display.quiet)
        say(f"interrupted; what is done is kept. To go on, run again: {command_line(again, library)}")
        sys.exit(130)
    finally:
        display.clear()
    return report


def conclude(report: AddReport, *, library: str | None, as_json: bool, quiet: bool) -> None:
    """The summary."""
    if as_json:
        click.echo(json.dumps(report.as_dict(), indent=2, ensure_ascii=False))
    if not quiet:
        for note in report.notes:
            say(f"note: {note}")
        say(str(report))
    if report.failed:
        failed, retry = command_line(["status", "--failed"], library), command_line(["retry"], library)
        say(f"what failed, and why: {failed}; to try again: {retry}")


def echo_json(value: Any) -> None:
    """Print a JSON value; paths as text."""
    from momentseek.library.stamp import path_text

    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=path_text))


def size_text(size: float) -> str:
    """Bytes for people.

    >>> size_text(999), size_text(12_345_678)
    ('999 B', '12.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
