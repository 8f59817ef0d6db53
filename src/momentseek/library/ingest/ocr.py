"""OcrPass: reads what is written in videos beside their pictures, in a process and a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from momentseek.library.ingest.background import BackgroundPass, run_alone, usual_threads
from momentseek.library.ingest.report import AddReport, ShowIngest
from momentseek.library.reader import LibraryReader
from momentseek.library.tracks.passes import CutVideo
from momentseek.library.tracks.readings import READING, finish_reading, keep_frames, note_unread
from momentseek.recognition.ocr.lines import SLOT_SECONDS, OcrPart
from momentseek.recognition.ocr.models import DEFAULT_OCR_MODEL, ocr_fingerprint
from momentseek.recognition.ocr.recognise import OcrProcess


def read_videos(
    library: LibraryReader,
    reader: str,
    wanted: Collection[int] | None = None,
    *,
    again: bool = False,
    every: float = SLOT_SECONDS,
    progress: ShowIngest | None = None,
) -> AddReport:
    """Read what is written in the videos of a library, or in those of ``wanted``: one frame ``every`` so many seconds
    of a shot. The caller holds its lock.
    """
    report = AddReport()
    catalog = library.catalog
    catalog.make_readings()
    if again:
        with catalog.changes():
            READING.forget(catalog, [video.id for video in catalog.videos(wanted)], whole=wanted is not None)
    run = OcrPass(
        library, report, progress, reader=reader, every=every, threads=usual_threads(),
        only=lambda video: wanted is None or video.id in wanted,
    )  # fmt: skip
    run_alone(run, report)
    return report


class OcrPass(BackgroundPass[CutVideo, OcrPart]):
    """Reads the videos of a library that nobody has read. The caller holds the library's lock."""

    WHAT = "reading"
    UNDONE = "what is written was not read"
    UNDONE_IN_VIDEO = "what is written in it was not read"

    def __init__(
        self,
        library: LibraryReader,
        report: AddReport,
        progress: ShowIngest | None = None,
        *,
        reader: str = DEFAULT_OCR_MODEL,
        every: float = SLOT_SECONDS,
        threads: int = 1,
        only: Callable[[CutVideo], bool] = lambda _: True,
    ) -> None:
        super().__init__(library, report, progress, only=only)
        self.reader, self.every, self.fingerprint = reader, every, ocr_fingerprint(reader, every)
        library.catalog.make_readings()
        self._process = OcrProcess(reader, threads)

    def pending(self) -> list[CutVideo]:
        """The videos that are still to be read."""
        return READING.pending(self.library.catalog, self.fingerprint)

    def work(self, video: CutVideo) -> Iterator[OcrPart]:
        """Read a video from where an earlier run has stopped."""
        return self._process.read(video.path, video.duration, video.cuts, video.done, self.every)

    def close_process(self) -> None:
        """End the reader."""
        self._process.close()

    def keep(self, video: CutVideo, part: OcrPart) -> float:
        """Store the frames of a part."""
        keep_frames(self.library.catalog, video.id, self.reader, self.fingerprint, part)
        return part.done

    def note_failure(self, video: CutVideo, reason: str) -> None:
        """Store that a video cannot be read."""
        note_unread(self.library.catalog, video.id, self.reader, self.fingerprint, reason)

    def finish_video(self, video: CutVideo) -> None:
        """Make lines of the frames that were read."""
        with self.library.catalog.changes():
            finish_reading(self.library.catalog, video.id, self.reader, self.fingerprint, video.duration)
        self.report.read += 1
        self.report.read_seconds += video.duration - video.done
