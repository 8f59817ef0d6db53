"""Passes: one look of a machine at every video (reading, describing), and how far it is with each of them.

A pass has a table with a row for each video it has begun: by which model, how many seconds are done, whether all, and
what went wrong; and tables of what it found, which have a column ``video``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.library.catalog import Catalog
from momentseek.library.video import PendingVideo


@dataclass(frozen=True)
class CutVideo(PendingVideo):
    """A video that waits for a pass that looks at it shot by shot."""

    cuts: tuple[float, ...] = ()


@dataclass(frozen=True)
class PassTable:
    """The tables of one kind of pass; all that changes them happens inside ``changes()``."""

    name: str
    found: str
    """The table of what was found."""
    columns: str
    """Its columns but ``id`` and ``video``."""
    partial: tuple[str, ...] = ()
    """Tables of what was found in videos that are not whole yet."""

    def pending(self, catalog: Catalog, fingerprint: str) -> list[CutVideo]:
        """The videos that are not whole, shortest first, so that something can be found soon."""
        rows = catalog.rows(
            f"""SELECT videos.id, path, videos.name, duration, size, mtime_ns, coalesce(done, 0), shots
                FROM videos LEFT JOIN {self.name} p ON p.video = videos.id AND p.fingerprint = ?
                WHERE duration > 0 AND videos.id NOT IN (SELECT video FROM {self.name} WHERE whole)
                ORDER BY duration, videos.id""",
            (fingerprint,),
        )
        return [
            CutVideo(
                id, Path(os.fsdecode(path)), name, duration, size, mtime_ns, done,
                cuts=tuple(np.frombuffer(shots, "<f8").tolist()),
            )
            for id, path, name, duration, size, mtime_ns, done, shots in rows
        ]  # fmt: skip

    def is_begun(self, catalog: Catalog, video: int, fingerprint: str) -> bool:
        """Whether a video was begun by the same model."""
        sql = f"SELECT 1 FROM {self.name} WHERE video = ? AND fingerprint = ?"
        return bool(catalog.rows(sql, (video, fingerprint)))

    def note(
        self, catalog: Catalog, video: int, model: str, fingerprint: str, done: float, whole: bool, problem: str = ""
    ) -> None:
        """Note how far a video is."""
        catalog.run(
            f"INSERT OR REPLACE INTO {self.name} VALUES (?, ?, ?, ?, ?, ?, ?)",
            (video, model, fingerprint, done, int(whole), problem, time.time()),
        )

    def copy(self, catalog: Catalog, content: str, video: int) -> None:
        """Give a video that is about to be inserted what was found in one with the same content."""
        known = catalog.rows(
            f"""SELECT p.video FROM {self.name} p JOIN videos ON videos.id = p.video
                WHERE hash = ? AND whole AND videos.id != ? ORDER BY p.video LIMIT 1""",
            (content, video),
        )
        for (other,) in known:
            catalog.run(
                f"""INSERT INTO {self.found} (video, {self.columns})
                    SELECT ?, {self.columns} FROM {self.found} WHERE video = ? ORDER BY id""",
                (video, other),
            )
            catalog.run(
                f"""INSERT OR REPLACE INTO {self.name}
                    SELECT ?, model, fingerprint, done, whole, problem, at FROM {self.name} WHERE video = ?""",
                (video, other),
            )

    def forget(self, catalog: Catalog, videos: Sequence[int], *, whole: bool = False) -> None:
        """Forget videos that failed or are done in part, to do them again; with ``whole``, also those that are done."""
        listed = json.dumps(list(videos))
        which = "1" if whole else "(problem != '' OR NOT whole)"
        chosen = f"SELECT video FROM {self.name} WHERE {which} AND video IN (SELECT value FROM json_each(?))"
        for table in (self.found, *self.partial, self.name):
            catalog.run(f"DELETE FROM {table} WHERE video IN ({chosen})", (listed,))

    def counts(self, catalog: Catalog, *, there: bool) -> PassCounts:
        """How much was done; ``there`` says whether the library has these tables."""
        total = catalog.rows("SELECT count(*) FROM videos WHERE duration > 0")[0][0]
        if not there:
            return PassCounts(0, 0.0, 0, total, 0)
        sql = f"SELECT count(*), coalesce(sum(done), 0) FROM {self.name} WHERE whole AND problem = ''"
        done, seconds = catalog.rows(sql)[0]
        failed = catalog.rows(f"SELECT count(*) FROM {self.name} WHERE whole AND problem != ''")[0][0]
        found = catalog.rows(f"SELECT count(*) FROM {self.found}")[0][0]
        return PassCounts(done, seconds, found, max(0, total - done - failed), failed)


@dataclass(frozen=True)
class PassCounts:
    """How far a pass is."""

    done: int
    """Number of videos that are done."""
    seconds: float
    """Their length."""
    found: int
    """Number of things that were found."""
    undone: int
    """Number of videos that wait."""
    failed: int
    """Number of videos that could not be done."""
