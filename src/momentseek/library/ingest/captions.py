"""CaptionPass: has a model describe the scenes of videos, beside everything else, in a thread of its own."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import NamedTuple

import numpy as np

from momentseek.core.errors import MediaError, MomentseekError, optional_module
from momentseek.core.pinned_file import PinnedFile
from momentseek.library.catalog import Catalog
from momentseek.library.ingest.background import BackgroundPass, run_alone
from momentseek.library.ingest.report import AddReport, ShowIngest
from momentseek.library.paths import LibraryPaths
from momentseek.library.reader import CLIP_SECONDS, LibraryReader, take_snapshot
from momentseek.library.segments import StoredVectors
from momentseek.library.tracks.descriptions import DESCRIBING, keep_caption
from momentseek.library.tracks.passes import CutVideo
from momentseek.library.video import PendingVideo, Video
from momentseek.media.pixels import Pixels
from momentseek.media.sandbox.calls import sparse_frames
from momentseek.recognition.captions.inputs import Floats
from momentseek.recognition.captions.scenes import CaptionBudget, Scene, SceneCaptioner, open_captioner, scene_spans
from momentseek.recognition.exported.captioner import ExportedCaptioner


def open_scene_captioner(spec: str, library: LibraryReader, requests: int | None = None) -> SceneCaptioner:
    """The captioner of a spec, if it can describe this library; ``requests`` bounds what is asked of an endpoint."""
    if "://" in spec:
        address, _, model = spec.partition("#")
        if not model:
            raise MomentseekError(
                f"the endpoint needs the name of a model after a #, as http://localhost:8000/v1#NAME, not {address!r}"
            )
        return open_captioner(address, model, budget=CaptionBudget(requests=requests))
    if not Path(spec).expanduser().is_dir():
        raise MomentseekError(
            f"{spec}: is no folder; give that of an exported captioner (momentseek export), or URL#MODEL of an endpoint"
        )
    found = ExportedCaptioner(Path(spec).expanduser())
    found.check_vectors(library.clip_seconds, library.catalog.encoder("vision"))
    return found


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


ROUNDING_SECONDS = 1e-6


class DescribedScene(NamedTuple):
    """A scene and what a model says of it; empty if nothing."""

    start: float
    end: float
    text: str


def describe_videos(
    library: LibraryReader,
    captioner: SceneCaptioner,
    wanted: Collection[int] | None = None,
    *,
    again: bool = False,
    progress: ShowIngest | None = None,
) -> AddReport:
    """Describe the scenes of the videos of a library, or of those of ``wanted``. The caller holds its lock."""
    report, catalog = AddReport(), library.catalog
    catalog.make_descriptions()
    if again:
        with catalog.changes():
            DESCRIBING.forget(catalog, [video.id for video in catalog.videos(wanted)], whole=wanted is not None)
    run = CaptionPass(
        library, report, progress, captioner=captioner, only=lambda video: wanted is None or video.id in wanted
    )
    run_alone(run, report)
    return report


class CaptionPass(BackgroundPass[CutVideo, DescribedScene]):
    """Describes the videos of a library that no model has described. The caller holds the library's lock."""

    WHAT = "describing"
    UNDONE = "scenes were not described"
    UNDONE_IN_VIDEO = "its scenes were not described"

    def __init__(
        self,
        library: LibraryReader,
        report: AddReport,
        progress: ShowIngest | None = None,
        *,
        captioner: SceneCaptioner,
        only: Callable[[CutVideo], bool] = lambda _: True,
    ) -> None:
        super().__init__(library, report, progress, only=only)
        self.captioner, self._closed = captioner, Event()
        library.catalog.make_descriptions()

    def pending(self) -> list[CutVideo]:
        """The videos that are still to be described."""
        return DESCRIBING.pending(self.library.catalog, self.captioner.fingerprint)

    def work(self, video: CutVideo) -> Iterator[DescribedScene]:
        """Describe a video from where an earlier run has stopped; it reads the library by a connection of its own."""
        catalog = Catalog(self.library.path)
        try:
            source = SceneSource(catalog, self.library.paths, video)
            for start, end in scene_spans(video.duration, video.cuts):
                if self._closed.is_set():
                    return
                if end > video.done + ROUNDING_SECONDS:
                    yield DescribedScene(start, end, self.captioner.describe_scene(source.scene(start, end)))
        finally:
            catalog.close()

    def close_process(self) -> None:
        """Describe no further scene."""
        self._closed.set()

    def keep(self, video: CutVideo, part: DescribedScene) -> float:
        """Store what is said of a scene."""
        by = self.captioner
        keep_caption(self.library.catalog, video.id, by.name, by.fingerprint, (part.start, part.end), part.text)
        return part.end

    def note_failure(self, video: CutVideo, reason: str) -> None:
        """Store that a video cannot be described."""
        by = self.captioner
        DESCRIBING.note(self.library.catalog, video.id, by.name, by.fingerprint, 0.0, True, reason)

    def finish_video(self, video: CutVideo) -> None:
        """Note that a video is wholly described."""
        by, catalog = self.captioner, self.library.catalog
        with catalog.changes():
            DESCRIBING.note(catalog, video.id, by.name, by.fingerprint, video.duration, whole=True)
        self.report.described += 1
        self.report.described_seconds += video.duration - video.done
