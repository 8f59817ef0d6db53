"""Speech: automatic transcripts of videos without subtitles, and people's corrections.

Their cues are ordinary cues of the video, with vectors. Subtitles take precedence: a video that has cues is never
transcribed, and a video whose subtitles change is read again as a new one, without its transcript. Corrections are
stored under the hash of a video's content, so they survive when it is transcribed by another recogniser, moved, copied,
or removed and added again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import replace_cues
from momentseek.library.database import SPEECH
from momentseek.library.merging import SegmentDamage, damage_message, merge_segments
from momentseek.library.reader import LibraryReader
from momentseek.library.report import AddReport, StageTimer
from momentseek.library.timed_text import (
    Maker,
    PendingVideo,
    TrackPart,
    cue_words,
    finish_track,
    has_track,
    track,
    track_parts,
)
from momentseek.library.tracks.background import PassRequest, TrackPass, run_pass, usual_threads
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue, SpokenWord
from momentseek.recognition.speech.models import DEFAULT_TRANSCRIBER, transcriber_fingerprint
from momentseek.recognition.speech.transcribe import TranscriberProcess
from momentseek.recognition.speech.transcript import CueEdit, apply_edits, spoken_cue

SAME_TIME_SECONDS = 0.002
"""Times closer than this are equal, because subtitle files round to milliseconds."""
SEGMENTS_BETWEEN_MERGES = 16
UNSURE_LANGUAGE_NOTE = "the recogniser is not sure of its language; words may be wrong"


@dataclass(frozen=True)
class Transcript:
    """The automatic transcript of a video, with people's corrections."""

    video: int
    transcriber: str
    language: str | None
    cues: tuple[Cue, ...]
    problem: str = ""
    """Why the video could not be transcribed; empty if it could."""
    fingerprint: str = ""
    """Fingerprint of the recogniser."""
    edited: frozenset[int] = frozenset()
    """Positions of the cues that a person corrected."""


def transcript(catalog: Catalog, video: int) -> Transcript | None:
    """The transcript of a video, complete or so far; None if there is none."""
    found = track(catalog, SPEECH, video)
    if found is None:
        return None
    cues = _cues_of_words(cue_words(catalog, SPEECH, video)) if found.whole else heard_so_far(catalog, video)
    sql = "SELECT start, end FROM cue_edits WHERE hash = (SELECT hash FROM videos WHERE id = ?) AND hash != ''"
    edited = set(catalog.rows(sql, (video,)))
    places = frozenset(at for at, cue in enumerate(cues) if (cue.start, cue.end) in edited)
    return Transcript(video, found.by.model, found.language, cues, found.problem, found.by.fingerprint, places)


def heard_so_far(catalog: Catalog, video: int) -> tuple[Cue, ...]:
    """The cues of the finished parts of an incomplete transcript."""
    return _cues_of_words(words for part in track_parts(catalog, SPEECH, video) for words in part)


def finish_transcript(catalog: Catalog, transcript: Transcript, duration: float) -> None:
    """Set the cues of a video to those of its transcript, inside ``changes()``; store their vectors with it."""
    by = Maker(transcript.transcriber, transcript.fingerprint)
    finish_track(catalog, SPEECH, transcript.video, by, duration, spoken_cues(transcript), transcript.language)


def spoken_cues(transcript: Transcript) -> list[Cue]:
    """The cues of a transcript, with its language."""
    return [replace(cue, language=transcript.language) for cue in transcript.cues]


def transcribe_videos(request: PassRequest, transcriber: str) -> AddReport:
    """Transcribe the videos of a library that have sound and no cues.

    With ``again``, also those that failed before, and those that another recogniser transcribed.
    """
    library = request.library
    library.paths.drop_orphans(library.catalog)
    one = TranscriptionPass(request, transcriber, usual_threads())
    report = run_pass(one)
    if one.damages:
        report.notes.append(damage_message(library.catalog, one.damages.values()))
    return report


class TranscriptionPass(TrackPass):
    """Transcribes the videos of a library that have sound and no cues."""

    kind = SPEECH
    what = "transcribing"
    undone = "speech was not transcribed"
    undone_in_video = "its speech was not transcribed"
    keeps_old = True

    def __init__(
        self,
        request: PassRequest,
        transcriber: str = DEFAULT_TRANSCRIBER,
        threads: int = 1,
        timer: StageTimer | None = None,
    ) -> None:
        super().__init__(request, Maker(transcriber, transcriber_fingerprint(transcriber)))
        self.timer = timer or StageTimer()
        self._process = TranscriberProcess(transcriber, threads)
        self._written = 0
        self.damages: dict[str, SegmentDamage] = {}
        """Damaged segments, which are not joined with others."""

    def also(self) -> str:
        """Videos that another recogniser transcribed, if requested."""
        return "audio AND old.problem = '' AND old.fingerprint != ?2" if self.again else "0"

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Transcribe a video from where an earlier run stopped."""
        for part in self._process.hear(video.path, video.done, video.language):
            yield TrackPart(part.heard, [cue.words for cue in part.cues], language=part.language)

    def close(self) -> None:
        """End the recogniser."""
        self._process.close()

    def finish_video(self, video: PendingVideo) -> None:
        """Store the transcript as the cues of its video, with vectors."""
        catalog = self.library.catalog
        language = catalog.rows(
            "SELECT language FROM tracks WHERE video = ? AND kind = ? AND NOT whole", (video.id, SPEECH.name)
        )
        (known,) = catalog.videos([video.id])
        cues = tuple(apply_edits(heard_so_far(catalog, video.id), cue_edits(catalog, known.hash)))
        found = Transcript(
            video.id, self.by.model, language[0][0] if language else None, cues, fingerprint=self.by.fingerprint
        )
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


# corrections


def cue_edits(catalog: Catalog, hash: str) -> list[CueEdit]:
    """The corrections of the video with a content hash, by time."""
    rows = catalog.rows("SELECT start, end, text FROM cue_edits WHERE hash = ? ORDER BY start, end", (hash,))
    return [CueEdit(*row) for row in rows] if hash else []


def check_transcript(catalog: Catalog, video: Video) -> Transcript:
    """Return the automatic transcript of a video, which can be corrected; raises an error if there is none."""
    found = transcript(catalog, video.id)
    if found is None or not has_track(catalog, SPEECH, video.id):
        raise MomentseekError(
            f"{video.name}: has no transcript by speech recognition; correct subtitles in their own file, or make a "
            "transcript with: momentseek transcribe"
        )
    return found


def edit_transcript(library: LibraryReader, video: Video, edits: Sequence[CueEdit]) -> Transcript:
    """Correct the transcript of a video; all corrections are made, or none. The caller holds the library's lock."""
    catalog = library.catalog
    found = check_transcript(catalog, video)
    kept = [CueEdit.of(edit.start, edit.end, edit.text) for edit in edits]
    late = next((edit for edit in kept if edit.start >= video.duration), None)
    if late is not None:
        raise MomentseekError(f"{video.name}: ends at {video.duration:.1f} s; there is no cue at {late.start:.1f} s")
    new = replace(found, cues=tuple(apply_edits(found.cues, kept)))

    def write() -> None:
        for edit in kept:
            values = (video.hash, edit.start, edit.end, edit.text, time.time())
            catalog.run("INSERT OR REPLACE INTO cue_edits VALUES (?, ?, ?, ?, ?)", values)
        finish_transcript(catalog, new, video.duration)

    replace_cues(library, video.id, spoken_cues(new), write)
    after = transcript(catalog, video.id)
    assert after is not None
    return after


def edits_between(now: Sequence[Cue], wanted: Sequence[Cue]) -> list[CueEdit]:
    """The corrections that turn the cues of a video into those of a file.

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


def _cues_of_words(cues: Iterable[Sequence[Sequence[object]]]) -> tuple[Cue, ...]:
    return tuple(spoken_cue([SpokenWord(*word) for word in words]) for words in cues if words)  # type: ignore[arg-type]
