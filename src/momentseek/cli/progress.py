"""Progress on stderr: lines that renew themselves on a terminal, and one now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import click

from momentseek.cli.terminal import draw
from momentseek.progress import ShowCount

QUIET_SECONDS = 2.0
"""How long work may take before a line is written where stderr is no terminal."""
BAR_WIDTH = 24
"""Characters of a bar."""


class ProgressLines:
    """Lines on stderr that say how work is going; notes stand above them and stay.

    On a terminal the lines renew themselves, at most every ``renew_seconds``. Elsewhere they are written as one line
    every ``silence_seconds``. ``quiet`` shows neither.
    """

    def __init__(self, *, quiet: bool = False, renew_seconds: float = 0.0, silence_seconds: float = 15.0) -> None:
        self.quiet, self.renew_seconds, self.silence_seconds = quiet, renew_seconds, silence_seconds
        self.terminal = sys.stderr.isatty() and not quiet
        self.last = time.monotonic()
        """When lines were last written, by ``time.monotonic``."""
        self._standing = 0

    def show(self, *lines: str) -> None:
        """Show these lines instead of those before, unless that was only a moment ago."""
        waited = time.monotonic() - self.last
        if self.quiet or waited < (self.renew_seconds if self.terminal else self.silence_seconds):
            return
        if self.terminal:
            self.clear()
            click.echo("\n".join(map(_fit_terminal, lines)), err=True)
            self._standing = len(lines)
        else:
            click.echo("; ".join(line.strip() for line in lines), err=True)
        self.last = time.monotonic()

    def note(self, text: str) -> None:
        """Write a text that stays."""
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        """Take the lines away from the terminal."""
        if self._standing:
            draw(f"\x1b[{self._standing}A\x1b[J", err=True)
            self._standing = 0


class ProgressBar:
    """A bar with the rate and the time left, on stderr; use it as a context manager and call ``advance``.

    Where stderr is no terminal, one line says how long it will take, if it takes long.
    """

    def __init__(self, total: int, label: str, *, enabled: bool = True) -> None:
        self.total = total
        self.label = label
        self.done = 0
        self._lines = ProgressLines(quiet=not enabled, renew_seconds=0.1)
        self._begun = time.monotonic()
        self._announced = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lines.terminal:
            self._lines.note(str(self))
        elif self._announced and kind is None:
            self._lines.note(f"  done: {self.total:,} in {time.monotonic() - self._begun:.0f} s")

    def __str__(self) -> str:
        text = f"{self.label}  {bar_text(self.done / self.total if self.total else 1.0)}  {self.done:,}/{self.total:,}"
        if self.done:
            text += f"  {self.rate:,.0f}/s"
        return text if self.done in (0, self.total) else f"{text}  about {self.seconds_left:,.0f} s left"

    def advance(self, steps: int) -> None:
        """Count ``steps`` more as done."""
        self.done += steps
        if self._lines.terminal:
            self._lines.show(str(self))
            return
        waited = time.monotonic() - self._begun > QUIET_SECONDS
        if not self._lines.quiet and not self._announced and waited and 0 < self.done < self.total:
            self._announced = True
            left = f"about {self.seconds_left:,.0f} s left"
            self._lines.note(f"{self.label}: {self.total:,} to do, {self.rate:,.0f}/s, {left}")

    @property
    def rate(self) -> float:
        """Steps per second so far."""
        return self.done / max(time.monotonic() - self._begun, 1e-9)

    @property
    def seconds_left(self) -> float:
        """Seconds that the rest takes at the rate so far."""
        return (self.total - self.done) / self.rate


def bar_text(share: float) -> str:
    """A bar that is filled up to a share of it.

    >>> bar_text(0.5)
    '[############            ]'
    """
    filled = max(0, min(BAR_WIDTH, int(BAR_WIDTH * share)))
    return f"[{'#' * filled}{' ' * (BAR_WIDTH - filled)}]"


def _fit_terminal(line: str) -> str:
    return line[: max(20, shutil.get_terminal_size().columns - 1)]


@contextmanager
def progress_bars(label: str) -> Iterator[ShowCount]:
    """A callback ``(done, total)`` for work that finds out by itself how much there is to do.

    A bar begins with the first call, and the next one with the first call after its end.
    """
    bar: ProgressBar | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = ProgressBar(total, label).__enter__()
        bar.advance(done - bar.done)
        if done >= total:
            bar.__exit__(None, None, None)
            bar = None

    try:
        yield show
    finally:
        if bar is not None:
            bar.__exit__(*sys.exc_info())
