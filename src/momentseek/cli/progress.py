"""Progress on stderr: of adding, of training, and of any work that counts its steps."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

import click

from momentseek.api.library import open_store
from momentseek.cli.options import command_line, echo_json, say
from momentseek.cli.terminal import draw
from momentseek.core.progress import ShowCount
from momentseek.library.file_stamp import printable
from momentseek.library.ingest.report import AddInterrupted, BackgroundStep, IngestNote
from momentseek.library.location import library_folder
from momentseek.library.paths import clock_text

if TYPE_CHECKING:
    from momentseek.library.ingest.report import AddReport, IngestStep
    from momentseek.library.store import LibraryStore
    from momentseek.models.training.folder import TrainingProgress


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


NOTE_STARTS = {"failed": "failed: ", "odd": "failed: ", "noted": "note: "}
"""How notes begin that are written even with ``--quiet``."""


class IngestLines(ProgressLines):
    """Shows how adding goes, as a callback for it: one line about the whole, one about the present file, and notes."""

    def __init__(self, *, quiet: bool = False, what: str = "adding") -> None:
        super().__init__(quiet=quiet)
        self.what = what

    def __call__(self, event: IngestStep | BackgroundStep | IngestNote) -> None:
        """Show an event."""

        if isinstance(event, IngestNote):
            if event.kind in NOTE_STARTS or not self.quiet:
                self.note(f"{NOTE_STARTS.get(event.kind, '')}{event.text}")
        elif isinstance(event, BackgroundStep):
            self.show(*beside_lines(event))
        else:
            self.show(*step_lines(event, self.what))


def step_lines(step: IngestStep, what: str = "adding") -> tuple[str, str]:
    """A line about the whole, with rate and time left, and one about the present file.

    >>> from momentseek.library.ingest.report import IngestStep
    >>> step = IngestStep(3, 10, 400, 1000, "b.mp4", 30.0, 60.0, 120.0, 12.0, 10.0, 400)
    >>> print(*step_lines(step), sep=chr(10))
    adding  3 of 10 files  40 %  12.0 x real time  about 00:00:15 left
      b.mp4  [############            ] 00:00:30 of 00:01:00
    """

    share = step.bytes / step.of_bytes if step.of_bytes else 1.0
    whole = f"{what}  {step.files:,} of {step.of_files:,} files  {100 * share:.0f} %"
    if step.encoding > 0 and step.bytes_encoded:
        left = (step.of_bytes - step.bytes) * step.encoding / step.bytes_encoded
        whole += f"  {step.seconds / step.encoding:,.1f} x real time  about {clock_text(left)} left"
    one = f"  {printable(step.name)}"
    if step.duration > 0:
        one += f"  {bar_text(step.at / step.duration)} {clock_text(step.at)} of {clock_text(step.duration)}"
    return whole, one


def beside_lines(step: BackgroundStep) -> tuple[str, str]:
    """A line about all videos that are heard or read, with rate and time left, and the name of the present one.

    >>> from momentseek.library.ingest.report import BackgroundStep
    >>> print(*beside_lines(BackgroundStep("hearing", 1, 3, 60.0, 240.0, 60.0, 12.0, "b.mp4")), sep=chr(10))
    hearing  1 of 3 videos  25 %  5.0 x real time  about 00:00:36 left
      b.mp4
    """

    share = step.seconds / step.of_seconds if step.of_seconds else 1.0
    whole = f"{step.what}  {step.videos:,} of {step.of_videos:,} videos  {100 * share:.0f} %"
    if step.fresh > 0:
        rate = step.fresh / max(step.elapsed, 1e-9)
        whole += f"  {rate:,.1f} x real time  about {clock_text((step.of_seconds - step.seconds) / rate)} left"
    return whole, f"  {printable(step.name)}"


@contextmanager
def stoppable() -> Iterator[None]:
    """Treat a polite request to end (SIGTERM, as by systemd or docker stop) like Ctrl-C."""

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
    work: Callable[[IngestLines], AddReport],
    display: IngestLines,
    *,
    library: str | None,
    as_json: bool,
    again: Sequence[str],
) -> AddReport:
    """Do the work and return its report; Ctrl-C says what was kept and leaves with exit code 130."""

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


def ingest_more(
    work: Callable[[LibraryStore, IngestLines], AddReport],
    what: str,
    *,
    library: str | None,
    wait: float,
    quiet: bool,
    as_json: bool,
    again: Sequence[str],
) -> AddReport:
    """Do with the videos of a library what was not done when they were added (``what``: hearing, reading …), print the
    report as JSON if asked for and its notes, and return it."""

    display = IngestLines(quiet=quiet, what=what)
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = ingest(lambda tell: work(opened, tell), display, library=library, as_json=as_json, again=again)
    if as_json:
        echo_json(report.as_dict())
    for note in report.notes:
        say(f"note: {note}")
    return report


def conclude(report: AddReport, *, library: str | None, as_json: bool, quiet: bool) -> None:
    """Print the summary of an ingest."""
    if as_json:
        echo_json(report.as_dict())
    if not quiet:
        for note in report.notes:
            say(f"note: {note}")
        say(str(report))
    if report.failed:
        failed, retry = command_line(["status", "--failed"], library), command_line(["retry"], library)
        say(f"what failed, and why: {failed}; to try again: {retry}")


class TrainingLine:
    """Shows how training goes, as a callback for ``momentseek.models.training.loop.train``."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._lines = ProgressLines(quiet=quiet, renew_seconds=0.2, silence_seconds=30.0)

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.doing != "validated":
            self._lines.show(sentence(progress))
        elif not self._lines.quiet:
            self._lines.note(sentence(progress))
            self._lines.last = time.monotonic()


def sentence(progress: TrainingProgress) -> str:
    """One line: how far, the loss and its terms, the measure, the rate, the time left."""
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
    """A time in words.

    >>> duration(42), duration(130), duration(7300)
    ('42 s', '2 min', '2 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
