"""TranscriptionPass: hears videos beside the pictures, in a process and a thread of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.ingest.background import BackgroundPass, run_alone, usual_threads
from momentseek.library.ingest.report import AddReport, ShowIngest, StageTimer
from momentseek.library.ingest.writer import replace_cues
from momentseek.library.merging import SegmentDamage, damage_message, merge_segments
from momentseek.library.reader import LibraryReader
from momentseek.library.tracks.transcripts import (
    Transcript,
    UnheardVideo,
    finish_transcript,
    forget_transcripts,
    has_transcript,
    heard_parts,
    keep_part,
    note_unheard,
    spoken_cues,
    transcript,
    unheard_videos,
)
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.speech.models import DEFAULT_TRANSCRIBER, transcriber_fingerprint
from momentseek.recognition.speech.transcribe import TranscriberProcess
from momentseek.recognition.speech.transcript import CueEdit, TranscribedPart, apply_edits

SAME_TIME_SECONDS = 0.002
"""Subtitle files give times in milliseconds, rounded; so near they are the same."""


def cue_edits(catalog: Catalog, hash: str) -> list[CueEdit]:
    """What people corrected in a content, by time."""
    if not catalog.has_edits or not hash:
        return []
    rows = catalog.rows("SELECT start, end, text FROM cue_edits WHERE hash = ? ORDER BY start, end", (hash,))
    return [CueEdit(*row) for row in rows]


def check_transcript(catalog: Catalog, video: Video) -> Transcript:
    """What a recogniser heard in a video; refused if none did, since only that can be corrected here."""
    found = transcript(catalog, video.id)
    if found is None or not has_transcript(catalog, video.id):
        raise MomentseekError(
            f"{video.name}: has no transcript that a recogniser made; subtitles are corrected in their own file, and "
            "momentseek transcribe hears what has none"
        )
    return found


def edit_transcript(library: LibraryReader, video: Video, edits: Sequence[CueEdit]) -> Transcript:
    """Correct what a recogniser heard in a video, all at once or not at all. The caller holds the library's lock."""
    catalog = library.catalog
    found = check_transcript(catalog, video)
    kept = [CueEdit.of(edit.start, edit.end, edit.text) for edit in edits]
    late = next((edit for edit in kept if edit.start >= video.duration), None)
    if late is not None:
        raise MomentseekError(f"{video.name}: ends at {video.duration:.1f} s; there is no cue at {late.start:.1f} s")
    catalog.make_transcripts()
    new = replace(found, cues=tuple(apply_edits(found.cues, kept)))

    def write() -> None:
        _keep_edits(catalog, video.hash, kept)
        finish_transcript(catalog, new, video.duration)

    replace_cues(library, video.id, spoken_cues(new), write)
    after = transcript(catalog, video.id)
    assert after is not None
    return after


def with_edits(catalog: Catalog, heard: Transcript) -> Transcript:
    """What a recogniser has just heard in a video, with what people corrected in the same content before."""
    (video,) = catalog.videos([heard.video])
    return replace(heard, cues=tuple(apply_edits(heard.cues, cue_edits(catalog, video.hash))))


def edits_between(now: Sequence[Cue], wanted: Sequence[Cue]) -> list[CueEdit]:
    """The corrections that make the cues of a video those of a file: only what differs.

    >>> now = [Cue(1.0, 2.0, "a tail"), Cue(3.0, 4.0, "noise"), Cue(5.0, 6.0, "right")]
    >>> found = edits_between(now, [Cue(1.0, 2.0, "a tale"), Cue(5.0, 6.001, "right"), Cue(7.0, 8.0, "more")])
    >>> [(edit.start, edit.text) for edit in found]
    [(1.0, 'a tale'), (3.0, ''), (7.0, 'more')]
    """
    old = {(cue.start, cue.end): cue for cue in now}
    used: set[tuple[float, float]] = set()
    out = []
    for cue in wanted:
        near = next((times for times in old if times not in used and _same_times(times, cue)), None)
        if near is None:
            out.append(CueEdit.of(cue.start, cue.end, cue.text))
            continue
        used.add(near)
        if " ".join(cue.text.split()) != " ".join(old[near].text.split()):
            out.append(CueEdit.of(*near, cue.text))
    out += [CueEdit.of(*times, "") for times in old if times not in used]
    return sorted(out, key=lambda edit: (edit.start, edit.end))


def _same_times(times: tuple[float, float], cue: Cue) -> bool:
    return abs(times[0] - cue.start) <= SAME_TIME_SECONDS and abs(times[1] - cue.end) <= SAME_TIME_SECONDS


def _keep_edits(catalog: Catalog, hash: str, edits: Sequence[CueEdit]) -> None:
    for edit in edits:
        catalog.run(
            "INSERT OR REPLACE INTO cue_edits VALUES (?, ?, ?, ?, ?)",
            (hash, edit.start, edit.end, edit.text, time.time()),
        )


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
    run = TranscriptionPass(
        library, report, progress, transcriber=transcriber, threads=usual_threads(),
        only=lambda video: wanted is None or video.id in wanted, again=again,
    )  # fmt: skip
    run_alone(run, report)
    if run.damages:
        report.notes.append(damage_message(catalog, run.damages.values()))
    return report


class TranscriptionPass(BackgroundPass[UnheardVideo, TranscribedPart]):
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
        self.transcriber, self.fingerprint = transcriber, transcriber_fingerprint(transcriber)
        self.timer = timer or StageTimer()
        library.catalog.make_transcripts()
        self._process = TranscriberProcess(transcriber, threads)
        self._written = 0
        self.damages: dict[str, SegmentDamage] = {}
        """Segments that were found damaged and are not joined with others."""

    def pending(self) -> list[UnheardVideo]:
        """The videos that are still to be heard."""
        return unheard_videos(self.library.catalog, fingerprint=self.fingerprint, again=self.again)

    def work(self, video: UnheardVideo) -> Iterator[TranscribedPart]:
        """Hear a video from where an earlier run has stopped."""
        return self._process.hear(video.path, video.done, video.language)

    def close_process(self) -> None:
        """End the recogniser."""
        self._process.close()

    def keep(self, video: UnheardVideo, part: TranscribedPart) -> float:
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
