"""Finished parts of a long video, kept until the whole of it is in the library.

A part is a fixed stretch of clips, decoded by itself, so that a video read in one go and one read in several runs
give the same vectors and cuts. A part's file says by its name's hash which bytes it holds; one that does not is
made again.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from momentseek.core.atomic import drop_temporary, flush_file, flush_folder, make_folder
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
        cuts = np.asarray(tuple(shots), "<f8")
        body = b"".join(array.tobytes() for array in (rows.scales, rows.half, rows.codes, cuts))
        data = hashlib.blake2b(body, digest_size=16).digest() + body
        temporary = None
        try:
            make_folder(self.folder)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".part-", delete=False) as file:
                temporary = Path(file.name)
                file.write(data)
                file.flush()
                flush_file(file.fileno())
            temporary.replace(self._path(part))
            flush_folder(self.folder)
        except OSError as e:
            raise MomentseekError(
                f"{self.folder}: what is done of a long video cannot be kept ({e.strerror}); make room"
            ) from None
        finally:
            drop_temporary(temporary)

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
        check, body = data[:16], data[16:]
        clips, dim = self.part_clips, self.dim
        halves, codes, cuts = 4 * clips, (4 + 2 * dim) * clips, (4 + 3 * dim) * clips
        if hashlib.blake2b(body, digest_size=16).digest() != check or len(body) < cuts:
            return None
        rows = StoredVectors(
            np.frombuffer(body[codes:cuts], np.int8).reshape(clips, dim),
            np.frombuffer(body[:halves], np.float32),
            np.frombuffer(body[halves:codes], np.float16).reshape(clips, dim),
        )
        return rows, tuple(np.frombuffer(body[cuts:], "<f8").tolist())


def drop_old_parts(library: Path, days: float = KEEP_DAYS) -> None:
    """Delete the parts of videos that were never finished and not touched for so many days."""
    for folder in (library / PARTS_FOLDER).glob("*"):
        try:
            if time.time() - folder.stat().st_mtime > days * 86400:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
