"""Progress on stderr: drawn by rich on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from momentseek.cli.terminal import bare_stream, escape_controls
from momentseek.core.progress import ShowCount

if TYPE_CHECKING:
    from momentseek.models.training.folder import TrainingProgress

QUIET_SECONDS = 2.0
"""If stderr is not a terminal, work that takes longer than this prints a line."""


def error_console() -> Console:
    """Return a rich console that bypasses the filter of control characters; its texts are already escaped."""
    return Console(file=bare_stream(sys.stderr), highlight=False, markup=False, emoji=False, soft_wrap=True)


class ProgressLines:
    """Progress lines on stderr; notes are printed above them and stay.

    On a terminal the lines are updated in place. Elsewhere they are joined into one line every ``silence_seconds``.
    ``quiet`` hides the lines.
    """

    def __init__(self, *, quiet: bool = False, silence_seconds: float = 15.0) -> None:
        self.quiet, self.silence_seconds = quiet, silence_seconds
        self.last = time.monotonic()
        """When a line was last written, by ``time.monotonic``."""
        self._live: Live | None = None

    def show(self, *lines: str, share: float | None = None) -> None:
        """Replace the lines shown; on a terminal, add a bar filled up to ``share``."""
        if self.quiet:
            return
        if sys.stderr.isatty():
            self._draw([Text(escape_controls(line), no_wrap=True, overflow="ellipsis") for line in lines], share)
        elif time.monotonic() - self.last >= self.silence_seconds:
            click.echo("; ".join(line.strip() for line in lines), err=True)
            self.last = time.monotonic()

    def _draw(self, texts: list[Text], share: float | None) -> None:
        bar = [] if share is None else [ProgressBar(total=1.0, completed=share, width=40)]
        if self._live is None:
            self._live = Live(console=error_console(), transient=True, redirect_stdout=False, redirect_stderr=False)
            if context := click.get_current_context(silent=True):
                context.call_on_close(self.clear)
        self._live.update(Group(*texts, *bar))
        self._live.start()

    def note(self, text: str) -> None:
        """Print a text that stays above the progress lines."""
        if self._live is not None:
            self._live.console.print(Text(escape_controls(text)))
        else:
            click.echo(text, err=True)

    def clear(self) -> None:
        """Remove the lines from the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class RateColumn(ProgressColumn):  # type: ignore[misc]
    """Steps per second."""

    def render(self, task: Task) -> Text:
        """Return the rate of a task, once it is known."""
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f}/s")


@contextmanager
def progress_bars(label: str) -> Iterator[ShowCount]:
    """Yield a progress callback ``(done, total)`` for work whose total is not known in advance.

    The first call starts a bar; the first call after a bar has ended starts another. If stderr is not a terminal, long
    work prints a line with the time left.
    """
    if not sys.stderr.isatty():
        yield CountLine(label)
        return
    counted = TextColumn("{task.completed:,.0f}/{task.total:,.0f}")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        counted,
        RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=error_console(), redirect_stdout=False, redirect_stderr=False) as bars:

        def show(done: int, total: int) -> None:
            if not bars.tasks or bars.tasks[-1].finished:
                bars.add_task(escape_controls(label), total=total)
            bars.update(bars.tasks[-1].id, completed=done)

        yield show


class CountLine:
    """Prints the time left of long counted work, and a line when it is done."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._begun: float | None = None
        self._announced = False

    def __call__(self, done: int, total: int) -> None:
        """Record that ``done`` of ``total`` steps are done."""
        if self._begun is None:
            self._begun = time.monotonic()
        seconds = time.monotonic() - self._begun
        if done >= total:
            if self._announced:
                click.echo(f"  done: {total:,} in {seconds:.0f} s", err=True)
            self._begun, self._announced = None, False
        elif done and not self._announced and seconds > QUIET_SECONDS:
            self._announced = True
            rate = done / max(seconds, 1e-9)
            left = f"about {(total - done) / rate:,.0f} s left"
            click.echo(f"{self.label}: {total:,} to do, {rate:,.0f}/s, {left}", err=True)


@contextmanager
def progress_bar(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """Yield a callback that adds finished steps, for work whose total is known."""
    with progress_bars(label) as show:
        done = 0

        def advance(steps: int) -> None:
            nonlocal done
            done += steps
            show(done, total)

        yield advance


class TrainingLine:
    """A progress callback for ``momentseek.models.training.loop.train``."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._lines = ProgressLines(quiet=quiet, silence_seconds=30.0)

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.doing != "validated":
            self._lines.show(sentence(progress))
        elif not self._lines.quiet:
            self._lines.note(sentence(progress))
            self._lines.last = time.monotonic()


def sentence(progress: TrainingProgress) -> str:
    """Return one line with the step, the loss and its terms, the measure, the rate and the time left."""
    if progress.doing == "scoring":
        return f"scoring all training queries and videos, for hard negatives: {progress.share:.0%}"
    terms = ", ".join(f"{name} {value:.4f}" for name, value in progress.terms.items())
    parts = [f"step {progress.step:,}/{progress.steps:,} (epoch {progress.epoch:.1f})"]
    if progress.terms:
        parts.append(f"loss {progress.loss:.4f} ({terms})" if len(progress.terms) > 1 else f"loss {progress.loss:.4f}")
    if progress.doing == "validating":
        parts.append("validating")
    elif progress.value is not None and progress.best is not None:
        new = progress.doing == "validated" and progress.value >= progress.best
        parts.append(
            f"{progress.measure} {progress.value:.4f}" + (", the best" if new else f", best {progress.best:.4f}")
        )
    parts.append(f"{progress.pairs_per_second:,.0f} pairs/s")
    if progress.step < progress.steps and progress.seconds_left == progress.seconds_left:
        parts.append(f"{duration(progress.seconds_left)} left")
    return "; ".join(parts)


def duration(seconds: float) -> str:
    """Return a duration as text.

    >>> duration(42), duration(130), duration(7300)
    ('42 s', '2 min', '2 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class StageLine:
    """A progress callback that shows the stage of a prediction and how much of it is done."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._lines = ProgressLines(quiet=quiet)

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._lines.show(f"{stage}: {done:,} of {total:,}", share=done / max(total, 1))
