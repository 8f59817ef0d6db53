"""``momentseek status``, ``list``, ``remove``, ``verify`` and ``compact``: inspect and maintain a library."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.add import ADD_WORDS_SETTING
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.file_stamp import path_text, printable
from momentseek.library.location import library_folder, place_text
from momentseek.library.paths import clock_text
from momentseek.library.reader import Status
from momentseek.library.scan.recall import RecallReport, recall_report
from momentseek.library.scan.scan import Scan
from momentseek.library.scan.spans import SpanRecall, measure_span_recall
from momentseek.library.scrub import MEGABYTES_PER_SECOND
from momentseek.library.store import LibraryStore
from momentseek.library.verify import VerifyReport
from momentseek.library.video import Failure, Video

CHANGED_NOTE = "the file has changed since it was added, and cannot be read now"


@click.command()
@options.library
@click.option("--failed", is_flag=True, help="List the files that could not be added, and why.")
@options.as_json
def status(library: str | None, failed: bool, as_json: bool) -> None:
    """Show what the library contains, and how many files could not be added.

    \b
    Which files could not be added, and why:
      momentseek status --failed
    """
    with open_store(library_folder(library), create=False) as opened:
        if failed:
            _show_failures(opened.failures(), library, as_json)
            return
        found, words = opened.status(), opened.catalog.get(ADD_WORDS_SETTING)
    if as_json:
        options.echo_json({**asdict(found), "path": place_text(found.path)})
    else:
        click.echo(status_text(found, library, words))


def status_text(found: Status, library: str | None = None, add_words: Sequence[str] | None = None) -> str:
    """Return the status as text, with the commands to run next on this library."""

    def run(*words: str) -> str:
        return options.command_line(words, library)

    lines = [
        f"library   {printable(place_text(found.path))}",
        f"videos    {found.videos:,} ({clock_text(found.seconds)})",
        f"clips     {found.clips:,} of {found.clip_seconds:g} s",
        f"cues      {found.cues:,}",
        *(f"{encoder.stream:<9} {encoder.name} ({encoder.dim} columns)" for encoder in found.encoders),
        *_second_line(found, run("encode")),
        *_text_lines(found, run("transcribe"), run("ocr", "run"), run("sounds", "run")),
        f"size      {options.size_text(found.size)}, {count(found.segments, 'segment')}",
    ]
    if found.failures:
        lines.append(f"failed    {count(found.failures, 'file')} ({run('status', '--failed')})")
    if found.changed:
        lines.append(
            f"changed   {count(found.changed, 'video')} since added, and cannot be read now; "
            "searches find the old moments"
        )
    if found.missing:
        lines.append(f"missing   {count(found.missing, 'video')} whose file is gone ({run('remove', '--missing')})")
    if found.noted:
        lines.append(f"partly    {count(found.noted, 'video')} used only in part; why: {run('list', '--long')}")
    if found.gone:
        lines.append(f"removed   {count(found.gone, 'video')} whose vectors take space ({run('compact')})")
    if found.unfinished:
        add = f"{run(*add_words)} continues" if add_words else "add the same folder again to continue"
        lines.append(f"adding    now, or interrupted ({add})")
    if found.reencoding:
        again = run("reencode", "--encoder", found.reencoding)
        lines.append(f"encoding  again by {found.reencoding} now, or interrupted ({again} continues)")
    return "\n".join(lines)


def _second_line(found: Status, encode: str) -> list[str]:
    """Return the progress of the second encoder; ``encode`` is the command that continues it."""
    if not found.second_encoder:
        return []
    rest = f"; the rest: {encode}" if found.unseen else ""
    failed = f", {found.unseeable:,} failed" if found.unseeable else ""
    pictured = found.seen + found.unseen + found.unseeable  # audio recordings have no pictures
    return [f"encoded   {found.seen:,} of {count(pictured, 'video')} by {found.second_encoder}{failed}{rest}"]


def _text_lines(found: Status, transcribe: str, ocr: str, listen: str) -> list[str]:
    """Return lines on speech, text, descriptions and sounds; the arguments are the commands that continue each."""
    lines = []
    if found.heard or found.unhearable:
        failed = f", {found.unhearable:,} failed" if found.unhearable else ""
        length = clock_text(found.heard_seconds)
        lines.append(f"speech    {count(found.heard, 'video')} transcribed ({length}){failed}")
    if found.unheard:
        lines.append(f"no words  {count(found.unheard, 'video')} with sound and without subtitles ({transcribe})")
    if found.read or found.unreadable:
        failed = f", {found.unreadable:,} failed" if found.unreadable else ""
        rest = f", {found.unread:,} not yet ({ocr})" if found.unread else ""
        read = f"{count(found.read, 'video')} ({clock_text(found.read_seconds)}), {count(found.lines, 'line')}"
        lines.append(f"text      {read}{rest}{failed}")
    if found.described or found.captions or found.undescribable:
        failed = f", {found.undescribable:,} failed" if found.undescribable else ""
        rest = f", {found.undescribed:,} not yet (docs/captions.md)" if found.undescribed else ""
        length, scenes = clock_text(found.described_seconds), count(found.captions, "scene")
        lines.append(f"described {count(found.described, 'video')} ({length}), {scenes}, by a model{rest}{failed}")
    if found.listened or found.unlistenable:
        failed = f", {found.unlistenable:,} failed" if found.unlistenable else ""
        rest = f", {found.unlistened:,} not yet ({listen})" if found.unlistened else ""
        length, sounds = clock_text(found.listened_seconds), count(found.sounds, "sound")
        lines.append(f"sounds    {count(found.listened, 'video')} ({length}), {sounds}{rest}{failed}")
    return lines


def _show_failures(failures: list[Failure], library: str | None, as_json: bool) -> None:
    if as_json:
        options.echo_json([asdict(failure) for failure in failures])
        return
    for failure in failures:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(failure.at))
        tries = f", {failure.tries} times" if failure.tries > 1 else ""
        click.echo(f"{printable(failure.path)}: {failure.reason} ({when}{tries})")
    retry = options.command_line(["retry"], library)
    options.say(f"{count(len(failures), 'file')} failed" + (f"; try again: {retry}" if failures else ""))


@click.command("list")
@click.argument("pattern", metavar="[GLOB]", required=False)
@options.library
@click.option("--long", "-L", "long", is_flag=True, help="Also show dates, paths and problems of files.")
@options.as_json
def list_videos(pattern: str | None, library: str | None, long: bool, as_json: bool) -> None:
    """List the library's videos, or those whose name matches GLOB (case-insensitive).

    \b
    Holiday films:
      momentseek list '*holiday*'
    """
    with open_store(library_folder(library), create=False) as opened:
        videos = opened.catalog.videos(opened.catalog.ids(names=[pattern]) if pattern else None)
    if as_json:
        options.echo_json([_video_values(video) for video in videos])
    elif videos:
        _show_videos(videos, long)
    else:
        add = options.command_line(["add", "FOLDER"], library)
        options.say("no video" + (f" matches {pattern!r}" if pattern else f"; add some: {add}"))


def _video_values(video: Video) -> dict[str, Any]:
    values = {**asdict(video), "date": video.date}
    return {k: path_text(v) if k == "path" else str(v) if isinstance(v, Fraction) else v for k, v in values.items()}


def _show_videos(videos: list[Video], long: bool) -> None:
    header = ["name", "length", "size", "clips", "cues", "shots", *(["date", "path", "notes"] if long else [])]
    rows = []
    for video in videos:
        counts = video.clips, video.cues, len(video.shots) + 1
        size = f"{video.width}x{video.height}" if video.width else "sound"
        row = [printable(video.name), clock_text(video.duration), size]
        row += [f"{number:,}" for number in counts]
        if long:
            notes = [CHANGED_NOTE, *video.notes] if video.changed else video.notes
            day = time.strftime("%Y-%m-%d", time.localtime(video.date))
            row += [f"{day} ({'file' if video.recorded is None else 'recorded'})", printable(video.path)]
            row.append(printable("; ".join(notes)))
        rows.append(row)
    options.echo_table(header, rows, align="lrrrrrll" if long else "lr")


@click.command()
@click.argument("patterns", metavar="[PATH|GLOB]...", nargs=-1)
@options.library
@click.option("--missing", is_flag=True, help="Remove the videos whose file is missing.")
@click.option("--dry-run", is_flag=True, help="Only show which videos would be removed.")
@click.option("--yes", "-y", is_flag=True, help="Remove without asking.")
@options.wait
@options.as_json
def remove(
    patterns: tuple[str, ...], library: str | None, missing: bool, dry_run: bool, yes: bool, wait: float, as_json: bool
) -> None:
    """Remove videos from the library; their files are not deleted.

    Give a video's path, the folder that contains it, or its name, which may be a pattern.

    \b
    Preview, then remove all drafts:
      momentseek remove 'draft*' --dry-run
      momentseek remove 'draft*' --yes
    """
    if not patterns and not missing:
        raise MomentseekError("no videos are named; give a path, a folder, a pattern for names, or --missing")
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        videos = opened.matching(patterns, missing=missing)
        if not as_json:
            for video in videos:
                click.echo(f"{printable(video.name)}  {printable(video.path)}")
        if videos and not dry_run:
            if not yes:
                if not sys.stdin.isatty():
                    raise MomentseekError("there is no terminal to ask on; use --yes to remove them, or --dry-run")
                click.confirm(f"remove {count(len(videos), 'video')} from the library?", abort=True, err=True)
            videos = opened.remove([video.path for video in videos])
    if as_json:
        options.echo_json({"removed": [] if dry_run else [path_text(v.path) for v in videos], "matched": len(videos)})
    compact = options.command_line(["compact"], library)
    done = "would be removed" if dry_run else f"removed; `{compact}` frees their space"
    options.say(f"{count(len(videos), 'video')} {done}" if videos else "no video to remove")


@click.command()
@options.library
@click.option(
    "--repair",
    is_flag=True,
    help="Repair what can be repaired. Videos whose vectors are lost are removed; `retry` adds them again.",
)
@click.option(
    "--scrub",
    "megabytes",
    type=click.FloatRange(min=0, min_open=True),
    is_flag=False,
    flag_value=MEGABYTES_PER_SECOND,
    metavar="[MB/S]",
    help="Only read all files at MB/S (default: 50) and compare checksums; resumes where the last scrub stopped.",
)
@click.option("--recall", is_flag=True, help="Also measure the recall of the approximate search against the exact one.")
@options.wait
@options.as_json
def verify(
    library: str | None, repair: bool, megabytes: float | None, recall: bool, wait: float, as_json: bool
) -> None:
    """Check every file and row of the library.

    It checks the database and its indices, the hash, header, counts and vectors of every segment,
    and that each video has one row per clip and one per cue. The exit code is 1 if it finds a
    problem.

    \b
    Repair a library after a disk fault:
      momentseek verify --repair && momentseek retry
    Every night, from a timer:
      momentseek verify --scrub
    """
    if megabytes is not None:
        if repair or recall:
            raise click.UsageError("--scrub only reads; leave --repair and --recall out.")
        _scrub(library_folder(library), megabytes, as_json)
        return
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = opened.verify(repair=repair)
        measured, spans = _recall(opened) if recall and report.clean else (None, None)
    if as_json:
        kept = ("videos", "segments", "rows", "cues", "problems", "notes", "repaired")
        values = {key: value for key, value in asdict(report).items() if key in kept}
        found = None if measured is None else asdict(measured) | ({"spans": asdict(spans)} if spans else {})
        options.echo_json({**values, "clean": report.clean, "recall": found})
    else:
        _show_report(report, *(str(one) for one in (measured, spans) if one is not None))
    if not report.clean:
        sys.exit(1)


def _scrub(folder: Path, megabytes: float, as_json: bool) -> None:
    with open_store(folder, create=False) as opened:
        report = opened.scrub(megabytes)
    if as_json:
        options.echo_json(asdict(report))
    else:
        for text in report.problems:
            click.echo(f"problem: {text}")
        read = f"{count(report.files, 'file')}, {options.size_text(report.bytes)}"
        how = " (resumed where the last scrub stopped)" if report.resumed else ""
        wrong = f"{count(len(report.problems), 'problem')}; see verify --repair"
        verdict = wrong if report.problems else "nothing wrong"
        options.say(f"read {read}{how}: {verdict}")
    if report.problems:
        sys.exit(1)


def _recall(opened: LibraryStore) -> tuple[RecallReport, SpanRecall | None]:
    """Measure the recall of the best clips and, if the library's model scores spans, of the best spans."""
    state = opened.snapshot()
    scan = Scan.open(state.vision, opened.paths.plan)
    head = opened.encoders.model.about.curves if opened.encoders.has_model and opened.encoders.model else None
    spans = None if head is None else measure_span_recall(scan, head, gone=state.gone)
    return recall_report(scan, gone=state.gone.tolist()), spans


def _show_report(report: VerifyReport, *measured: str) -> None:
    for kind, texts in (("problem", report.problems), ("note", report.notes), ("repaired", report.repaired)):
        for text in texts:
            click.echo(f"{kind}: {text}")
    for text in measured:
        click.echo(text)
    counts = (report.videos, "video"), (report.segments, "segment"), (report.rows, "row"), (report.cues, "cue")
    checked = ", ".join(count(number, what) for number, what in counts)
    verdict = "nothing wrong" if report.clean else f"{count(len(report.problems), 'problem')}; see --repair"
    options.say(f"checked {checked}: {verdict}")


@click.command()
@options.library
@options.wait
@options.as_json
def compact(library: str | None, wait: float, as_json: bool) -> None:
    """Free the space of removed and replaced videos.

    Searches keep working meanwhile. You can stop at any time without losing anything.

    \b
    After `momentseek remove`:
      momentseek compact
    """
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        done = opened.compact()
    if as_json:
        options.echo_json(asdict(done))
    options.say(
        f"{count(done.videos, 'removed video')} dropped, {count(done.segments, 'segment')} rewritten; "
        f"{options.size_text(done.before)} before, {options.size_text(done.after)} now"
    )
