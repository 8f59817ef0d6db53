"""``momentseek verify``: check every file and row of the library."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.core.reports import count
from momentseek.library.location import library_folder
from momentseek.library.scan.recall import recall_report
from momentseek.library.scan.scan import Scan

if TYPE_CHECKING:
    from momentseek.library.scan.recall import RecallReport
    from momentseek.library.store import LibraryStore
    from momentseek.library.verify import VerifyReport


@click.command()
@options.library
@click.option(
    "--repair",
    is_flag=True,
    help="Repair what can be repaired; videos whose vectors are lost are removed, and `retry` adds them again.",
)
@click.option("--recall", is_flag=True, help="Also measure how much of the exact answer the quick search finds.")
@options.wait
@options.as_json
def command(library: str | None, repair: bool, recall: bool, wait: float, as_json: bool) -> None:
    """Check every file and row of the library.

    Checks the database and its indices, the hash, header, counts and vectors of every segment, and
    that each video has one row per clip and one per cue. The exit code is 1 if anything is wrong.

    \b
    Repair a library after a disk fault:
      momentseek verify --repair && momentseek retry
    """

    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = opened.verify(repair=repair)
        measured = _recall(opened) if recall and report.clean else None
    if as_json:
        options.echo_json(
            {**_values(report), "clean": report.clean, "recall": None if measured is None else asdict(measured)}
        )
    else:
        _print(report, measured)
    if not report.clean:
        sys.exit(1)


def _values(report: VerifyReport) -> dict[str, Any]:
    kept = ("videos", "segments", "rows", "cues", "problems", "notes", "repaired")
    return {key: value for key, value in asdict(report).items() if key in kept}


def _recall(opened: LibraryStore) -> RecallReport:

    state = opened.snapshot()
    return recall_report(Scan.open(state.vision, opened.paths.plan), gone=state.gone.tolist())


def _print(report: VerifyReport, measured: RecallReport | None) -> None:
    for text in report.problems:
        click.echo(f"problem: {text}")
    for text in report.notes:
        click.echo(f"note: {text}")
    for text in report.repaired:
        click.echo(f"repaired: {text}")
    if measured is not None:
        click.echo(str(measured))
    checked = ", ".join(
        [
            count(report.videos, "video"),
            count(report.segments, "segment"),
            count(report.rows, "row"),
            count(report.cues, "cue"),
        ]
    )
    verdict = "nothing wrong" if report.clean else f"{count(len(report.problems), 'problem')}; see --repair"
    options.say(f"checked {checked}: {verdict}")
