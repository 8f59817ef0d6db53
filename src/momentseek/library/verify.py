"""Checking every file and row of a library."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library import encoders, segments
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.checksums import checksum
from momentseek.library.damage import proven_videos
from momentseek.library.file_stamp import printable
from momentseek.library.paths import LibraryPaths
from momentseek.library.segments import NEW_STREAM_SUFFIX, Segment
from momentseek.tables import count

ROWS_PER_CHECK = 1 << 15
"""Rows checked at a time."""
MAX_LENGTH_ERROR = 2e-3
"""How far the length of a stored vector may be from 1."""

ALTERED_BYTES = "its bytes are not those that were written"


@dataclass
class VerifyReport:
    """Numbers of what was checked, what is wrong (``problems``), and what is only worth knowing (``notes``)."""

    videos: int = 0
    segments: int = 0
    rows: int = 0
    cues: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    damaged: list[SegmentRow] = field(default_factory=list)
    """Rows of the catalog about segments that cannot be used."""
    broken: dict[int, str] = field(default_factory=dict)
    """Videos whose vectors are missing, doubled or miscounted, and what is wrong."""
    silent: list[int] = field(default_factory=list)
    """Videos whose cues have no vectors."""
    strangers: list[int] = field(default_factory=list)
    """Ids in segments that the catalog does not know."""
    words: bool = True
    """Whether the word indices agree with their tables."""

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong with the library."""
        return not self.problems


def verify_library(catalog: Catalog, paths: LibraryPaths) -> VerifyReport:
    """Check a whole library: the database and its indices, each segment's hash, header, counts and vectors, and that
    every video has one row per clip and one per cue.
    """
    report = VerifyReport()
    wrong = catalog.problems()
    report.words = not any("words" in text for text in wrong)
    report.problems += [f"{catalog.path}: {text}" for text in wrong]
    with catalog.view():
        rows, gone, videos = catalog.segments(), set(catalog.gone().tolist()), catalog.videos()
        counted = dict(catalog.rows("SELECT video, count(*) FROM cues GROUP BY video"))
        used = [catalog.encoder(stream) for stream in segments.VECTOR_STREAMS]
        dims = {encoder.stream: encoder.dim for encoder in used if encoder is not None}
    report.videos, report.segments, report.cues = len(videos), len(rows), sum(counted.values())
    held: dict[str, Counter[int]] = {stream: Counter() for stream in segments.VECTOR_STREAMS}
    known = {video.id for video in videos}
    for row in rows:
        for found in _sound_parts(paths, row, dims, report):
            report.rows += found.rows
            if row.stream in held:
                _count(found, held[row.stream], gone, known, report)
    spans = _span_rows(catalog, paths, report) if "spans" in dims else None
    for video in videos:
        clips, said = held["vision"][video.id], counted.get(video.id, 0)
        if clips != video.clips:
            report.broken[video.id] = f"has {count(clips, 'row')} of vectors for {count(video.clips, 'clip')}"
        elif spans is not None and held["spans"][video.id] != spans(clips):
            report.broken[video.id] = (
                f"has {count(held['spans'][video.id], 'row')} for spans, of {count(clips, 'clip')}"
            )
        if said != video.cues:
            report.broken[video.id] = f"has {count(said, 'cue')}, but should have {video.cues:,}"
        elif "speech" in dims and held["speech"][video.id] != said:
            if held["speech"][video.id]:
                report.broken[video.id] = f"has {held['speech'][video.id]:,} rows for {count(said, 'cue')}"
            else:
                report.silent.append(video.id)
                report.problems.append(f"{printable(video.path)}: what is said has no vectors")
    names = {video.id: printable(video.path) for video in videos}
    report.problems += [f"{names[id]}: {text}" for id, text in report.broken.items() if id in names]
    _add_notes(catalog, paths, report)
    for video in videos:
        if not os.path.exists(video.path):
            report.notes.append(f"{printable(video.path)}: the file is not there (momentseek remove --missing)")
    return report


def _span_rows(catalog: Catalog, paths: LibraryPaths, report: VerifyReport) -> Callable[[int], int] | None:
    try:
        return encoders.span_rows(catalog, paths.folder)
    except MomentseekError as e:
        report.problems.append(str(e))
        return None


def _sound_parts(paths: LibraryPaths, row: SegmentRow, dims: dict[str, int], report: VerifyReport) -> list[Segment]:
    """What of a segment is proven to be as it was written; what is wrong is reported."""
    path = paths.segments / f"{row.name}{segments.SEGMENT_SUFFIX}"
    kept: list[Segment] = []
    try:
        found = segments.read_segment(paths.segments, row.name)
        proven = proven_videos(paths.segments, found)
        wrong = next(_faults(found, row, dims), None) if proven.all() else ALTERED_BYTES
        if wrong is None and checksum(path) != row.name:
            wrong = ALTERED_BYTES
        if wrong is None or wrong == ALTERED_BYTES:
            kept = segments.parts_without(found, found.ids[~proven])
    except MomentseekError as e:
        wrong = str(e).split(": ", 1)[-1].split("; run", 1)[0]
    except OSError as e:
        wrong = f"cannot be read ({e.strerror})"
    if wrong is not None:
        report.damaged.append(row)
        report.problems.append(f"{path}: {wrong}")
    return kept


def _faults(found: Segment, row: SegmentRow, dims: dict[str, int]) -> Iterator[str]:
    """What is wrong with a segment, one sentence each."""
    if found.stream != row.stream.removesuffix(NEW_STREAM_SUFFIX):
        yield f"holds {found.stream}, not {row.stream}"
    if (len(found.ids), found.rows) != (row.videos, row.rows):
        yield f"has {len(found.ids):,} videos and {found.rows:,} rows, but should have {row.videos:,} and {row.rows:,}"
    if not has_sound_offsets(found):
        yield "its offsets are not in order"
    if not has_equal_arrays(found):
        yield "its arrays differ in length"
    if not row.stream.endswith(NEW_STREAM_SUFFIX) and found.dim != dims.get(row.stream, found.dim):
        yield f"has vectors of {found.dim} columns, but its encoder gives {dims[row.stream]}"
    for at in range(0, found.rows, ROWS_PER_CHECK):
        yield from (text for text, rows in row_faults(found, at, at + ROWS_PER_CHECK).items() if rows.any())


def has_sound_offsets(found: Segment) -> bool:
    """Whether a segment's offsets begin at 0, end at its rows and never fall, one more of them than videos."""
    offsets = found.offsets
    return bool(
        len(offsets) == len(found.ids) + 1
        and offsets[0] == 0
        and offsets[-1] == found.rows
        and (np.diff(offsets) >= 0).all()
    )


def has_equal_arrays(found: Segment) -> bool:
    """Whether both copies of a segment's vectors have the same shape, and as many rows as there are scales."""
    return found.codes.shape == found.half.shape and len(found.half) == found.rows


def row_faults(found: Segment, first: int, last: int) -> dict[str, NDArray[np.bool_]]:
    """What may be wrong with the rows from ``first`` to ``last`` of a segment, and in which rows it is.

    >>> two = segments.build_segment("vision", [1], [np.array([[0.6, 0.8], [3, 4]], np.float32)])
    >>> [(text, rows.tolist()) for text, rows in row_faults(two, 0, 2).items() if rows.any()]
    [('holds vectors that are not of length 1', [False, True])]
    """
    rows = found.half[first:last].astype(np.float32)
    scales = found.scales[first:last, None]
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(rows, axis=1)
        empty = ~np.isfinite(length) | (length == 0)
        long = (np.abs(length - 1) > MAX_LENGTH_ERROR) & (found.stream != "spans")
        differ = ~(np.abs(found.codes[first:last] * scales - rows) <= scales * 0.51 + 1e-3).all(axis=1)
    return {
        "holds vectors that are not finite or of length 0": empty,
        "holds vectors that are not of length 1": long,
        "its two copies of a vector differ": differ,
    }


def _count(found: Segment, held: Counter[int], gone: set[int], known: set[int], report: VerifyReport) -> None:
    for id, rows in zip(found.ids.tolist(), np.diff(found.offsets).tolist(), strict=True):
        if id in gone:
            continue
        if id not in known:
            report.strangers.append(id)
            report.problems.append(f"segment {found.name} holds a video {id} that the catalog does not know")
        elif id in held:
            report.broken[id] = "has its vectors twice"
        else:
            held[id] = rows


def _add_notes(catalog: Catalog, paths: LibraryPaths, report: VerifyReport) -> None:
    if orphans := len(paths.orphans(catalog)):
        report.notes.append(
            f"{count(orphans, 'file')} of vectors that nothing names, left by a writer that was stopped"
        )
    if gone := len(catalog.gone()):
        report.notes.append(f"{count(gone, 'removed video')} whose vectors take space (momentseek compact)")
    if catalog.get("adding") is not None:
        report.notes.append("the last add was interrupted; the next one continues from there")
