"""Readings: what a machine read in the pictures of videos, as lines with times and boxes.

While a long video is being read, its frames are kept, so that nothing is read twice; its lines count once it is whole.
Lines are never mixed with cues: what is written is one thing, what is said another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.tracks.passes import PassCounts, PassTable
from momentseek.library.words import is_one_letter_off, match_any, plain_words
from momentseek.recognition.ocr.lines import Box, ScreenLine, frame_as_json, frame_of_json, merge_lines

if TYPE_CHECKING:
    from momentseek.recognition.ocr.lines import OcrPart


LINE_COLUMNS = "start, end, text, at, x, y, width, height, score"
MIN_FUZZY_LETTERS = 4
"""Letters from which a word is found with one of them wrong: shorter words all look alike then."""
LAST_LETTER = chr(0x10FFFF)
"""A letter after all others."""
MAX_SPELLINGS = 50
"""Other spellings of a word that are looked for."""


READING = PassTable("readings", "lines", LINE_COLUMNS, ("read_frames",))


@dataclass(frozen=True)
class ScreenReading:
    """What a reader read in a video."""

    video: int
    reader: str
    lines: tuple[ScreenLine, ...]
    problem: str = ""
    """Why the pictures could not be read; empty if they could."""
    whole: bool = True


@dataclass(frozen=True)
class LineMatch:
    """A line that holds words of a query."""

    id: int
    video: int
    line: ScreenLine
    bm25: float
    """How well it matches, by BM25; the higher the better."""


# reading videos


def keep_frames(catalog: Catalog, video: int, reader: str, fingerprint: str, part: OcrPart) -> None:
    """Keep what was read of a video so far, inside ``changes()``; it is not searched before the video is whole."""

    if not READING.is_begun(catalog, video, fingerprint):
        catalog.run("DELETE FROM read_frames WHERE video = ?", (video,))
    for frame in part.frames:
        catalog.run(
            "INSERT OR REPLACE INTO read_frames VALUES (?, ?, ?)",
            (video, frame.start, json.dumps(frame_as_json(frame), ensure_ascii=False)),
        )
    READING.note(catalog, video, reader, fingerprint, part.done, whole=False)


def finish_reading(catalog: Catalog, video: int, reader: str, fingerprint: str, duration: float) -> None:
    """Make lines of the frames that were read of a video, inside ``changes()``."""

    catalog.run("DELETE FROM lines WHERE video = ?", (video,))
    lines = merge_lines(_kept_frames(catalog, video))
    catalog.add_terms(word for text in plain_words([line.text for line in lines]) for word in text.split())
    for line in lines:
        values = (video, line.start, line.end, line.text, line.at, *line.box, line.score)
        catalog.run(f"INSERT INTO lines (video, {LINE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    catalog.run("DELETE FROM read_frames WHERE video = ?", (video,))
    READING.note(catalog, video, reader, fingerprint, duration, whole=True)


def note_unread(catalog: Catalog, video: int, reader: str, fingerprint: str, problem: str) -> None:
    """Note that a video's pictures cannot be read, inside ``changes()``; they are not tried again unasked."""
    catalog.run("DELETE FROM read_frames WHERE video = ?", (video,))
    READING.note(catalog, video, reader, fingerprint, 0.0, True, problem)


def _kept_frames(catalog: Catalog, video: int) -> Iterator[Any]:

    for (frame,) in catalog.rows("SELECT frame FROM read_frames WHERE video = ? ORDER BY start", (video,)):
        yield frame_of_json(json.loads(frame))


# what was read


def reading(catalog: Catalog, video: int) -> ScreenReading | None:
    """What was read in a video; None if nobody has looked. Lines are there once it is whole."""
    if not catalog.has_readings:
        return None
    rows = catalog.rows("SELECT model, problem, whole FROM readings WHERE video = ?", (video,))
    if not rows:
        return None
    lines = catalog.rows(f"SELECT {LINE_COLUMNS} FROM lines WHERE video = ? ORDER BY id", (video,))
    model, problem, whole = rows[0]
    return ScreenReading(video, model, tuple(map(_line, lines)), problem, bool(whole))


def lines_between(catalog: Catalog, video: int, start: float, end: float) -> list[ScreenLine]:
    """The lines of a video that stand in its picture between two times (seconds)."""
    if not catalog.has_readings:
        return []
    sql = f"SELECT {LINE_COLUMNS} FROM lines WHERE video = ? AND start < ? AND ? < end ORDER BY id"
    return [_line(row) for row in catalog.rows(sql, (video, end, start))]


def read_counts(catalog: Catalog) -> PassCounts:
    """How much was read."""
    return READING.counts(catalog, there=catalog.has_readings)


def _line(row: Sequence[Any]) -> ScreenLine:

    start, end, text, at, x, y, width, height, score = row
    return ScreenLine(start, end, text, at, Box(x, y, width, height), score)


# finding lines by words; ``videos`` restricts an answer to these ids, None stands for all videos


def count_lines(catalog: Catalog, word: str | None = None) -> int:
    """Number of lines that hold a word in any of its forms; of all lines if no word is given."""
    if word is None:
        return int(catalog.rows("SELECT count(*) FROM lines")[0][0])
    return int(catalog.rows("SELECT count(*) FROM line_words WHERE line_words MATCH ?", (match_any([word]),))[0][0])


def best_lines(
    catalog: Catalog, words: Sequence[str], videos: NDArray[np.int64] | None, limit: int, *, spelt: bool = False
) -> list[LineMatch]:
    """The ``limit`` lines that match any of the words best, best match first; ``spelt`` without stemming."""
    if not words:
        return []
    index = "line_spellings" if spelt else "line_words"
    some = "" if videos is None else "AND lines.video IN (SELECT value FROM json_each(?))"
    ids = () if videos is None else (json.dumps(videos.tolist()),)
    columns = ", ".join(f"lines.{column}" for column in LINE_COLUMNS.split(", "))
    sql = f"""SELECT lines.id, lines.video, -bm25({index}), {columns} FROM {index}
              JOIN lines ON lines.id = {index}.rowid WHERE {index} MATCH ? {some}
              ORDER BY bm25({index}), lines.video, lines.id LIMIT ?"""
    rows = catalog.rows(sql, (match_any(words), *ids, limit))
    return [LineMatch(row[0], row[1], _line(row[3:]), float(row[2])) for row in rows]


def near_spellings(catalog: Catalog, word: str) -> list[str]:
    """Words that were read in pictures and differ from a word in one letter.

    Such a word begins or ends like the other, so only those that do are looked at letter by letter.
    """
    plain = plain_words([word])[0]
    if len(plain) < MIN_FUZZY_LETTERS or " " in plain:
        return []
    half = len(plain) // 2
    first, last = plain[: half - 1], plain[half + 1 :][::-1]
    rows = catalog.rows(
        """SELECT term FROM line_terms WHERE term >= ?1 AND term < ?1 || ?3 AND length(term) BETWEEN ?4 - 1 AND ?4 + 1
           UNION SELECT term FROM line_terms
           WHERE reversed >= ?2 AND reversed < ?2 || ?3 AND length(term) BETWEEN ?4 - 1 AND ?4 + 1""",
        (first, last, LAST_LETTER, len(plain)),
    )
    return sorted(term for (term,) in rows if is_one_letter_off(term, plain))[:MAX_SPELLINGS]


def line_times(catalog: Catalog, texts: Sequence[str], videos: Iterable[int]) -> dict[int, list[tuple[float, float]]]:
    """Start and end of each line of some videos in which any of some texts stands, by video."""
    out: dict[int, list[tuple[float, float]]] = {}
    if not texts or not catalog.has_readings:
        return out
    rows = catalog.rows(
        """SELECT lines.video, lines.start, lines.end FROM line_words JOIN lines ON lines.id = line_words.rowid
           WHERE line_words MATCH ? AND lines.video IN (SELECT value FROM json_each(?))""",
        (match_any(texts), json.dumps(sorted(videos))),
    )
    for video, start, end in rows:
        out.setdefault(video, []).append((start, end))
    return out
