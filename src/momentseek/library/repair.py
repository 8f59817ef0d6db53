"""Mending what ``verify`` found: nothing that is whole is lost, and what is not is made again from the videos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from momentseek.library import encoding, ledger
from momentseek.library.catalog import SegmentRow
from momentseek.library.ingest.speech import fill_speech
from momentseek.library.merge import joined_row
from momentseek.library.salvage import salvaged
from momentseek.library.verify import VerifyReport, verify
from momentseek.tables import count

if TYPE_CHECKING:
    from momentseek.library.store import LibraryStore

DAMAGED = "its vectors were damaged; momentseek retry makes them again"


def repair(library: LibraryStore, report: VerifyReport) -> VerifyReport:
    """Keep what is sound of damaged segments, make vectors of cues anew, and let ``retry`` add again the videos that
    lost theirs.

    Returns a new report, with what was done. The caller holds the lock.
    """
    catalog, done = library.catalog, []
    if report.damaged:
        kept = _replace(library, report.damaged)
        done.append(f"{count(len(report.damaged), 'damaged segment')} dropped, {count(kept, 'sound video')} of it kept")
        report = verify(catalog, library.place)
    with catalog.changes():
        if not report.words:
            catalog.rebuild_words()
            done.append("the word indices were made anew")
        for id in report.strangers:
            catalog.run("INSERT OR IGNORE INTO gone VALUES (?)", (id,))
        for video in catalog.videos(report.broken):
            catalog.remove_video(video.id)
            ledger.note_failure(catalog, video.path, video.name, DAMAGED, None)
    if report.broken:
        done.append(f"{count(len(report.broken), 'video')} taken out, to be made again by: momentseek retry")
    if report.silent:
        if library.speech_encoder is None:
            done.append("vectors of what is said need the text encoder (pip install 'momentseek[offline]')")
        else:
            fill_speech(library, [id for id in report.silent if id not in report.broken])
            done.append(f"what is said in {count(len(report.silent), 'video')} was encoded anew")
    if orphans := library.place.drop_orphans(catalog):
        done.append(f"{count(orphans, 'file')} that nothing named deleted")
    again = verify(catalog, library.place)
    again.repaired = done
    return again


def _replace(library: LibraryStore, damaged: Sequence[SegmentRow]) -> int:
    """Put segments of what is sound in the place of damaged ones; returns how many videos' rows were kept."""
    catalog, place = library.catalog, library.place
    clips = {video.id: video.clips for video in catalog.videos()}
    rows = {
        "vision": clips,
        "speech": dict(catalog.rows("SELECT video, count(*) FROM cues GROUP BY video")),
    }
    if any(row.stream == "spans" for row in damaged):  # how many there are only the model's copy knows
        spans = encoding.span_rows(catalog, library.path)
        rows["spans"] = {id: spans(count) for id, count in clips.items()}
    fresh = []
    for row in damaged:
        encoder = catalog.encoder(row.stream)
        if encoder is not None and (parts := salvaged(place, row, rows[row.stream], encoder.dim)):
            fresh.append(joined_row(place, row.stream, parts))
    with catalog.changes():
        for row in damaged:
            catalog.remove_segment(row.name)
        for row in fresh:
            catalog.insert_segment(row)
    return sum(row.videos for row in fresh if row.stream == "vision")
