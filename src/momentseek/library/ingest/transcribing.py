"""TranscribeRun: hears videos beside the pictures, in a process and a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from momentseek.library.damage import SegmentDamage, damage_message
from momentseek.library.ingest.beside import BesideRun, run_alone, usual_threads
from momentseek.library.ingest.report import AddReport, ShowIngest
from momentseek.library.ingest.speech import replace_cues
from momentseek.library.ingest.timer import StageTimer
from momentseek.library.reader import LibraryReader
from momentseek.library.segment_merge import merge_segments
from momentseek.library.transcript_edits import with_edits
from momentseek.library.transcripts import (
    UnheardVideo,
    finish_transcript,
    forget_transcripts,
    heard_parts,
    keep_part,
    note_unheard,
    spoken_cues,
    unheard_videos,
)
from momentseek.transcription import DEFAULT_TRANSCRIBER, HeardPart, TranscriberProcess, transcriber_print

SEGMENTS_BETWEEN_MERGES = 16
UNSURE_LANGUAGE_NOTE = "no language that the recogniser knows was surely heard in it; its words may be wrong"


def transcribe_videos(
    library: LibraryReader,
    transcriber: str,
    wanted: Collection[int] | None = None,
    *,
    again: bool = False,
    progress: ShowIngest | None = None,
) -> AddReport:
    """Hear the videos of a library that have sound and no cues, or those of ``wanted``. The caller holds its lock.

    ``again`` also hears what could not be heard before, and anew what another recogniser heard.
    """
    report = AddReport()
    catalog = library.catalog
    catalog.make_transcripts()
    library.paths.drop_orphans(catalog)
    if again:
        with catalog.changes():
            forget_transcripts(catalog, [video.id for video in catalog.videos(wanted)])
    run = TranscribeRun(
        library, report, progress, transcriber=transcriber, threads=usual_threads(),
        only=lambda video: wanted is None or video.id in wanted, again=again,
    )  # fmt: skip
    run_alone(run, report)
    if run.damages:
        report.notes.append(damage_message(catalog, run.damages.values()))
    return report


class TranscribeRun(BesideRun[UnheardVideo, HeardPart]):
    """Hears the videos of a library that have sound and no cues. The caller holds the library's lock."""

    WHAT = "hearing"
    UNDONE = "what is said was not heard"
    UNDONE_IN_VIDEO = "what is said in it was not heard"

    def __init__(
        self,
        library: LibraryReader,
        report: AddReport,
        progress: ShowIngest | None = None,
        *,
        transcriber: str = DEFAULT_TRANSCRIBER,
        threads: int = 1,
        timer: StageTimer | None = None,
        only: Callable[[UnheardVideo], bool] = lambda _: True,
        again: bool = False,
    ) -> None:
        super().__init__(library, report, progress, only=only)
        self.again = again
        self.transcriber, self.fingerprint = transcriber, transcriber_print(transcriber)
        self.timer = timer or StageTimer()
        library.catalog.make_transcripts()
        self._process = TranscriberProcess(transcriber, threads)
        self._written = 0
        self.damages: dict[str, SegmentDamage] = {}
        """Segments that were found damaged and are not joined with others."""

    def pending(self) -> list[UnheardVideo]:
        """The videos that are still to be heard."""
        return unheard_videos(self.library.catalog, fingerprint=self.fingerprint, again=self.again)

    def work(self, video: UnheardVideo) -> Iterator[HeardPart]:
        """Hear a video from where an earlier run has stopped."""
        return self._process.hear(video.path, video.done, video.language)

    def close_process(self) -> None:
        """End the recogniser."""
        self._process.close()

    def keep(self, video: UnheardVideo, part: HeardPart) -> float:
        """Store what was heard in a part."""
        keep_part(self.library.catalog, video.id, self.transcriber, self.fingerprint, part)
        return part.heard

    def note_failure(self, video: UnheardVideo, reason: str) -> None:
        """Store that a video cannot be heard."""
        note_unheard(self.library.catalog, video.id, self.transcriber, self.fingerprint, reason)

    def finish_video(self, video: UnheardVideo) -> None:
        """Make what was heard the cues of its video, with vectors."""
        catalog = self.library.catalog
        heard = heard_parts(catalog, video.id)
        assert heard is not None
        found = with_edits(catalog, heard)
        with self.timer.stage("encode speech"):
            self._written += replace_cues(
                self.library, video.id, spoken_cues(found), lambda: finish_transcript(catalog, found, video.duration)
            )
        if found.cues and found.language is None:
            self.note(video, UNSURE_LANGUAGE_NOTE)
        self.report.heard += 1
        self.report.heard_seconds += video.duration - video.done
        if self._written >= SEGMENTS_BETWEEN_MERGES:
            self.finish_run()

    def finish_run(self) -> None:
        """Join the small segments that were written."""
        if self._written:
            merge_segments(self.library.catalog, self.library.paths, "speech", self.damages)
            self._written = 0
