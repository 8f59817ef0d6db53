"""The catalog: which videos are in the library, their timed text, and which segments hold their vectors."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import LibraryError
from momentseek.library.database import DATABASE_ERRORS, SPEECH, SUMMED, Database, TrackKind, damaged_row, unusable
from momentseek.library.video import Failure, Video, VideoCard, VideoPlace, matcher, name_text
from momentseek.library.words import is_one_letter_off, match_any, plain_words
from momentseek.media.subtitles.cues import Cue

VIDEO_COLUMNS = (
    "id, path, name, size, mtime_ns, hash, duration, width, height, rate, codec, clips, cues, shots, added, notes, "
    "audio, sampling, recorded, place"
)
VIDEO_TYPES = (
    int, bytes, str, int, int, str, float, int, int, str, str, int, int, bytes, float, str, int, str
)  # fmt: skip
"""Types of the columns that always have a value, which come first."""
ID_STEP_SETTING, LEAST_ID_SETTING = "id_step", "least_id"
"""Settings of a library that is a part of a larger one: the step between the ids that it assigns, and the first id."""
VIDEO_DATE = "coalesce(recorded, mtime_ns / 1e9)"
"""SQL for the date of a video: when it was recorded, if its file says so, or when the file was written."""
VIDEO_SELECT = f"{VIDEO_COLUMNS}, path IN (SELECT path FROM failures) AS changed"
CUE_SELECT = """cues.start, cues.end, cues.text, cues.language, cues.frame, cues.score, cues.box, coalesce((
    SELECT model FROM tracks WHERE tracks.video = cues.video AND tracks.kind = cues.kind ORDER BY whole DESC LIMIT 1
), '')"""
IN_FAMILY = "kind IN (SELECT name FROM kinds WHERE family = ?)"
MIN_FUZZY_LETTERS = 4
"""Smallest number of letters of a word that is also found with one wrong letter; shorter words are too similar."""
LAST_LETTER = chr(0x10FFFF)
"""A character that sorts after all others."""
MAX_SPELLINGS = 50
"""Largest number of other spellings of a word."""


@dataclass(frozen=True)
class EncoderRow:
    """The encoder that made a stream's vectors; a library has one per stream."""

    stream: str
    spec: str
    name: str
    fingerprint: str
    dim: int


@dataclass(frozen=True)
class SegmentRow:
    """A segment in use: the catalog's row about its file."""

    name: str
    stream: str
    videos: int
    rows: int
    first: int
    """The smallest id of its videos; segments are listed in this order."""


PASSING_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
"""Errors that prevent a check of the database but do not mean that it is damaged."""


class Catalog(Database):
    """The open catalog of a library: its videos, cues, segments and failures; use one per thread."""

    words_checked = True
    """Whether ``problems`` could check the word indices; the check needs write access."""

    def encoder(self, stream: str) -> EncoderRow | None:
        """The encoder that made a stream's vectors; None if there are none yet."""
        rows = self.rows("SELECT stream, spec, name, fingerprint, dim FROM encoders WHERE stream = ?", (stream,))
        if rows and not isinstance(rows[0][-1], int):
            raise damaged_row(self.path, "encoders", stream)
        return EncoderRow(*rows[0]) if rows else None

    def set_encoder(self, row: EncoderRow) -> None:
        """Set the encoder that makes a stream's vectors from now on."""
        self._db.execute(
            "INSERT OR REPLACE INTO encoders VALUES (?, ?, ?, ?, ?)",
            (row.stream, row.spec, row.name, row.fingerprint, row.dim),
        )

    # reading

    def videos(self, ids: Iterable[int] | None = None) -> list[Video]:
        """All videos of the library, or those with the given ``ids``, by id."""
        if ids is None:
            return [self._video(row) for row in self.rows(f"SELECT {VIDEO_SELECT} FROM videos ORDER BY id")]
        listed = json.dumps([int(i) for i in ids])
        sql = f"SELECT {VIDEO_SELECT} FROM videos WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return [self._video(row) for row in self.rows(sql, (listed,))]

    def places(self, paths: Collection[str] | None = None) -> list[VideoPlace]:
        """Path and name of the videos at some paths, or of all videos, by id."""
        sql = "SELECT id, path, name FROM videos"
        if paths is None:
            rows = self.rows(f"{sql} ORDER BY id")
        else:
            rows = [row for path in sorted(paths) for row in self.rows(f"{sql} WHERE path = ?", (os.fsencode(path),))]
        return [VideoPlace(id, os.fsdecode(path), name) for id, path, name in rows]

    def video_cards(self, ids: Iterable[int]) -> list[VideoCard]:
        """The given videos that are in the library, by id, as far as ranking needs them."""
        sql = "SELECT id, duration, hash, shots FROM videos WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        found = []
        for id, duration, hash, shots in self.rows(sql, (json.dumps([int(i) for i in ids]),)):
            if not (type(duration) is float and type(hash) is str and type(shots) is bytes and len(shots) % 8 == 0):
                raise damaged_row(self.path, "videos", f"number {id}")
            found.append(VideoCard(id, duration, hash, struct.unpack(f"<{len(shots) // 8}d", shots)))
        return found

    def ids(
        self, *, names: Sequence[str] = (), after: float | None = None, before: float | None = None
    ) -> NDArray[np.int64]:
        """Ids of the videos whose name matches any of the globs and whose date lies in ``[after, before)``.

        Globs are those of ``names.matcher``; ``kitchen`` alone means ``*kitchen*``.
        """
        where = ["1"]
        values: list[Any] = []
        if after is not None:
            where.append(f"{VIDEO_DATE} >= ?")
            values.append(after)
        if before is not None:
            where.append(f"{VIDEO_DATE} < ?")
            values.append(before)
        columns = "id, name" if names else "id"
        rows = self.rows(f"SELECT {columns} FROM videos WHERE {' AND '.join(where)} ORDER BY id", values)
        if names:
            matches = matcher(names, within=True)
            rows = [row for row in rows if matches(row[1])]
        return np.fromiter((row[0] for row in rows), np.int64, len(rows))

    def segments(self, stream: str | None = None) -> list[SegmentRow]:
        """The segments in use, of one stream or of all, by their smallest video id."""
        sql = """SELECT name, stream, videos, rows, first FROM segments
                 WHERE ?1 IS NULL OR stream = ?1 ORDER BY first, name"""
        found = [SegmentRow(*row) for row in self.rows(sql, (stream,))]
        for row in found:
            if not (type(row.videos) is type(row.rows) is type(row.first) is int):
                raise damaged_row(self.path, "segments", row.name)
        return found

    def gone(self) -> NDArray[np.int64]:
        """Ids of removed videos whose vectors are still in segments."""
        rows = self.rows("SELECT video FROM gone ORDER BY video")
        return np.fromiter((row[0] for row in rows), np.int64, len(rows))

    def failures(self) -> list[Failure]:
        """Files that could not be added, by path."""
        rows = self.rows("SELECT path, reason, at, tries FROM failures ORDER BY path")
        return [Failure(Path(os.fsdecode(path)), reason, at, tries) for path, reason, at, tries in rows]

    def totals(self) -> dict[str, float]:
        """Totals by name: videos, their seconds, clips and cues, and failures."""
        sql = "SELECT count(*), coalesce(sum(duration), 0), coalesce(sum(clips), 0), coalesce(sum(cues), 0) FROM videos"
        videos, seconds, clips, cues = self.rows(sql)[0]
        failures = self.rows("SELECT count(*) FROM failures")[0][0]
        return {"videos": videos, "seconds": seconds, "clips": clips, "cues": cues, "failures": failures}

    def content_number(self) -> int:
        """A number that changes with the contents of the library; it is the same on every connection."""
        row = self.rows(
            """SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'videos'), (SELECT count(*) FROM videos),
                      (SELECT total(at) FROM tracks WHERE whole), (SELECT total(mtime_ns) FROM videos),
                      (SELECT count(*) FROM cues), (SELECT count(*) FROM gone), (SELECT total(tries) FROM failures),
                      (SELECT fingerprint FROM encoders WHERE stream = 'vision')"""
        )[0]
        return zlib.crc32(repr(row).encode())

    def page_of_videos(self, name: str, limit: int, offset: int) -> tuple[int, list[Video]]:
        """The number of videos with ``name`` in their names (all, if it is empty), and a page of them, by name."""
        where = "WHERE ?1 = '' OR instr(lower(name), lower(?1))"
        with self.view():
            total = int(self.rows(f"SELECT count(*) FROM videos {where}", (name,))[0][0])
            sql = f"SELECT {VIDEO_SELECT} FROM videos {where} ORDER BY name, id LIMIT ?2 OFFSET ?3"
            return total, [self._video(row) for row in self.rows(sql, (name, limit, offset))]

    def find_contents(self, hashes: Iterable[str]) -> list[tuple[str, int, Path]]:
        """Hash, id and path of every video whose content has one of the ``hashes``, by id."""
        rows = self.rows(
            "SELECT hash, id, path FROM videos WHERE hash IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(sorted(set(hashes))),),
        )
        return [(hash, id, Path(os.fsdecode(path))) for hash, id, path in rows]

    def copies(self, video: Video) -> tuple[str, ...]:
        """Names of the other videos with the same content."""
        if not video.hash:
            return ()
        rows = self.rows("SELECT name FROM videos WHERE hash = ? AND id != ? ORDER BY id", (video.hash, video.id))
        return tuple(row[0] for row in rows)

    def _video(self, row: Sequence[Any]) -> Video:
        """Convert a row of ``videos``; raises LibraryError if its values have unexpected types."""
        values: dict[str, Any] = dict(zip((*VIDEO_COLUMNS.split(", "), "changed"), row, strict=True))
        try:
            if tuple(map(type, row[: len(VIDEO_TYPES)])) != VIDEO_TYPES:
                raise TypeError
            values["path"] = Path(os.fsdecode(values["path"]))
            values["rate"] = _fraction(values["rate"])
            values["shots"] = tuple(np.frombuffer(values["shots"], "<f8").tolist())
            values["notes"] = tuple(json.loads(values["notes"])) if values["notes"] != "[]" else ()
            place = json.loads(values["place"]) if values["place"] not in (None, "null") else None
            values["place"] = tuple(place) if place else None
        except (TypeError, ValueError, ArithmeticError, RecursionError):
            raise damaged_row(self.path, "videos", values["name"]) from None
        values["audio"], values["changed"] = bool(values["audio"]), bool(values["changed"])
        return Video(**values)

    def _cue(self, row: Sequence[Any]) -> Cue:
        start, end, text, language, frame, score, box, by = row
        try:
            if not (type(start) is type(end) is float and type(text) is str):
                raise TypeError
            return Cue(start, end, text, language, frame, score, None if box is None else tuple(json.loads(box)), by=by)
        except (TypeError, ValueError, RecursionError):
            raise damaged_row(self.path, "cues", f"what comes at {start} s") from None

    # timed text of a kind; ``videos`` restricts an answer to these ids, None means all videos

    def cues(self, video: int, kind: TrackKind = SPEECH) -> list[Cue]:
        """The cues of a video, of a kind and of kinds that are searched with it, in the order of their ids."""
        sql = f"SELECT {CUE_SELECT} FROM cues WHERE {IN_FAMILY} AND video = ? ORDER BY id"
        return [self._cue(row) for row in self.rows(sql, (kind.family, video))]

    def cues_between(self, video: int, start: float, end: float, kind: TrackKind = SPEECH) -> list[Cue]:
        """The cues of a video that overlap the time from ``start`` to ``end`` (seconds)."""
        sql = f"SELECT {CUE_SELECT} FROM cues WHERE {IN_FAMILY} AND video = ? AND start < ? AND ? < end ORDER BY id"
        return [self._cue(row) for row in self.rows(sql, (kind.family, video, end, start))]

    def texts_between(self, video: int, start: float, end: float) -> dict[str, tuple[Cue, ...]]:
        """Family of kinds → the result of :meth:`cues_between`; families without cues are left out."""
        sql = f"""SELECT kinds.family, {CUE_SELECT} FROM kinds CROSS JOIN cues ON cues.kind = kinds.name
                  WHERE cues.video = ? AND cues.start < ? AND ? < cues.end ORDER BY cues.id"""
        found: dict[str, tuple[Cue, ...]] = {}
        for family, *row in self.rows(sql, (video, end, start)):
            found[family] = (*found.get(family, ()), self._cue(row))
        return found

    def own_cues(self, video: int, kind: TrackKind) -> list[Cue]:
        """The cues of a video of exactly one kind; those of speech are in the order of the rows of its vectors."""
        return self.own_cues_of([video], kind)[video]

    def own_cues_of(self, videos: Iterable[int], kind: TrackKind) -> dict[int, list[Cue]]:
        """Video → the result of :meth:`own_cues`."""
        found: dict[int, list[Cue]] = {int(id): [] for id in videos}
        sql = f"""SELECT cues.video, {CUE_SELECT} FROM cues
                  WHERE kind = ? AND video IN (SELECT value FROM json_each(?)) ORDER BY id"""
        for video, *row in self.rows(sql, (kind.name, json.dumps(list(found)))):
            found[video].append(self._cue(row))
        return found

    def count_cues(self, word: str | None = None, kind: TrackKind = SPEECH) -> int:
        """Number of cues that contain a word in any of its forms, or of all cues if no word is given."""
        if word is None:
            return int(self.rows(f"SELECT count(*) FROM cues WHERE {IN_FAMILY}", (kind.family,))[0][0])
        index = kind.indices[0]
        return int(self.rows(f"SELECT count(*) FROM {index} WHERE {index} MATCH ?", (match_any([word]),))[0][0])

    def cue_times(
        self, texts: Sequence[str], videos: Iterable[int], kind: TrackKind
    ) -> dict[int, list[tuple[float, float]]]:
        """Video → start and end of each cue that contains any of the texts."""
        index = kind.indices[0]
        sql = f"""SELECT cues.video, cues.start, cues.end FROM {index} JOIN cues ON cues.id = {index}.rowid
                  WHERE {index} MATCH ? AND cues.video IN (SELECT value FROM json_each(?))"""
        out: dict[int, list[tuple[float, float]]] = {}
        for video, start, end in self.rows(sql, (match_any(texts), json.dumps(sorted(videos)))) if texts else []:
            out.setdefault(video, []).append((start, end))
        return out

    def near_spellings(self, word: str, kind: TrackKind) -> list[str]:
        """Words of a kind that differ from a word in one letter.

        Such words begin or end alike, so only words that do are compared letter by letter.
        """
        plain = plain_words([word])[0]
        if len(plain) < MIN_FUZZY_LETTERS or " " in plain:
            return []
        half = len(plain) // 2
        first, last = plain[: half - 1], plain[half + 1 :][::-1]
        rows = self.rows(
            """SELECT term FROM terms
               WHERE kind = ?5 AND term >= ?1 AND term < ?1 || ?3 AND length(term) BETWEEN ?4 - 1 AND ?4 + 1
               UNION SELECT term FROM terms
               WHERE kind = ?5 AND reversed >= ?2 AND reversed < ?2 || ?3 AND length(term) BETWEEN ?4 - 1 AND ?4 + 1""",
            (first, last, LAST_LETTER, len(plain), kind.family),
        )
        return sorted(term for (term,) in rows if is_one_letter_off(term, plain))[:MAX_SPELLINGS]

    def cue_ids_with_words(self, words: Sequence[str], videos: NDArray[np.int64] | None) -> set[int]:
        """Ids of all cues of speech that contain any of the words in any of its forms."""
        some, ids = _restriction(videos)
        join = "JOIN cues ON cues.id = speech_words.rowid" if some else ""
        sql = f"SELECT speech_words.rowid FROM speech_words {join} WHERE speech_words MATCH ? {some}"
        return {row[0] for row in self.rows(sql, (match_any(words), *ids))} if words else set()

    def cue_ids_with_letter(self, letter: str, videos: NDArray[np.int64] | None) -> set[int]:
        """Ids of all cues of speech that contain a letter; there is no index for that, so every cue is read."""
        some, ids = _restriction(videos)
        sql = f"SELECT id FROM cues WHERE {IN_FAMILY} AND instr(text, ?) {some}"
        return {row[0] for row in self.rows(sql, (SPEECH.family, letter, *ids))}

    def cue_rows(
        self, ids: Iterable[int], videos: NDArray[np.int64] | None
    ) -> list[tuple[int, int, float, float, str]]:
        """``(id, video, start, end, text)`` of the given cues that are speech, by video and in their order."""
        some, listed = _restriction(videos)
        sql = f"""SELECT id, video, start, end, text FROM cues
                  WHERE id IN (SELECT value FROM json_each(?)) AND {IN_FAMILY} {some} ORDER BY video, id"""
        return self.rows(sql, (json.dumps(sorted(ids)), SPEECH.family, *listed))

    # writing, inside changes()

    def next_ids(self, count: int = 1) -> range:
        """The ids that the next ``count`` videos get; reliable only for the holder of the library's lock.

        In a part of a larger library ids increase in steps, so that no two parts assign the same id.
        """
        rows = self.rows("SELECT seq FROM sqlite_sequence WHERE name = 'videos'")
        last = int(rows[0][0]) if rows else 0
        step, least = self.get(ID_STEP_SETTING, 1), self.get(LEAST_ID_SETTING, 1)
        first = least + max(0, -(-(last + 1 - least) // step)) * step
        return range(first, first + count * step, step)

    @property
    def parts(self) -> tuple[Catalog, ...]:
        """The catalogs of all parts of the library; only this one if it has no parts."""
        return (self,)

    def of(self, video: int) -> Catalog:
        """The catalog of the part that has a video; this one if the library has no parts."""
        return self

    def insert_video(
        self, video: Video, cues: Sequence[Cue], subtitles: Sequence[str] = (), *, id: int | None = None
    ) -> int:
        """Insert a video and return its new id; ``video.id`` is ignored. A video at the same path is replaced.

        ``id`` is for a writer that has already written vectors under this id; it must be new (``next_ids``).
        """
        old = self._db.execute("SELECT id FROM videos WHERE path = ?", (os.fsencode(video.path),)).fetchone()
        if old:
            self.remove_video(old[0])
        values = (
            id, os.fsencode(video.path), video.name, video.size, video.mtime_ns, video.hash, video.duration,
            video.width, video.height, str(video.rate), video.codec, video.clips, len(cues),
            np.asarray(video.shots, "<f8").tobytes(), json.dumps(list(subtitles)), video.added, json.dumps(video.notes),
            video.audio, video.sampling, video.recorded, json.dumps(video.place),
        )  # fmt: skip
        columns = VIDEO_COLUMNS.replace("added", "subtitles, added")
        marks = ", ".join("?" * len(values))
        new = self._db.execute(f"INSERT INTO videos ({columns}) VALUES ({marks})", values).lastrowid
        assert new is not None
        self._db.execute(f"UPDATE videos SET sum = row_sum({SUMMED['videos']}) WHERE id = ?", (new,))
        self.insert_cues(new, cues)
        self._db.execute("INSERT INTO name_words (rowid, text) VALUES (?, ?)", (new, name_text(video.name)))
        self._db.execute("DELETE FROM failures WHERE path = ?", (os.fsencode(video.path),))
        return new

    def set_cues(self, video: int, cues: Sequence[Cue], kind: TrackKind = SPEECH) -> None:
        """Replace a video's cues of a kind."""
        self._db.execute("DELETE FROM cues WHERE kind = ? AND video = ?", (kind.name, video))
        self.insert_cues(video, cues, kind)
        if kind == SPEECH:
            self.update_video(video, cues=len(cues))

    def update_video(self, video: int, **values: Any) -> None:
        """Update columns of a video's row; the checksum of a damaged row is not renewed."""
        summed = f"row_sum({SUMMED['videos']})"
        sound = self.rows(f"SELECT 1 FROM videos WHERE id = ? AND sum IS {summed}", (video,))
        columns = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE videos SET {columns} WHERE id = ?", (*values.values(), video))
        if sound:
            self._db.execute(f"UPDATE videos SET sum = {summed} WHERE id = ?", (video,))

    def insert_cues(self, video: int, cues: Iterable[Cue], kind: TrackKind = SPEECH) -> None:
        """Add cues of a kind to a video."""
        given = list(cues)
        self._db.executemany(
            """INSERT INTO cues (video, kind, start, end, text, language, frame, score, box, words)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [
                (video, kind.name, cue.start, cue.end, cue.text, cue.language, cue.frame, cue.score,
                 json.dumps(cue.box) if cue.box is not None else None,
                 json.dumps(cue.words) if cue.words else None)
                for cue in given
            ],
        )  # fmt: skip
        self._db.execute(
            f"UPDATE cues SET sum = row_sum({SUMMED['cues']}) WHERE kind = ? AND video = ? AND sum IS NULL",
            (kind.name, video),
        )
        if kind.spelt:
            self._add_terms(kind, (word for text in plain_words([cue.text for cue in given]) for word in text.split()))

    def remove_video(self, video: int) -> None:
        """Remove a video from the catalog; its vectors stay in their segments, marked as gone."""
        self._db.execute("INSERT OR IGNORE INTO gone VALUES (?)", (video,))
        self._db.execute("DELETE FROM name_words WHERE rowid = ?", (video,))
        self._db.execute("DELETE FROM videos WHERE id = ?", (video,))

    def insert_segment(self, row: SegmentRow) -> None:
        """Insert a segment, so that it is used from now on."""
        self._db.execute(
            "INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?)",
            (row.name, row.stream, row.videos, row.rows, row.first),
        )

    def remove_segment(self, name: str) -> None:
        """Remove a segment, so that it is no longer used; its file stays."""
        self._db.execute("DELETE FROM segments WHERE name = ?", (name,))

        # maintenance

    def tidy(self) -> None:
        """Rewrite the database and its log without unused space."""
        try:
            for table in self._word_indices():
                self._db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
            with self.changes():
                self._list_terms()
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except DATABASE_ERRORS as e:
            raise unusable(self.path, e) from None

    def _word_indices(self) -> list[str]:
        return ["name_words", *(index for kind in self.kinds() if not kind.like for index in kind.indices)]

    def _list_terms(self) -> None:
        """Rebuild the list of words that may be misspelt, without those of removed videos."""
        self._db.execute("DELETE FROM terms")
        for kind in self.kinds():
            if kind.spelt and not kind.like:
                self._add_terms(kind, (term for (term,) in self.rows(f"SELECT term FROM {kind.name}_vocabulary")))

    def _add_terms(self, kind: TrackKind, terms: Iterable[str]) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO terms VALUES (?, ?, ?)", ((kind.family, term, term[::-1]) for term in terms)
        )

    def problems(self) -> list[str]:
        """The problems that SQLite finds in the database and its word indices."""
        found = [str(row[0]) for row in self.rows("PRAGMA integrity_check") if row[0] != "ok"]
        self.words_checked = not self.read_only
        tables: list[str] = []
        with suppress(LibraryError):  # a damaged row of kinds; that is found elsewhere
            tables = self._word_indices() if self.words_checked else []
        for table in tables:
            try:
                self._db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
            except DATABASE_ERRORS as e:
                code = e.sqlite_errorcode & 0xFF if isinstance(e, sqlite3.OperationalError) else sqlite3.SQLITE_CORRUPT
                if code in PASSING_CODES:
                    raise unusable(self.path, e) from None
                if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL):
                    self.words_checked = False
                    break
                found.append(f"the index {table} does not agree with its table ({e})")
        return found

    def rebuild_words(self) -> None:
        """Rebuild the word indices, inside ``changes()``."""
        for table in self._word_indices():
            if table != "name_words":
                self._db.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
        self._list_terms()
        self._db.execute("DELETE FROM name_words")
        for id, name in self._db.execute("SELECT id, name FROM videos").fetchall():
            self._db.execute("INSERT INTO name_words (rowid, text) VALUES (?, ?)", (id, name_text(name)))


_fraction = lru_cache(256)(Fraction)
"""Parses a fraction; cached, because few frame rates are common."""


def _restriction(videos: NDArray[np.int64] | None) -> tuple[str, tuple[str, ...]]:
    """A condition on ``cues.video`` to append to a query, and its value."""
    if videos is None:
        return "", ()
    return "AND cues.video IN (SELECT value FROM json_each(?))", (json.dumps(videos.tolist()),)
