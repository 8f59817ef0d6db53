"""Captions: a model's descriptions of the scenes of videos.

Each caption is stored and used as soon as it is made, so that a killed process loses only the current one. Captions are
never mixed with speech: a model's description is not what is said in the scene.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from threading import Event

import numpy as np

from momentseek.core.errors import MediaError, MomentseekError, optional_module
from momentseek.core.pinned_file import PinnedFile
from momentseek.library.catalog import Catalog
from momentseek.library.database import CAPTIONS
from momentseek.library.paths import LibraryPaths
from momentseek.library.reader import CLIP_SECONDS, LibraryReader, take_snapshot
from momentseek.library.segments import StoredVectors
from momentseek.library.timed_text import Maker, PendingVideo, TrackPart
from momentseek.library.tracks.background import PassRequest, TrackPass
from momentseek.library.video import Video
from momentseek.media.pixels import Pixels
from momentseek.media.sandbox.calls import sparse_frames
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.captions.inputs import Floats
from momentseek.recognition.captions.scenes import CaptionBudget, Scene, SceneCaptioner, open_captioner, scene_spans
from momentseek.recognition.exported.captioner import ExportedCaptioner

LONG_SIDE = 512
"""Pixels of the longer side of the frames that a captioner gets."""
JPEG_QUALITY = 85
ROUNDING_SECONDS = 1e-6


class CaptionPass(TrackPass):
    """Describes the scenes of videos that no model has described."""

    kind = CAPTIONS
    what = "describing"
    undone = "scenes were not described"
    undone_in_video = "its scenes were not described"

    def __init__(self, request: PassRequest, captioner: SceneCaptioner) -> None:
        super().__init__(request, Maker(captioner.name, captioner.fingerprint))
        self.captioner, self._closed = captioner, Event()

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Describe a video from where an earlier run stopped; it reads the library with its own connection."""
        with closing(Catalog(self.library.path)) as catalog:
            source = SceneSource(catalog, self.library.paths, video)
            for start, end in scene_spans(video.duration, video.cuts):
                if self._closed.is_set():
                    return
                if end > video.done + ROUNDING_SECONDS:
                    text = self.captioner.describe_scene(source.scene(start, end))
                    yield TrackPart(end, cues=(Cue(start, end, text),) if text else ())

    def close(self) -> None:
        """Describe no further scene."""
        self._closed.set()

    def count(self, seconds: float) -> None:
        """Report a video that was described."""
        self.report.described += 1
        self.report.described_seconds += seconds


def open_scene_captioner(spec: str, library: LibraryReader, requests: int | None = None) -> SceneCaptioner:
    """Open the captioner of a spec, if it fits this library; ``requests`` limits the requests to an endpoint."""
    if "://" in spec:
        address, _, model = spec.partition("#")
        if not model:
            raise MomentseekError(
                f"the endpoint needs the name of a model after a #, as http://localhost:8000/v1#NAME, not {address!r}"
            )
        return open_captioner(address, model, budget=CaptionBudget(requests=requests))
    if not Path(spec).expanduser().is_dir():
        raise MomentseekError(
            f"{spec}: is not a folder; give an exported captioner's (momentseek export), or URL#MODEL of an endpoint"
        )
    found = ExportedCaptioner(Path(spec).expanduser())
    found.check_vectors(library.clip_seconds, library.catalog.encoder("vision"))
    return found


class SceneSource:
    """Creates scenes of one video, and caches its vectors."""

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
        with closing(sparse_frames(PinnedFile(video.path, video.size, video.mtime_ns), slots)) as frames:
            return [jpeg(frame.pixels) for frame in frames]

    @cached_property
    def _rows(self) -> Floats:
        """The vectors of the video's clips, one row each."""
        found = StoredVectors.find(take_snapshot(self.catalog, self.paths.segments).vision, self.video.id)
        rows = np.zeros((0, 0), np.float32) if found is None else found.half.astype(np.float32)
        if not len(rows) or not np.isfinite(rows).all():
            raise MediaError("its vectors are missing or damaged; run: momentseek verify")
        return rows


def jpeg(pixels: Pixels, long_side: int = LONG_SIDE, quality: int = JPEG_QUALITY) -> bytes:
    """Encode a picture as JPEG, scaled down if it is large.

    >>> jpeg(np.zeros((20, 30, 3), np.uint8))[:2]
    b'\\xff\\xd8'
    """
    picture = optional_module("PIL.Image", "search").fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((long_side, long_side))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality)
    return out.getvalue()
