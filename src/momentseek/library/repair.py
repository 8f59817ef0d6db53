"""Mending what ``verify`` found: nothing that is whole is lost, and what is not is made again from the videos.

Every vector is kept twice, as int8 and as float16, and has length 1 (but for those of ``spans``): damage to either
copy, or to the scale between them, shows in that row. So of a damaged segment the videos all of whose rows are sound
are kept, and only the others are made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library import known_files, segments
from momentseek.library.catalog import SegmentRow
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
    has_sound_offsets,
    row_faults,
    verify_library,
)
from momentseek.tables import count

DAMAGED_VECTORS = "its vectors were damaged; momentseek retry makes them again"


def repair_library(library: LibraryReader, report: VerifyReport) -> VerifyReport:
    """Keep what is sound of damaged segments, make vectors of cues anew, and let ``retry`` add again the videos that
    lost theirs.

    Returns a new report, with what was done. The caller holds the lock.
    """
    catalog, done = library.catalog, []
    if report.damaged:
        kept = _replace_damaged(library, report.damaged)
        done.append(f"{count(len(report.damaged), 'damaged segment')} dropped, {count(kept, 'sound video')} of it kept")
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
    if report.silent:
        if (speech := library.encoders.speech) is None:
            done.append("vectors of what is said need the text encoder (pip install 'momentseek[offline]')")
        else:
            fill_speech(catalog, library.paths, speech, [id for id in report.silent if id not in report.broken])
            done.append(f"what is said in {count(len(report.silent), 'video')} was encoded anew")
    if orphans := library.paths.drop_orphans(catalog):
        done.append(f"{count(orphans, 'file')} that nothing named deleted")
    again = verify_library(catalog, library.paths)
    again.repaired = done
    return again


def _replace_damaged(library: LibraryReader, damaged: Sequence[SegmentRow]) -> int:
    """Put segments of what is sound in the place of damaged ones; returns how many videos' rows were kept."""
    catalog, paths = library.catalog, library.paths
    clips = {video.id: video.clips for video in catalog.videos()}
    rows = {
        "vision": clips,
        "speech": dict(catalog.rows("SELECT video, count(*) FROM cues GROUP BY video")),
    }
    if any(row.stream == "spans" for row in damaged):  # how many there are only the model's copy knows
        spans = span_rows(catalog, library.path)
        rows["spans"] = {id: spans(count) for id, count in clips.items()}
    fresh = []
    for row in damaged:
        encoder = catalog.encoder(row.stream)
        if encoder is not None and (parts := _sound_videos(paths, row, rows[row.stream], encoder.dim)):
            fresh.append(store_joined_segment(paths, row.stream, parts))
    with catalog.changes():
        for row in damaged:
            catalog.remove_segment(row.name)
        for row in fresh:
            catalog.insert_segment(row)
    return sum(row.videos for row in fresh if row.stream == "vision")


def _sound_videos(paths: LibraryPaths, row: SegmentRow, wanted: Mapping[int, int], dim: int) -> list[Segment]:
    """The videos of a damaged segment that are sound: those of ``wanted`` with as many rows as it says; as views."""
    try:
        found = segments.read_segment(paths.segments, row.name)
        if not (has_sound_offsets(found) and has_equal_arrays(found)) or found.stream != row.stream or found.dim != dim:
            return []
        good = _are_sound(found, wanted)
    except (MomentseekError, OSError):
        return []
    return segments.parts_without(found, found.ids[~good]) if len(set(found.ids.tolist())) == len(found.ids) else []


def _are_sound(found: Segment, wanted: Mapping[int, int]) -> NDArray[np.bool_]:
    bad = [
        np.logical_or.reduce(list(row_faults(found, at, at + ROWS_PER_CHECK).values()))
        for at in range(0, found.rows, ROWS_PER_CHECK)
    ]
    before = np.concatenate([[0], np.cumsum(np.concatenate(bad))]) if bad else np.zeros(1, np.int64)
    counts = np.diff(found.offsets).tolist()
    listed = np.array([wanted.get(id) == n for id, n in zip(found.ids.tolist(), counts, strict=True)], np.bool_)
    clean: NDArray[np.bool_] = before[found.offsets[1:]] == before[found.offsets[:-1]]
    return clean & listed
