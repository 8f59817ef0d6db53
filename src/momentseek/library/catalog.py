"""The catalog: which videos are in the library, what is said in them, and which segments hold their vectors."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.database import DATABASE_ERRORS, Database, unusable
from momentseek.library.video import Failure, Video, matcher, name_text
from momentseek.library.words import match_any
from momentseek.media.subtitles.cues import Cue

VIDEO_COLUMNS = (
    "id, path, name, size, mtime_ns, hash, duration, width, height, rate, codec, clips, cues, shots, added, notes, "
    "audio"
)
ID_STEP_SETTING, LEAST_ID_SETTING = "id_step", "least_id"
"""Settings of a shard: what lies between two ids that it gives, and the first of them."""
VIDEO_SELECT = f"{VIDEO_COLUMNS}, path IN (SELECT path FROM failures) AS changed"


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
    """A segment that counts: the catalog's row about its file."""

    name: str
    stream: str
    videos: int
    rows: int
    first: int
    """The smallest id of its videos; segments are listed in this order."""


@dataclass(frozen=True)
class CueMatch:
    """A cue that holds words of a query."""

    video: int
    cue: Cue
    bm25: float
    """How well it matches, by BM25; the higher the better."""


@dataclass(frozen=True)
class NameMatch:
    """A video whose name holds words of a query."""

    video: int
    name: str
    bm25: float
    """How well it matches, by BM25; the higher the better."""


class Catalog(Database):
    """The open catalog of a library: its videos, cues, segments and failures; use one per thread."""

    def encoder(self, stream: str) -> EncoderRow | None:
        """The encoder that made a stream's vectors; None if there are none yet."""
        rows = self.rows("SELECT stream, spec, name, fingerprint, dim FROM encoders WHERE stream = ?", (stream,))
        return EncoderRow(*rows[0]) if rows else None

    def set_encoder(self, row: EncoderRow) -> None:
        """Say which encoder makes a stream's vectors from now on."""
        self._db.execute(
            "INSERT OR REPLACE INTO encoders VALUES (?, ?, ?, ?, ?)",
            (row.stream, row.spec, row.name, row.fingerprint, row.dim),
        )

    # reading

    def videos(self, ids: Iterable[int] | None = None) -> list[Video]:
        """All videos of the library by id, or those of ``ids`` that are in it."""
        if ids is None:
            return self._videos(self.rows(f"SELECT {VIDEO_SELECT} FROM videos ORDER BY id"))
        listed = json.dumps([int(i) for i in ids])
        sql = f"SELECT {VIDEO_SELECT} FROM videos WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return self._videos(self.rows(sql, (listed,)))

    def _videos(self, rows: Sequence[Sequence[Any]]) -> list[Video]:
        found = [_video(row) for row in rows]
        if not self.has_samplings:
            return found
        sampled = dict(self.rows("SELECT video, sampling FROM samplings"))
        return [replace(video, sampling=sampled.get(video.id, video.sampling)) for video in found]

    def ids(
        self, *, names: Sequence[str] = (), after: float | None = None, before: float | None = None
    ) -> NDArray[np.int64]:
        """Ids of the videos whose name matches any of the globs and whose file time lies in ``[after, before)``.

        Globs are those of ``names.matcher``; ``kitchen`` alone means ``*kitchen*``.
        """
        where = ["1"]
        values: list[Any] = []
        if after is not None:
            where.append("mtime_ns >= ?")
            values.append(int(after * 1e9))
        if before is not None:
            where.append("mtime_ns < ?")
            values.append(int(before * 1e9))
        rows = self.rows(f"SELECT id, name FROM videos WHERE {' AND '.join(where)} ORDER BY id", values)
        if names:
            matches = matcher(names, within=True)
            rows = [row for row in rows if matches(row[1])]
        return np.fromiter((row[0] for row in rows), np.int64, len(rows))

    def cues(self, video: int) -> list[Cue]:
        """The cues of a video, in the order of the rows of its speech vectors."""
        rows = self.rows("SELECT start, end, text, language FROM cues WHERE video = ? ORDER BY id", (video,))
        return [Cue(*row) for row in rows]

    def cues_between(self, video: int, start: float, end: float) -> list[Cue]:
        """The cues of a video that overlap the time from ``start`` to ``end`` (seconds)."""
        rows = self.rows(
            "SELECT start, end, text, language FROM cues WHERE video = ? AND start < ? AND ? < end ORDER BY id",
            (video, end, start),
        )
        return [Cue(*row) for row in rows]

    def segments(self, stream: str | None = None) -> list[SegmentRow]:
        """The segments that count, of one stream or of all, by their smallest video id."""
        sql = """SELECT name, stream, videos, rows, first FROM segments
                 WHERE ?1 IS NULL OR stream = ?1 ORDER BY first, name"""
        return [SegmentRow(*row) for row in self.rows(sql, (stream,))]

    def gone(self) -> NDArray[np.int64]:
        """Ids of removed videos whose vectors still lie in segments."""
        rows = self.rows("SELECT video FROM gone ORDER BY video")
        return np.fromiter((row[0] for row in rows), np.int64, len(rows))

    def failures(self) -> list[Failure]:
        """Files that could not be added, by path."""
        rows = self.rows("SELECT path, reason, at, tries FROM failures ORDER BY path")
        return [Failure(Path(os.fsdecode(path)), reason, at, tries) for path, reason, at, tries in rows]

    def totals(self) -> dict[str, float]:
        """Numbers of videos, of their seconds, clips and cues, and of failures, by these names."""
        sql = "SELECT count(*), coalesce(sum(duration), 0), coalesce(sum(clips), 0), coalesce(sum(cues), 0) FROM videos"
        videos, seconds, clips, cues = self.rows(sql)[0]
        failures = self.rows("SELECT count(*) FROM failures")[0][0]
        return {"videos": videos, "seconds": seconds, "clips": clips, "cues": cues, "failures": failures}

    def content_number(self) -> int:
        """A number that changes with what the library holds, the same on every connection."""
        heard = "(SELECT total(at) FROM transcripts)" if self.has_transcripts else "0"
        row = self.rows(
            f"""SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'videos'), (SELECT count(*) FROM videos), {heard},
                      (SELECT total(mtime_ns) FROM videos), (SELECT count(*) FROM cues), (SELECT count(*) FROM gone),
                      (SELECT total(tries) FROM failures), (SELECT fingerprint FROM encoders WHERE stream = 'vision')"""
        )[0]
        lines = self.rows("SELECT count(*) FROM lines")[0] if self.has_readings else ()
        sounds = self.rows("SELECT count(*), total(start) FROM sounds")[0] if self.has_sounds else ()
        told = self.rows("SELECT count(*), total(id) FROM captions")[0] if self.has_descriptions else ()
        return zlib.crc32(repr((*row, *lines, *sounds, *told)).encode())

    def page_of_videos(self, name: str, limit: int, offset: int) -> tuple[int, list[Video]]:
        """How many videos have ``name`` in their names (all, if it is empty), and ``limit`` of these by name."""
        where = "WHERE ?1 = '' OR instr(lower(name), lower(?1))"
        with self.view():
            total = int(self.rows(f"SELECT count(*) FROM videos {where}", (name,))[0][0])
            sql = f"SELECT {VIDEO_SELECT} FROM videos {where} ORDER BY name, id LIMIT ?2 OFFSET ?3"
            return total, [_video(row) for row in self.rows(sql, (name, limit, offset))]

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

    # finding by words; ``videos`` restricts an answer to these ids, None stands for all videos

    def count_cues(self, word: str | None = None) -> int:
        """Number of cues that hold a word in any of its forms; of all cues if no word is given."""
        if word is None:
            return int(self.rows("SELECT count(*) FROM cues")[0][0])
        return int(self.rows("SELECT count(*) FROM cue_words WHERE cue_words MATCH ?", (match_any([word]),))[0][0])

    def best_cues(self, words: Sequence[str], videos: NDArray[np.int64] | None, limit: int) -> list[CueMatch]:
        """The ``limit`` cues that match any of the words best, best match first."""
        some, ids = _restriction(videos)
        sql = f"""SELECT cues.video, cues.start, cues.end, cues.text, cues.language, -bm25(cue_words) FROM cue_words
                  JOIN cues ON cues.id = cue_words.rowid WHERE cue_words MATCH ? {some}
                  ORDER BY bm25(cue_words), cues.video, cues.id LIMIT ?"""
        rows = self.rows(sql, (match_any(words), *ids, limit)) if words else []
        return [CueMatch(row[0], Cue(*row[1:5]), float(row[5])) for row in rows]

    def cue_ids_with_words(self, words: Sequence[str], videos: NDArray[np.int64] | None) -> set[int]:
        """Ids of all cues that hold any of the words in any of its forms."""
        some, ids = _restriction(videos)
        join = "JOIN cues ON cues.id = cue_words.rowid" if some else ""
        sql = f"SELECT cue_words.rowid FROM cue_words {join} WHERE cue_words MATCH ? {some}"
        return {row[0] for row in self.rows(sql, (match_any(words), *ids))} if words else set()

    def cue_ids_with_letter(self, letter: str, videos: NDArray[np.int64] | None) -> set[int]:
        """Ids of all cues that hold a letter; no index helps, so every cue is read."""
        some, ids = _restriction(videos)
        return {row[0] for row in self.rows(f"SELECT id FROM cues WHERE instr(text, ?) {some}", (letter, *ids))}

    def cue_rows(
        self, ids: Iterable[int], videos: NDArray[np.int64] | None
    ) -> list[tuple[int, int, float, float, str]]:
        """``(id, video, start, end, text)`` of some cues, by video and in the order in which they are said."""
        some, listed = _restriction(videos)
        sql = f"""SELECT id, video, start, end, text FROM cues
                  WHERE id IN (SELECT value FROM json_each(?)) {some} ORDER BY video, id"""
        return self.rows(sql, (json.dumps(sorted(ids)), *listed))

    def best_names(self, words: Sequence[str], videos: NDArray[np.int64] | None, limit: int) -> list[NameMatch]:
        """The ``limit`` videos whose names match any of the words best, best match first."""
        sql = """SELECT videos.id, videos.name, -bm25(name_words) FROM name_words
                 JOIN videos ON videos.id = name_words.rowid
                 WHERE name_words MATCH ?1 AND (?2 IS NULL OR videos.id IN (SELECT value FROM json_each(?2)))
                 ORDER BY bm25(name_words), videos.id LIMIT ?3"""
        listed = None if videos is None else json.dumps(videos.tolist())
        rows = self.rows(sql, (match_any(words), listed, limit)) if words else []
        return [NameMatch(*row) for row in rows]

    # writing, inside changes()

    def next_ids(self, count: int = 1) -> range:
        """The ids that the next ``count`` videos get; certain only for the holder of the library's lock.

        In a shard (docs/sharding.md) they go up in steps, so that no two shards give the same.
        """
        rows = self.rows("SELECT seq FROM sqlite_sequence WHERE name = 'videos'")
        last = int(rows[0][0]) if rows else 0
        step, least = self.get(ID_STEP_SETTING, 1), self.get(LEAST_ID_SETTING, 1)
        first = least + max(0, -(-(last + 1 - least) // step)) * step
        return range(first, first + count * step, step)

    @property
    def parts(self) -> tuple[Catalog, ...]:
        """The catalogs that this one is made of: itself alone; in a sharded library, those of the shards."""
        return (self,)

    def of(self, video: int) -> Catalog:
        """The catalog that has the rows of a video: this one; in a sharded library, that of the video's shard."""
        return self

    def insert_video(
        self, video: Video, cues: Sequence[Cue], subtitles: Sequence[str] = (), *, id: int | None = None
    ) -> int:
        """Insert a video; its ``id`` is ignored and the new one returned. A video at the same path is replaced.

        ``id`` is for a writer that has already written the vectors under it; it must be a new one (``next_ids``).
        """
        old = self._db.execute("SELECT id FROM videos WHERE path = ?", (os.fsencode(video.path),)).fetchone()
        if old:
            self.remove_video(old[0])
        values = (
            id, os.fsencode(video.path), video.name, video.size, video.mtime_ns, video.hash, video.duration,
            video.width, video.height, str(video.rate), video.codec, video.clips, len(cues),
            np.asarray(video.shots, "<f8").tobytes(), json.dumps(list(subtitles)), video.added, json.dumps(video.notes),
            video.audio,
        )  # fmt: skip
        columns = VIDEO_COLUMNS.replace("added", "subtitles, added")
        marks = ", ".join("?" * len(values))
        new = self._db.execute(f"INSERT INTO videos ({columns}) VALUES ({marks})", values).lastrowid
        assert new is not None
        if video.sampling != "exact":
            self._db.execute("INSERT INTO samplings VALUES (?, ?)", (new, video.sampling))
        self._insert_cues(new, cues)
        self._db.execute("INSERT INTO name_words (rowid, text) VALUES (?, ?)", (new, name_text(video.name)))
        self._db.execute("DELETE FROM failures WHERE path = ?", (os.fsencode(video.path),))
        return new

    def set_cues(self, video: int, cues: Sequence[Cue]) -> None:
        """Give a video other cues than it has."""
        self._db.execute("DELETE FROM cues WHERE video = ?", (video,))
        self._insert_cues(video, cues)
        self._db.execute("UPDATE videos SET cues = ? WHERE id = ?", (len(cues), video))

    def _insert_cues(self, video: int, cues: Sequence[Cue]) -> None:
        self._db.executemany(
            "INSERT INTO cues (video, start, end, text, language) VALUES (?, ?, ?, ?, ?)",
            [(video, cue.start, cue.end, cue.text, cue.language) for cue in cues],
        )

    def remove_video(self, video: int) -> None:
        """Remove a video from the catalog; its vectors stay in their segments, marked as gone."""
        self._db.execute("INSERT OR IGNORE INTO gone VALUES (?)", (video,))
        self._db.execute("DELETE FROM cues WHERE video = ?", (video,))
        self._db.execute("DELETE FROM name_words WHERE rowid = ?", (video,))
        self._db.execute("DELETE FROM videos WHERE id = ?", (video,))

    def insert_segment(self, row: SegmentRow) -> None:
        """Insert a segment, so that it counts from now on."""
        self._db.execute(
            "INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?)",
            (row.name, row.stream, row.videos, row.rows, row.first),
        )

    def remove_segment(self, name: str) -> None:
        """Remove a segment, so that it no longer counts; its file stays."""
        self._db.execute("DELETE FROM segments WHERE name = ?", (name,))

    # care

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

    def _word_indices(self) -> tuple[str, ...]:
        read = ("line_words", "line_spellings") if self.has_readings else ()
        return ("cue_words", "name_words", *read, *(("caption_words",) if self.has_descriptions else ()))

    def _list_terms(self) -> None:
        """List the words anew that were read in pictures, without those of videos that are gone."""
        if self.has_readings:
            self._db.execute("DELETE FROM line_terms")
            self.add_terms(term for (term,) in self.rows("SELECT term FROM line_vocabulary"))

    def add_terms(self, terms: Iterable[str]) -> None:
        """List words that were read in pictures, inside ``changes()``."""
        self._db.executemany("INSERT OR IGNORE INTO line_terms VALUES (?, ?)", ((term, term[::-1]) for term in terms))

    def problems(self) -> list[str]:
        """What the database finds wrong with itself and its word indices."""
        found = [str(row[0]) for row in self.rows("PRAGMA integrity_check") if row[0] != "ok"]
        if self.read_only:  # the indices' own check is written as a change
            return found
        for table in self._word_indices():
            try:
                self._db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
            except DATABASE_ERRORS as e:
                found.append(f"the index {table} does not agree with its table ({e})")
        return found

    def rebuild_words(self) -> None:
        """Build the word indices anew, inside ``changes()``."""
        for table in self._word_indices():
            if table != "name_words":
                self._db.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
        self._list_terms()
        self._db.execute("DELETE FROM name_words")
        for id, name in self._db.execute("SELECT id, name FROM videos").fetchall():
            self._db.execute("INSERT INTO name_words (rowid, text) VALUES (?, ?)", (id, name_text(name)))


def _restriction(videos: NDArray[np.int64] | None) -> tuple[str, tuple[str, ...]]:
    """A condition on ``cues.video`` to append to a query, and its value."""
    if videos is None:
        return "", ()
    return "AND cues.video IN (SELECT value FROM json_each(?))", (json.dumps(videos.tolist()),)


def _video(row: Sequence[Any]) -> Video:
    values: dict[str, Any] = dict(zip((*VIDEO_COLUMNS.split(", "), "changed"), row, strict=True))
    values["path"] = Path(os.fsdecode(values["path"]))
    values["rate"] = Fraction(values["rate"])
    values["shots"] = tuple(np.frombuffer(values["shots"], "<f8").tolist())
    values["notes"] = tuple(json.loads(values["notes"]))
    values["audio"], values["changed"] = bool(values["audio"]), bool(values["changed"])
    return Video(**values)
