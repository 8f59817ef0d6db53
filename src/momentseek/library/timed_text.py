"""Tracks of timed text: the result of a producer for a video, its progress, and finished parts.

A track is one producer's text about one video: speech, text on screen, captions of scenes, sounds. All kinds share
these tables and functions; what differs is in :mod:`momentseek.library.tracks`, one file for each producer. Subtitles
are cues of speech without a track: no model made them.

Finished parts of a video are stored, so that nothing is done twice. A complete track is used until another one of the
same kind is complete.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from momentseek.library.catalog import Catalog
from momentseek.library.database import TrackKind
from momentseek.media.subtitles.cues import Cue


class Maker(NamedTuple):
    """The model that makes a track, and a hash that changes when its output may change."""

    model: str
    fingerprint: str


@dataclass(frozen=True)
class PendingVideo:
    """A video that waits for a producer."""

    id: int
    path: Path
    name: str
    duration: float
    size: int
    mtime_ns: int
    done: float = 0.0
    """Seconds that an earlier run has done."""
    language: str | None = None
    """The language, if an earlier run has recognised it."""
    cuts: tuple[float, ...] = ()
    """Times at which new shots begin, in seconds."""
    hash: str = ""
    """The hash of its content."""


@dataclass(frozen=True)
class TrackPart:
    """A producer's result for the next part of a video."""

    done: float
    """Seconds of the video that are done after this part."""
    content: Any = None
    """JSON values that are stored until the track is complete; None for nothing."""
    cues: tuple[Cue, ...] = ()
    """Cues that are used at once."""
    language: str | None = None


@dataclass(frozen=True)
class Track:
    """A producer's result for a video."""

    video: int
    by: Maker
    language: str | None
    whole: bool
    problem: str
    """Why the producer failed; empty if it did not."""
    cues: tuple[Cue, ...]


@dataclass(frozen=True)
class TrackCounts:
    """The progress of a producer over all videos."""

    done: int
    """Number of videos that are done."""
    seconds: float
    """Their total length."""
    found: int
    """Number of cues of this kind."""
    undone: int
    """Number of videos that wait."""
    failed: int
    """Number of videos that failed."""


def track(catalog: Catalog, kind: TrackKind, video: int) -> Track | None:
    """The track of a video, complete if possible, otherwise as far as it exists; None if there is none."""
    rows = catalog.rows(
        """SELECT model, fingerprint, language, whole, problem FROM tracks
           WHERE video = ? AND kind = ? ORDER BY whole DESC LIMIT 1""",
        (video, kind.name),
    )
    if not rows:
        return None
    model, fingerprint, language, whole, problem = rows[0]
    return Track(video, Maker(model, fingerprint), language, bool(whole), problem, tuple(catalog.own_cues(video, kind)))


def cue_words(catalog: Catalog, kind: TrackKind, video: int) -> list[list[list[Any]]]:
    """The words of each cue of a video, as lists of start, end and text."""
    sql = "SELECT words FROM cues WHERE kind = ? AND video = ? ORDER BY id"
    return [json.loads(words or "[]") for (words,) in catalog.rows(sql, (kind.name, video))]


def tracked_videos(catalog: Catalog, kind: TrackKind, videos: Iterable[int]) -> frozenset[int]:
    """Those of some videos that have a whole track."""
    some = "video IN (SELECT value FROM json_each(?))"
    sql = f"SELECT video FROM tracks WHERE {some} AND kind = ? AND whole AND problem = ''"
    return frozenset(video for (video,) in catalog.rows(sql, (json.dumps(list(videos)), kind.name)))


def contents_without_track(catalog: Catalog, kind: TrackKind, contents: Iterable[str]) -> set[str]:
    """The hashes that belong to a video without a complete track."""
    sql = """SELECT DISTINCT hash FROM videos WHERE hash IN (SELECT value FROM json_each(?))
             AND id NOT IN (SELECT video FROM tracks WHERE kind = ? AND whole)"""
    return {hash for (hash,) in catalog.rows(sql, (json.dumps(list(contents)), kind.name))}


def has_track(catalog: Catalog, kind: TrackKind, video: int) -> bool:
    """Whether a video has a complete track."""
    sql = "SELECT 1 FROM tracks WHERE kind = ? AND video = ? AND whole AND problem = ''"
    return bool(catalog.rows(sql, (kind.name, video)))


def track_counts(catalog: Catalog, kind: TrackKind) -> TrackCounts:
    """The progress of the producer of a kind."""
    sql = "SELECT count(*), coalesce(sum(done), 0) FROM tracks WHERE kind = ? AND whole AND problem "
    done, seconds = catalog.rows(f"{sql} = ''", (kind.name,))[0]
    failed, _ = catalog.rows(f"{sql} != ''", (kind.name,))[0]
    waiting = f"""SELECT count(*) FROM videos
                  WHERE {kind.waits} AND id NOT IN (SELECT video FROM tracks WHERE kind = ? AND whole)"""
    (undone,), (found,) = (
        catalog.rows(sql, (kind.name,))[0] for sql in (waiting, "SELECT count(*) FROM cues WHERE kind = ?")
    )
    return TrackCounts(done, seconds, found, undone, failed)


def pending_videos(
    catalog: Catalog, kind: TrackKind, by: Maker, also: str = "0", order: str = "duration", after: int = 0
) -> list[PendingVideo]:
    """The videos without a complete track, in an SQL ``order``, by default shortest first, so that results come soon.

    Only ids above ``after`` are considered. ``also`` is an SQL condition for videos to do again although they have a
    track, whose row of ``tracks`` is called ``old``.
    """
    rows = catalog.rows(
        f"""SELECT videos.id, path, shots, name, duration, size, mtime_ns, coalesce(new.done, 0), new.language,
                videos.hash
            FROM videos
            LEFT JOIN tracks AS old ON old.video = videos.id AND old.kind = ?1 AND old.whole
            LEFT JOIN tracks AS new
                ON new.video = videos.id AND new.kind = ?1 AND NOT new.whole AND new.fingerprint = ?2
            WHERE videos.id > ?3 AND (old.video IS NULL AND {kind.waits} OR old.video IS NOT NULL AND {also})
            ORDER BY {order}, videos.id""",
        (kind.name, by.fingerprint, after),
    )
    return [
        PendingVideo(
            id=id,
            path=Path(os.fsdecode(path)),
            cuts=tuple(np.frombuffer(shots, "<f8").tolist()),
            **dict(zip(("name", "duration", "size", "mtime_ns", "done", "language", "hash"), rest, strict=True)),
        )
        for id, path, shots, *rest in rows
    ]


def track_parts(catalog: Catalog, kind: TrackKind, video: int) -> list[Any]:
    """The contents of the stored parts of a video, in order."""
    sql = "SELECT content FROM track_parts WHERE video = ? AND kind = ? ORDER BY done"
    return [json.loads(content) for (content,) in catalog.rows(sql, (video, kind.name))]


# writing, inside changes()


def keep_part(catalog: Catalog, kind: TrackKind, video: int, by: Maker, part: TrackPart) -> None:
    """Store the next part of a video; unfinished parts of another model are deleted."""
    begun = "SELECT 1 FROM tracks WHERE video = ? AND kind = ? AND NOT whole AND fingerprint = ?"
    if not catalog.rows(begun, (video, kind.name, by.fingerprint)):
        _drop_begun(catalog, kind, video)
    if part.content is not None:
        content = json.dumps(part.content, ensure_ascii=False)
        catalog.run("INSERT OR REPLACE INTO track_parts VALUES (?, ?, ?, ?)", (video, kind.name, part.done, content))
    catalog.insert_cues(video, part.cues, kind)
    _note(catalog, kind, video, by, part.done, whole=False, language=part.language)


def finish_track(
    catalog: Catalog,
    kind: TrackKind,
    video: int,
    by: Maker,
    duration: float,
    cues: Iterable[Cue] | None = None,
    language: str | None = None,
) -> None:
    """Complete a track; ``cues`` replace those of the video, None leaves them."""
    if cues is not None:
        catalog.set_cues(video, list(cues), kind)
    _drop_parts(catalog, kind, video)
    _note(catalog, kind, video, by, duration, whole=True, language=language)


def fail_track(catalog: Catalog, kind: TrackKind, video: int, by: Maker, problem: str) -> None:
    """Record that a video failed; it is not tried again automatically. A complete track stays."""
    _drop_parts(catalog, kind, video)
    if not has_track(catalog, kind, video):
        _note(catalog, kind, video, by, 0.0, whole=True, problem=problem)


def forget_tracks(catalog: Catalog, kind: TrackKind, videos: Sequence[int], *, whole: bool = False) -> None:
    """Delete tracks that failed or are incomplete, to make them again; with ``whole``, also complete ones."""
    for video in videos:
        known = catalog.rows("SELECT 1 FROM tracks WHERE video = ? AND kind = ?", (video, kind.name))
        if known and (whole or not has_track(catalog, kind, video)):
            catalog.set_cues(video, [], kind)
            catalog.run("DELETE FROM track_parts WHERE video = ? AND kind = ?", (video, kind.name))
            catalog.run("DELETE FROM tracks WHERE video = ? AND kind = ?", (video, kind.name))


def copy_tracks(catalog: Catalog, content: str, video: int) -> None:
    """Copy the tracks of a video with the same content to one that is about to be inserted."""
    for kind in catalog.kinds():
        if not kind.copied:
            continue
        known = catalog.rows(
            """SELECT video FROM tracks JOIN videos ON videos.id = video
               WHERE hash = ? AND kind = ? AND whole AND video != ? ORDER BY video LIMIT 1""",
            (content, kind.name, video),
        )
        for (other,) in known:
            columns = "kind, start, end, text, language, frame, score, box, words, sum"
            catalog.run(
                f"""INSERT INTO cues (video, {columns})
                    SELECT ?, {columns} FROM cues WHERE kind = ? AND video = ? ORDER BY id""",
                (video, kind.name, other),
            )
            columns = "kind, whole, model, fingerprint, language, done, problem, at"
            catalog.run(
                f"""INSERT OR REPLACE INTO tracks (video, {columns})
                    SELECT ?, {columns} FROM tracks WHERE kind = ? AND video = ? AND whole""",
                (video, kind.name, other),
            )


def _note(
    catalog: Catalog,
    kind: TrackKind,
    video: int,
    by: Maker,
    done: float,
    *,
    whole: bool,
    language: str | None = None,
    problem: str = "",
) -> None:
    catalog.run(
        "INSERT OR REPLACE INTO tracks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (video, kind.name, int(whole), by.model, by.fingerprint, language, done, problem, time.time()),
    )


def _drop_parts(catalog: Catalog, kind: TrackKind, video: int) -> None:
    catalog.run("DELETE FROM track_parts WHERE video = ? AND kind = ?", (video, kind.name))
    catalog.run("DELETE FROM tracks WHERE video = ? AND kind = ? AND NOT whole", (video, kind.name))


def _drop_begun(catalog: Catalog, kind: TrackKind, video: int) -> None:
    """Delete the unfinished parts of another model, and their cues unless they belong to a complete track."""
    sql = "SELECT max(whole) FROM tracks WHERE video = ? AND kind = ?"
    if catalog.rows(sql, (video, kind.name)) == [(0,)]:
        catalog.set_cues(video, [], kind)
    _drop_parts(catalog, kind, video)
