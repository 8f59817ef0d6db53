"""Damaged rows of the catalog: found by their types and checksums, and removed.

Rows of videos, cues, settings and kinds have a checksum (``sum``), computed when they are written. It is copied with
the row, and never recomputed for a row that is already wrong. In all tables each value must have the type that its
column declares.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.core.reports import count
from momentseek.library import known_files, segments
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.database import KINDS, MAX_CLIP_SECONDS, MIN_CLIP_SECONDS, SUMMED
from momentseek.library.encoders import LibraryEncoders, encoder_row, vision_spec
from momentseek.library.file_stamp import path_text, printable
from momentseek.library.paths import LibraryPaths
from momentseek.library.segments import NEW_STREAM_SUFFIX, Segment

NAMED_BY = {
    "videos": "name", "cues": "video", "segments": "name", "encoders": "stream", "settings": "key", "tracks": "video",
    "track_parts": "video", "failures": "path", "cue_edits": "text", "kinds": "name",
}  # fmt: skip
"""Tables whose rows are checked, and the column that names a row in messages."""
JSON_COLUMNS = {
    "settings": ["value"], "videos": ["notes", "subtitles", "place"], "cues": ["box", "words"],
    "track_parts": ["content"],
}  # fmt: skip
TYPES = {"INTEGER": "'integer'", "REAL": "'real', 'integer'", "TEXT": "'text'", "BLOB": "'blob'"}
NEEDED_SETTING = "clip_seconds"
"""The setting that cannot be recovered from the rest of the library."""
NEEDED_CONDITION = (
    f"key = '{NEEDED_SETTING}' AND NOT coalesce(CASE WHEN json_valid(value) THEN json_type(value) IN ('integer', "
    f"'real') AND json_extract(value, '$') BETWEEN {MIN_CLIP_SECONDS} AND {MAX_CLIP_SECONDS} END, 0)"
)
MAX_NAMES = 5
"""Largest number of rows of a table that are named; the others are only counted."""


@dataclass(frozen=True)
class DamagedRows:
    """The rows of one table that are damaged."""

    table: str
    where: str
    """The SQL condition that selects them."""
    names: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.names[:MAX_NAMES]) + (", …" if len(self.names) > MAX_NAMES else "")
        verb = "is" if len(self.names) == 1 else "are"
        return f"{count(len(self.names), 'row')} of {self.table} ({shown}) {verb} damaged"


def find_damaged_rows(catalog: Catalog) -> list[DamagedRows]:
    """The damaged rows of every table; reads the whole catalog."""
    found = []
    for table, column in NAMED_BY.items():
        where = _condition(catalog, table)
        names = catalog.rows(f"SELECT CAST({column} AS BLOB) FROM {table} WHERE {where}")
        if names:
            found.append(DamagedRows(table, where, tuple(printable(os.fsdecode(name or b"?")) for (name,) in names)))
    if not catalog.rows("SELECT 1 FROM settings WHERE key = ?", (NEEDED_SETTING,)):
        found.append(DamagedRows("settings", "0", (NEEDED_SETTING,)))
    return found


def _condition(catalog: Catalog, table: str) -> str:
    tests = []
    for _, name, declared, needed, _, key in catalog.rows(f"PRAGMA table_info({table})"):
        allowed = TYPES[declared] + ("" if needed or key else ", 'null'")
        tests.append(f"typeof({name}) NOT IN ({allowed})")
        if name == "sum":
            tests.append(f"sum IS NOT row_sum({SUMMED[table]})")
    tests += [f"{name} IS NOT NULL AND NOT json_valid({name})" for name in JSON_COLUMNS.get(table, [])]
    if table == "settings":
        tests.append(NEEDED_CONDITION)
    return " OR ".join(tests)


def explain_error(catalog: Catalog, e: BaseException | None) -> None:
    """Raise LibraryError if an unexpected error may come from damaged rows; otherwise do nothing."""
    if not isinstance(e, TypeError | ValueError | ArithmeticError | LookupError | AttributeError):
        return
    try:
        found = [rows for part in catalog.parts for rows in find_damaged_rows(part)]
    except MomentseekError:
        return
    if found:
        raise LibraryError(
            f"{catalog.path}: {'; '.join(map(str, found))}; run: momentseek verify --repair, then momentseek retry"
        ) from None


def repair_rows(
    catalog: Catalog, paths: LibraryPaths, encoders: LibraryEncoders, damaged: list[DamagedRows]
) -> list[str]:
    """Remove damaged rows, or restore them from the files that they describe; returns what was done, a line per table.

    Videos are recorded as failures, for ``retry``. If a caption or a line of OCR is damaged, the video's whole track is
    removed.
    """
    done = []
    for rows in damaged:
        known: list[Any] = []
        if rows.table == "segments":
            known = [row for name in rows.names if (row := _segment_row(catalog, paths, name)) is not None]
        with catalog.changes():
            if rows.table == "videos":
                _take_out(catalog, f"SELECT id FROM videos WHERE {rows.where}")
            elif rows.table == "cues":
                _drop_tracks(catalog, rows.where)
            elif rows.table == "settings":
                catalog.run(f"DELETE FROM settings WHERE key != ? AND ({rows.where})", (NEEDED_SETTING,))
            else:
                catalog.run(f"DELETE FROM {rows.table} WHERE {rows.where}")
            for row in known:
                catalog.insert_segment(row)
        if rows.table == "encoders":
            _name_encoders(catalog, encoders)
        for kind in KINDS if rows.table == "kinds" else ():
            catalog.add_kind(kind)
        done.append(f"{rows}: {'written again' if len(known) == len(rows.names) else 'taken out'}")
    return done


def _take_out(catalog: Catalog, ids: str) -> None:
    for (id,) in catalog.rows(ids):
        for path, name in catalog.rows("SELECT path, CAST(name AS BLOB) FROM videos WHERE id = ?", (id,)):
            if isinstance(path, bytes):
                file = Path(os.fsdecode(path))
                whole = path_text(os.fsdecode(name or b""))
                called = whole if whole.endswith(path_text(file.name)) else path_text(file.name)
                reason = "its row in the catalog was damaged; momentseek retry adds it again"
                known_files.note_failure(catalog, file, called, reason, None)
        catalog.remove_video(id)


def _drop_tracks(catalog: Catalog, where: str) -> None:
    """Drop the tracks of damaged cues; a video whose speech is damaged is added again, with its subtitles."""
    catalog.run(f"CREATE TEMP TABLE hurt AS SELECT DISTINCT video, CAST(kind AS TEXT) AS kind FROM cues WHERE {where}")
    catalog.run(f"DELETE FROM cues WHERE {where}")
    _take_out(catalog, "SELECT video FROM hurt WHERE kind NOT IN (SELECT name FROM kinds WHERE name != 'speech')")
    for table in ("cues", "tracks", "track_parts"):
        catalog.run(f"DELETE FROM {table} WHERE (video, kind) IN (SELECT video, kind FROM hurt)")
    catalog.run("DROP TABLE hurt")
    catalog.rebuild_words()


def _segment_row(catalog: Catalog, paths: LibraryPaths, name: str) -> SegmentRow | None:
    """The catalog's row of a segment, computed from its file."""
    try:
        found = segments.read_segment(paths.segments, name)
    except MomentseekError:
        return None
    waits = catalog.rows("SELECT 1 FROM segments WHERE name = ? AND stream LIKE ?", (name, "%.new"))
    return segment_row(found, bool(waits))


def segment_row(found: Segment, waits: bool) -> SegmentRow:
    """The catalog's row of a segment; ``waits`` marks one that is not in use until all vectors have been made again."""
    stream = found.stream + (NEW_STREAM_SUFFIX if waits else "")
    return SegmentRow(found.name, stream, len(found.ids), found.rows, int(found.ids.min()) if len(found.ids) else 0)


def _name_encoders(catalog: Catalog, encoders: LibraryEncoders) -> None:
    """Restore the row of the encoder that makes the vectors, from the library's setting."""
    if catalog.encoder("vision") is None:
        row = encoder_row("vision", vision_spec(catalog), encoders.vision)
        with catalog.changes():
            catalog.set_encoder(row)
