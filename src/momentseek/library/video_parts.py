"""Finished parts of a long video, stored until the whole video is in the library.

A part is a fixed stretch of clips, decoded by itself, so that a video read in one go and one read in several runs
give the same vectors and cuts. A part's file begins with the hash of its bytes; one that does not match is made again.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from momentseek.core.atomic import make_folder, write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.library.segments import StoredVectors

PARTS_FOLDER = "work"
KEEP_DAYS = 30.0
"""Days after which the parts of a video that was never finished are dropped."""


class VideoParts:
    """The finished parts of one video, by its content, for an encoder and a grid of clips."""

    def __init__(
        self, library: Path, content: str, encoder: str, clip_seconds: float, part_clips: int, dim: int
    ) -> None:
        grid = f"{encoder}\0{clip_seconds!r}\0{part_clips}".encode()
        self.folder = library / PARTS_FOLDER / f"{content}-{hashlib.blake2b(grid, digest_size=6).hexdigest()}"
        self.part_clips, self.dim = part_clips, dim

    def load(self) -> list[tuple[StoredVectors, tuple[float, ...]]]:
        """The vectors and cuts of the finished parts, from the first on without a gap."""
        found: list[tuple[StoredVectors, tuple[float, ...]]] = []
        while (part := self._part(len(found))) is not None:
            found.append(part)
        return found

    def save(self, part: int, rows: StoredVectors, shots: Iterable[float]) -> None:
        """Store a finished part: wholly and flushed to the disk, or not at all."""
        body = io.BytesIO()
        np.savez(body, scales=rows.scales, half=rows.half, codes=rows.codes, cuts=np.asarray(tuple(shots), "<f8"))
        data = body.getvalue()
        try:
            make_folder(self.folder)
        except OSError as e:
            raise MomentseekError(
                f"{self.folder}: what is done of a long video cannot be kept ({e.strerror}); make room"
            ) from None
        write_bytes(self._path(part), hashlib.blake2b(data, digest_size=16).digest() + data)

    def drop(self) -> None:
        """Delete the parts, once the video is in the library or given up."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, part: int) -> Path:
        return self.folder / f"{part:06d}.part"

    def _part(self, part: int) -> tuple[StoredVectors, tuple[float, ...]] | None:
        try:
            data = self._path(part).read_bytes()
        except OSError:
            return None
        if hashlib.blake2b(data[16:], digest_size=16).digest() != data[:16]:
            return None
        with np.load(io.BytesIO(data[16:])) as held:
            rows = StoredVectors(held["codes"], held["scales"], held["half"])
            cuts = tuple(held["cuts"].tolist())
        return (rows, cuts) if rows.half.shape == (self.part_clips, self.dim) else None


def drop_old_parts(library: Path, days: float = KEEP_DAYS) -> None:
    """Delete parts of unfinished videos that have not changed for ``days`` days."""
    for folder in (library / PARTS_FOLDER).glob("*"):
        try:
            if time.time() - folder.stat().st_mtime > days * 86400:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
