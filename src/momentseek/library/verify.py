"""Check every file and row of a library, and repair what can be repaired.

Repair keeps everything whose checksum is right, and makes the rest again from the videos. Intact videos of a damaged
segment are kept even if its header or its end is lost, because the header can be derived from the catalog.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library import encoders, known_files, segments
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.cue_vectors import fill_speech, vector_texts
from momentseek.library.damaged_rows import DamagedRows, find_damaged_rows, repair_rows, segment_row
from momentseek.library.database import SPEECH
from momentseek.library.encoders import span_rows
from momentseek.library.file_stamp import printable
from momentseek.library.merging import proven_videos, store_joined_segment
from momentseek.library.paths import LibraryPaths
from momentseek.library.reader import LibraryReader
from momentseek.library.scan.plan import drop_plan, plan_fault
from momentseek.library.segments import NEW_STREAM_SUFFIX, Segment, checksum
from momentseek.library.video import Video
from momentseek.recognition.encoders.fused import SHARE

ROWS_PER_CHECK = 1 << 15
"""Number of rows checked at a time."""
VIDEOS_PER_CHECK = 10_000
"""Number of videos of the catalog checked at a time."""
MAX_LENGTH_ERROR = 2e-3
"""How far the length of a stored vector may be from 1."""

ALTERED_BYTES = "its bytes are not those that were written"


@dataclass
class VerifyReport:
    """Counts of what was checked, what is wrong (``problems``), and remarks that need no repair (``notes``)."""

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
    damaged_rows: list[DamagedRows] = field(default_factory=list)
    """Damaged rows of the catalog; if there are any, nothing else is checked."""
    plan: str | None = None
    """What is wrong with the plan of a large library."""
    words: bool = True
    """Whether the word indices agree with their tables."""

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong with the library."""
        return not self.problems


def verify_library(catalog: Catalog, paths: LibraryPaths) -> VerifyReport:
    """Check a whole library.

    This covers the database and its indices; the hash, header, counts and vectors of each segment; and that every video
    has one row per clip, and one per cue and passage of its speech.
    """
    report = VerifyReport()
    wrong = catalog.problems()
    report.words = not any(text.startswith("the index ") for text in wrong)
    report.damaged_rows = find_damaged_rows(catalog)
    report.problems += [f"{catalog.path}: {text}" for text in (*wrong, *map(str, report.damaged_rows))]
    if report.damaged_rows:
        return report
    with catalog.view():
        rows, gone, known = catalog.segments(), catalog.gone(), catalog.ids()
        report.videos, report.segments, report.cues = len(known), len(rows), catalog.count_cues()
        used = [catalog.encoder(stream) for stream in segments.VECTOR_STREAMS]
        dims = {encoder.stream: encoder.dim for encoder in used if encoder is not None}
    held = {stream: RowCounts(known) for stream in segments.VECTOR_STREAMS}
    for row in rows:
        for found in _sound_parts(paths, row, dims, report):
            report.rows += found.rows
            if row.stream in held:
                held[row.stream].count(found, gone, report)
    spans = _span_rows(catalog, paths, report) if "spans" in dims else None
    missing: list[str] = []
    for video, said in _videos_and_cues(catalog, known):
        clips = held["vision"][video.id]
        if not os.path.exists(video.path):
            missing.append(f"{printable(video.path)}: the file does not exist (momentseek remove --missing)")
        if clips != video.clips:
            report.broken[video.id] = f"has {count(clips, 'row')} of vectors for {count(video.clips, 'clip')}"
        elif spans is not None and held["spans"][video.id] != spans(clips):
            report.broken[video.id] = (
                f"has {count(held['spans'][video.id], 'row')} for spans, of {count(clips, 'clip')}"
            )
        if said != video.cues:
            report.broken[video.id] = f"has {count(said, 'cue')}, but should have {video.cues:,}"
        elif "speech" in dims and said and not held["speech"][video.id]:
            report.silent.append(video.id)
            report.problems.append(f"{printable(video.path)}: what is said has no vectors")
        elif "speech" in dims and held["speech"][video.id] not in (said, _speech_rows(catalog, video.id)):
            report.broken[video.id] = f"has {held['speech'][video.id]:,} rows for {count(said, 'cue')}"
    names = {video.id: printable(video.path) for video in catalog.videos(report.broken)}
    report.problems += [f"{names[id]}: {text}" for id, text in report.broken.items() if id in names]
    report.plan = plan_fault(paths.plan) or plan_fault(paths.speech_plan)
    if report.plan is not None:
        report.problems.append(f"{report.plan}; searches do without the plan until it is built again")
    _add_notes(catalog, paths, report)
    report.notes += missing
    return report


def _videos_and_cues(catalog: Catalog, ids: NDArray[np.int64]) -> Iterator[tuple[Video, int]]:
    """The given videos that still exist, each with its number of cues of speech; read a page at a time."""
    sql = "SELECT video, count(*) FROM cues WHERE kind = 'speech' AND video BETWEEN ? AND ? GROUP BY video"
    for at in range(0, len(ids), VIDEOS_PER_CHECK):
        some = ids[at : at + VIDEOS_PER_CHECK].tolist()
        with catalog.view():
            videos, counted = catalog.videos(some), dict(catalog.rows(sql, (some[0], some[-1])))
        for video in videos:
            yield video, counted.get(video.id, 0)


class RowCounts:
    """The number of rows of a stream that each video has in segments."""

    def __init__(self, known: NDArray[np.int64]) -> None:
        self.known = known
        self._rows = np.full(len(known) + 1, -1, np.int64)  # the last for ids that are not known

    def __getitem__(self, id: int) -> int:
        """The rows of a video; 0 if there are none."""
        return max(0, int(self._rows[np.searchsorted(self.known, id)]))

    def count(self, found: Segment, gone: NDArray[np.int64], report: VerifyReport) -> None:
        """Count the rows of a segment, and report unknown videos and duplicates."""
        listed = ~np.isin(found.ids, gone)
        ids, rows = found.ids[listed], np.diff(found.offsets)[listed]
        place = np.searchsorted(self.known, ids)
        strange = np.append(self.known, -1)[place] != ids
        for id in ids[strange].tolist():
            report.strangers.append(id)
            report.problems.append(f"segment {found.name} holds a video {id} that the catalog does not know")
        place[strange] = len(self.known)
        once = np.zeros(len(ids), np.bool_)
        once[np.unique(place, return_index=True)[1]] = True
        twice = ~strange & ((self._rows[place] >= 0) | ~once)
        report.broken |= dict.fromkeys(ids[twice].tolist(), "has its vectors twice")
        self._rows[place[~strange & ~twice]] = rows[~strange & ~twice]


def _speech_rows(catalog: Catalog, video: int) -> int:
    """Number of vectors of a video's speech: one for each cue, and for each passage of several cues."""
    return len(vector_texts(catalog.own_cues(video, SPEECH)))


def _span_rows(catalog: Catalog, paths: LibraryPaths, report: VerifyReport) -> Callable[[int], int] | None:
    try:
        return encoders.span_rows(catalog, paths.folder)
    except MomentseekError as e:
        report.problems.append(str(e))
        return None


def _sound_parts(paths: LibraryPaths, row: SegmentRow, dims: dict[str, int], report: VerifyReport) -> list[Segment]:
    """The intact parts of a segment, by its checksums; problems are reported."""
    path = paths.segments / f"{row.name}{segments.SEGMENT_SUFFIX}"
    kept: list[Segment] = []
    try:
        found = segments.read_segment(paths.segments, row.name)
        proven = proven_videos(found)
        wrong = next(_faults(found, row, dims), None) if proven.all() else ALTERED_BYTES
        if wrong is None and checksum(path) != row.name:
            wrong = ALTERED_BYTES
        if wrong is None or wrong == ALTERED_BYTES:
            kept = segments.parts_without(found, found.ids[~proven])
    except segments.DamagedSegmentError as e:
        wrong = str(e).split(": ", 1)[-1].split("; run", 1)[0]
    except OSError as e:
        wrong = f"cannot be read ({e.strerror})"
        if e.errno not in segments.DAMAGE_ERRNOS:
            raise segments.unreadable(path, e) from None
    if wrong is not None:
        report.damaged.append(row)
        report.problems.append(f"{path}: {wrong}")
    return kept


def _faults(found: Segment, row: SegmentRow, dims: dict[str, int]) -> Iterator[str]:
    """The problems of a segment, one sentence each."""
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
    """Possible problems of the rows from ``first`` to ``last`` of a segment → mask of the rows that have it.

    >>> two = segments.build_segment("vision", [1], [np.array([[0.6, 0.8], [3, 4]], np.float32)])
    >>> [(text, rows.tolist()) for text, rows in row_faults(two, 0, 2).items() if rows.any()]
    [('holds vectors that are not of length 1', [False, True])]
    """
    rows = found.half[first:last].astype(np.float32)
    scales = found.scales[first:last, None]
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(rows, axis=1)
        empty = ~np.isfinite(length) | (length == 0)
        half_made = np.abs(length - SHARE) <= MAX_LENGTH_ERROR  # the second of two encoders has not seen it yet
        long = (np.abs(length - 1) > MAX_LENGTH_ERROR) & ~half_made & (found.stream != "spans")
        differ = ~(np.abs(found.codes[first:last] * scales - rows) <= scales * 0.51 + 1e-3).all(axis=1)
    return {
        "holds vectors that are not finite or of length 0": empty,
        "holds vectors that are not of length 1": long,
        "its two copies of a vector differ": differ,
    }


def _add_notes(catalog: Catalog, paths: LibraryPaths, report: VerifyReport) -> None:
    if not catalog.words_checked:
        report.notes.append(f"{catalog.path}: cannot be written now, so its word indices were not checked")
    if orphans := len(paths.orphans(catalog)):
        report.notes.append(
            f"{count(orphans, 'file')} of vectors that nothing names, left by a writer that was stopped"
        )
    if gone := len(catalog.gone()):
        report.notes.append(f"{count(gone, 'removed video')} whose vectors take space (momentseek compact)")
    if catalog.get("adding") is not None:
        report.notes.append("the last add was interrupted; the next one continues from there")


STREAM_WORDS = {"vision": "what is seen", "speech": "what is said", "spans": "spans"}
DAMAGED_VECTORS = "its vectors were damaged; momentseek retry makes them again"


def repair_library(library: LibraryReader, report: VerifyReport) -> VerifyReport:
    """Repair a library, given the report of its check.

    Intact parts of damaged segments are kept, vectors of cues are made again, and videos that lost their vectors are
    recorded for ``retry``. Returns a new report, with what was done. The caller holds the lock.
    """
    catalog, done = library.catalog, []
    if report.damaged_rows:
        done += repair_rows(catalog, library.paths, library.encoders, report.damaged_rows)
        report = verify_library(catalog, library.paths)
        if report.damaged_rows:
            report.repaired = done
            return report
    for mend in (_follow_files, _replace_damaged):
        if report.damaged:
            done += mend(library, report.damaged)
            report = verify_library(catalog, library.paths)
    with catalog.changes():
        if not report.words:
            catalog.rebuild_words()
            done.append("the word indices were rebuilt")
        for id in report.strangers:
            catalog.run("INSERT OR IGNORE INTO gone VALUES (?)", (id,))
        for video in catalog.videos(report.broken):
            catalog.remove_video(video.id)
            known_files.note_failure(catalog, video.path, video.name, DAMAGED_VECTORS, None)
    if report.broken:
        done.append(f"{count(len(report.broken), 'video')} taken out, to be made again by: momentseek retry")
    if set(report.silent) - set(report.broken):
        if (speech := library.encoders.speech) is None:
            done.append("vectors of what is said need the text encoder (momentseek models get minilm)")
        else:
            lost = [id for id in report.silent if id not in report.broken]
            fill_speech(catalog, library.paths, speech, lost)
            done.append(f"what is said in {count(len(lost), 'video')} was encoded again")
    if orphans := library.paths.drop_orphans(catalog):
        done.append(f"{count(orphans, 'file')} that nothing named deleted")
    if report.plan is not None:
        drop_plan(library.paths.plan)
        drop_plan(library.paths.speech_plan)
        library.refresh_plans()
        done.append("the plan for searching a large library was built again")
    again = verify_library(catalog, library.paths)
    again.repaired = done
    return again


def _follow_files(library: LibraryReader, damaged: Sequence[SegmentRow]) -> list[str]:
    """Correct rows of the catalog that contradict intact files."""
    catalog, done = library.catalog, []
    whole = [(row, found) for row in damaged if (found := _whole_segment(library.paths, row.name)) is not None]
    with catalog.changes():
        for row, found in whole:
            fresh = replace(segment_row(found, row.stream.endswith(NEW_STREAM_SUFFIX)), first=row.first)
            if fresh != row:
                catalog.remove_segment(row.name)
                catalog.insert_segment(fresh)
                done.append(f"the row of segments about {row.name} did not fit its file, and was written again")
        for stream in segments.VECTOR_STREAMS:
            encoder, names = catalog.encoder(stream), {row.name for row in catalog.segments() if row.stream == stream}
            dims = {found.dim for _, found in whole if found.name in names}
            if encoder is not None and names == {row.name for row, _ in whole} & names and len(dims) == 1:
                (dim,) = dims
                if dim != encoder.dim:
                    catalog.set_encoder(replace(encoder, dim=dim))
                    done.append(f"the row of encoders about {stream} did not fit its vectors, and was written again")
    return done


def _whole_segment(paths: LibraryPaths, name: str) -> Segment | None:
    """A segment whose file is completely intact; None otherwise."""
    try:
        found = segments.read_segment(paths.segments, name)
        same = checksum(paths.segments / f"{name}{segments.SEGMENT_SUFFIX}") == name
    except (MomentseekError, OSError):
        return None
    sound = same and has_sound_offsets(found) and has_equal_arrays(found)
    return found if sound and proven_videos(found).all() else None


def _replace_damaged(library: LibraryReader, damaged: Sequence[SegmentRow]) -> list[str]:
    """Replace damaged segments by segments of their intact videos; returns what was done, a line for each."""
    catalog, paths = library.catalog, library.paths
    clips = {video.id: video.clips for video in catalog.videos()}
    rows = {
        "vision": clips,
        "speech": {id: _speech_rows(catalog, id) for id in clips},
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
    """Views of the intact videos of a damaged segment: those that have the number of rows given in ``wanted``."""
    best: list[Segment] = []
    for found in _readings(paths, row, dim):
        if found.stream == row.stream and found.dim == dim and has_equal_arrays(found):
            good = proven_videos(found) & _are_sound(found, wanted)
            parts = segments.parts_without(found, found.ids[~good])
            best = max(best, parts, key=lambda parts: sum(len(part.ids) for part in parts))
    return best


def _readings(paths: LibraryPaths, row: SegmentRow, dim: int) -> Iterator[Segment]:
    """A damaged file, read by its own header, and by the header that it should have."""
    with suppress(segments.DamagedSegmentError):
        yield segments.read_segment(paths.segments, row.name)
    with suppress(OSError, ValueError):  # no file can be so
        yield segments.read_by_shape(paths.segments, row.name, row.stream, row.videos, row.rows, dim)


def _are_sound(found: Segment, wanted: Mapping[int, int]) -> NDArray[np.bool_]:
    """Mask of the videos that have the expected number of rows, all with valid vectors."""
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
