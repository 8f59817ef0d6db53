"""Mending what ``verify`` found: nothing that is proven whole is lost, and the rest is made again from the videos.

Of a damaged segment the videos are kept whose checksums are right, also where its header or its end is lost: what the
header must say follows from the catalog. Where a release wrote no checksums, nothing of a damaged file is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library import known_files, segments
from momentseek.library.catalog import SegmentRow
from momentseek.library.damage import proven_videos
from momentseek.library.encoders import span_rows
from momentseek.library.ingest.speech import fill_speech
from momentseek.library.paths import LibraryPaths
from momentseek.library.reader import LibraryReader
from momentseek.library.segment_merge import store_joined_segment
from momentseek.library.segments import Segment
from momentseek.library.verify import (
    ROWS_PER_CHECK,
    VerifyReport,
    has_equal_arrays,
    row_faults,
    verify_library,
)
from momentseek.tables import count

STREAM_WORDS = {"vision": "what is seen", "speech": "what is said", "spans": "spans"}
DAMAGED_VECTORS = "its vectors were damaged; momentseek retry makes them again"


def repair_library(library: LibraryReader, report: VerifyReport) -> VerifyReport:
    """Keep what is sound of damaged segments, make vectors of cues anew, and let ``retry`` add again the videos that
    lost theirs.

    Returns a new report, with what was done. The caller holds the lock.
    """
    catalog, done = library.catalog, []
    if report.damaged:
        done += _replace_damaged(library, report.damaged)
        report = verify_library(catalog, library.paths)
    with catalog.changes():
        if not report.words:
            catalog.rebuild_words()
            done.append("the word indices were made anew")
        for id in report.strangers:
            catalog.run("INSERT OR IGNORE INTO gone VALUES (?)", (id,))
        for video in catalog.videos(report.broken):
            catalog.remove_video(video.id)
            known_files.note_failure(catalog, video.path, video.name, DAMAGED_VECTORS, None)
    if report.broken:
        done.append(f"{count(len(report.broken), 'video')} taken out, to be made again by: momentseek retry")
    if set(report.silent) - set(report.broken):
        if (speech := library.encoders.speech) is None:
            done.append("vectors of what is said need the text encoder (pip install 'momentseek[offline]')")
        else:
            anew = [id for id in report.silent if id not in report.broken]
            fill_speech(catalog, library.paths, speech, anew)
            done.append(f"what is said in {count(len(anew), 'video')} was encoded anew")
    if orphans := library.paths.drop_orphans(catalog):
        done.append(f"{count(orphans, 'file')} that nothing named deleted")
    again = verify_library(catalog, library.paths)
    again.repaired = done
    return again


def _replace_damaged(library: LibraryReader, damaged: Sequence[SegmentRow]) -> list[str]:
    """Put segments of what is sound in the place of damaged ones; returns what was done, a line for each of them."""
    catalog, paths = library.catalog, library.paths
    clips = {video.id: video.clips for video in catalog.videos()}
    rows = {
        "vision": clips,
        "speech": dict(catalog.rows("SELECT video, count(*) FROM cues GROUP BY video")),
    }
    if any(row.stream == "spans" for row in damaged):  # how many there are only the model's copy knows
        spans = span_rows(catalog, library.path)
        rows["spans"] = {id: spans(count) for id, count in clips.items()}
    fresh, done = [], []
    for row in damaged:
        encoder = catalog.encoder(row.stream)
        parts = [] if encoder is None else _sound_videos(paths, row, rows[row.stream], encoder.dim)
        if parts:
            fresh.append(store_joined_segment(paths, row.stream, parts))
        kept = sum(len(part.ids) for part in parts)
        what = STREAM_WORDS.get(row.stream, "an unfinished reencode")
        done.append(f"a damaged segment of {what} dropped; {kept:,} of its {count(row.videos, 'video')} kept")
    with catalog.changes():
        for row in damaged:
            catalog.remove_segment(row.name)
        for row in fresh:
            catalog.insert_segment(row)
    return done


def _sound_videos(paths: LibraryPaths, row: SegmentRow, wanted: Mapping[int, int], dim: int) -> list[Segment]:
    """The videos of a damaged segment that are sound: those of ``wanted`` with as many rows as it says; as views."""
    best: list[Segment] = []
    for found in _readings(paths, row, dim):
        if found.stream == row.stream and found.dim == dim and has_equal_arrays(found):
            good = proven_videos(paths.segments, found) & _are_sound(found, wanted)
            parts = segments.parts_without(found, found.ids[~good])
            best = max(best, parts, key=lambda parts: sum(len(part.ids) for part in parts))
    return best


def _readings(paths: LibraryPaths, row: SegmentRow, dim: int) -> Iterator[Segment]:
    """A damaged file as its own header says, and as its header should say."""
    with suppress(MomentseekError):
        yield segments.read_segment(paths.segments, row.name)
    with suppress(OSError):
        yield segments.read_by_shape(paths.segments, row.name, row.stream, row.videos, row.rows, dim)


def _are_sound(found: Segment, wanted: Mapping[int, int]) -> NDArray[np.bool_]:
    """Which videos have as many rows as they should, all of them vectors that may be."""
    bad = [
        np.logical_or.reduce(list(row_faults(found, at, at + ROWS_PER_CHECK).values()))
        for at in range(0, found.rows, ROWS_PER_CHECK)
    ]
    before = np.concatenate([[0], np.cumsum(np.concatenate(bad))]) if bad else np.zeros(1, np.int64)
    first, last = (np.clip(edge, 0, found.rows) for edge in (found.offsets[:-1], found.offsets[1:]))
    counts = np.diff(found.offsets).tolist()
    listed = np.array([wanted.get(id) == n for id, n in zip(found.ids.tolist(), counts, strict=True)], np.bool_)
    clean: NDArray[np.bool_] = before[last] == before[first]
    return clean & listed
