"""Progress, interruption and summary of commands that process videos."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from momentseek.api.library import open_store
from momentseek.cli.options import command_line, echo_json, say
from momentseek.cli.progress import ProgressLines
from momentseek.library.file_stamp import printable
from momentseek.library.location import library_folder
from momentseek.library.paths import clock_text
from momentseek.library.report import AddInterrupted, AddReport, BackgroundStep, IngestNote, IngestStep
from momentseek.library.store import LibraryStore

NOTE_STARTS = {"failed": "failed: ", "odd": "failed: ", "noted": "note: "}
"""Prefixes of the notes that are printed even with ``--quiet``."""


class IngestLines(ProgressLines):
    """A progress callback for ``add``: one line about all files, one about the current file, and notes."""

    def __init__(self, *, quiet: bool = False, what: str = "adding") -> None:
        super().__init__(quiet=quiet)
        self.what = what

    def __call__(self, event: IngestStep | BackgroundStep | IngestNote) -> None:
        """Show an event."""
        if isinstance(event, IngestNote):
            if event.kind in NOTE_STARTS or not self.quiet:
                self.note(f"{NOTE_STARTS.get(event.kind, '')}{event.text}")
        elif isinstance(event, BackgroundStep):
            self.show(*background_lines(event), share=event.seconds / event.of_seconds if event.of_seconds else 1.0)
        else:
            self.show(*step_lines(event, self.what), share=event.bytes / event.of_bytes if event.of_bytes else 1.0)


def step_lines(step: IngestStep, what: str = "adding") -> tuple[str, str]:
    """Return a line about all files, with rate and time left, and one about the current file.

    >>> step = IngestStep(3, 10, 400, 1000, "b.mp4", 30.0, 60.0, 120.0, 12.0, 10.0, 400)
    >>> print(*step_lines(step), sep=chr(10))
    adding  3 of 10 files  40 %  12.0 x real time  about 00:00:15 left
      b.mp4  00:00:30 of 00:01:00
    """
    share = step.bytes / step.of_bytes if step.of_bytes else 1.0
    whole = f"{what}  {step.files:,} of {step.of_files:,} files  {100 * share:.0f} %"
    if step.encoding > 0 and step.bytes_encoded:
        left = (step.of_bytes - step.bytes) * step.encoding / step.bytes_encoded
        whole += f"  {step.seconds / step.encoding:,.1f} x real time  about {clock_text(left)} left"
    one = f"  {printable(step.name)}"
    return whole, f"{one}  {clock_text(step.at)} of {clock_text(step.duration)}" if step.duration > 0 else one


def background_lines(step: BackgroundStep) -> tuple[str, str]:
    """Return a line about all videos of a background pass, with rate and time left, and the current video's name.

    >>> print(*background_lines(BackgroundStep("transcribing", 1, 3, 60.0, 240.0, 60.0, 12.0, "b.mp4")), sep=chr(10))
    transcribing  1 of 3 videos  25 %  5.0 x real time  about 00:00:36 left
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
    """Treat SIGTERM (sent by systemd or docker stop) like Ctrl-C."""

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
    """Do the work and return its report; on Ctrl-C, print what was kept and exit with code 130."""
    try:
        with stoppable():
            report = work(display)
    except AddInterrupted as e:
        display.clear()
        conclude(e.report, library=library, as_json=as_json, quiet=display.quiet)
        say(f"interrupted; what is done is kept. To continue, run: {command_line(again, library)}")
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
    """Run a further pass over a library's videos (``what``: reading …); print its notes and JSON report."""
    display = IngestLines(quiet=quiet, what=what)
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = ingest(lambda tell: work(opened, tell), display, library=library, as_json=as_json, again=again)
    if as_json:
        echo_json(report.as_dict())
    for note in report.notes:
        say(f"note: {note}")
    return report


def say_done(report: AddReport, done: str, seconds: float | None, undone: str) -> None:
    """Print what was done, how long it took, and how many videos failed (``undone``: encoded, read …)."""
    took = f" ({clock_text(seconds)} in {report.elapsed:,.0f} s)" if seconds else ""
    left = f", {len(report.noted):,} could not be {undone}" if report.noted else ""
    say(f"{done}{took}{left}")


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
        say(f"to see what failed and why: {failed}; to try again: {retry}")
