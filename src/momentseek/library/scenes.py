"""SceneSource: the scenes of a library's video as captioners take them, with frames, vectors and what is said."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import closing
from functools import cached_property

import numpy as np

from momentseek.captioning.moment_input import Floats
from momentseek.captioning.scene import Scene
from momentseek.errors import MediaError
from momentseek.library.catalog import Catalog
from momentseek.library.paths import LibraryPaths
from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.snapshot import take_snapshot
from momentseek.library.vectors import StoredVectors
from momentseek.library.video import PendingVideo, Video
from momentseek.media.picture import Pixels
from momentseek.media.sandbox import glimpses
from momentseek.optional import optional_module
from momentseek.plain_file import PlainFile

LONG_SIDE = 512
"""Pixels of the longer side of the frames that a captioner gets."""
JPEG_QUALITY = 85


class SceneSource:
    """Makes scenes of one video; what is asked for once is kept."""

    def __init__(self, catalog: Catalog, paths: LibraryPaths, video: PendingVideo | Video) -> None:
        self.catalog, self.paths, self.video = catalog, paths, video

    def scene(self, start: float, end: float) -> Scene:
        """The scene between two times, in seconds."""
        said = self.catalog.cues_between(self.video.id, start, end)
        return Scene(
            start,
            end,
            tuple((cue.start, cue.end, cue.text) for cue in said),
            lambda count: self._frames(start, end, count),
            lambda: (self._rows, float(self.catalog.get("clip_seconds", CLIP_SECONDS))),
        )

    def _frames(self, start: float, end: float, count: int) -> Sequence[bytes]:
        step = (end - start) / count
        slots = [(start + i * step, start + (i + 1) * step) for i in range(count)]
        video = self.video
        with closing(glimpses(PlainFile(video.path, video.size, video.mtime_ns), slots)) as frames:
            return [jpeg(frame.pixels) for frame in frames]

    @cached_property
    def _rows(self) -> Floats:
        """The vectors of the video's clips, one row each."""
        found = StoredVectors.find(take_snapshot(self.catalog, self.paths.segments).vision, self.video.id)
        rows = np.zeros((0, 0), np.float32) if found is None else found.half.astype(np.float32)
        if not len(rows) or not np.isfinite(rows).all():
            raise MediaError("its vectors are missing or damaged; run: momentseek verify")
        return rows


def jpeg(pixels: Pixels) -> bytes:
    """A picture as JPEG, made smaller where it is large.

    >>> jpeg(np.zeros((20, 30, 3), np.uint8))[:2]
    b'\\xff\\xd8'
    """
    picture = optional_module("PIL.Image", "search").fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((LONG_SIDE, LONG_SIDE))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=JPEG_QUALITY)
    return out.getvalue()
