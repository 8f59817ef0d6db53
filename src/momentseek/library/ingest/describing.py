"""DescribeRun: has a model describe the scenes of videos, beside everything else, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from threading import Event
from typing import NamedTuple

from momentseek.captioning.scene import SceneCaptioner, scene_spans
from momentseek.library.catalog import Catalog
from momentseek.library.descriptions import DESCRIBING, keep_caption
from momentseek.library.ingest.beside import BesideRun, run_alone
from momentseek.library.ingest.report import AddReport, ShowIngest
from momentseek.library.passes import CutVideo
from momentseek.library.reader import LibraryReader
from momentseek.library.scenes import SceneSource

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
    run = DescribeRun(
        library, report, progress, captioner=captioner, only=lambda video: wanted is None or video.id in wanted
    )
    run_alone(run, report)
    return report


class DescribeRun(BesideRun[CutVideo, DescribedScene]):
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
