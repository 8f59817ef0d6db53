"""Sounds: what a detector hears in videos besides speech, as cues with a label and a score."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.progress import ShowCount
from momentseek.library.catalog import Catalog
from momentseek.library.database import SOUNDS
from momentseek.library.file_stamp import printable
from momentseek.library.reader import LibraryReader
from momentseek.library.report import BackgroundStep, IngestNote, IngestStep
from momentseek.library.timed_text import Maker, PendingVideo, TrackPart
from momentseek.library.tracks.background import PassRequest, TrackPass, run_pass
from momentseek.library.video import Video
from momentseek.media.sandbox.calls import sound
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.sounds import SOUND_DETECTORS, SoundDetector, SoundEvent


@dataclass
class SoundReport:
    """What ``listen`` did."""

    heard: int = 0
    """Videos that were heard to their end."""
    events: int = 0
    """Events found in them."""
    failed: list[tuple[Video, str]] = field(default_factory=list)
    """Videos whose sound could not be heard, and why."""


class SoundPass(TrackPass):
    """Hears the sounds of videos that a detector has not heard yet; what failed is tried again each time."""

    kind = SOUNDS
    what = "listening"
    undone = "sounds were not heard"
    undone_in_video = "its sounds were not heard"

    def __init__(self, request: PassRequest, detector: SoundDetector) -> None:
        super().__init__(request, Maker(detector.name, detector.fingerprint))
        self.detector, self.found = detector, SoundReport()

    def also(self) -> str:
        """What another detector heard, and what failed."""
        return "(old.problem != '' OR old.fingerprint != ?2)"

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Hear a whole video, decoded in a process of its own; refused if the detector says what cannot be."""
        events = list(self.detector.detect(sound(video.path)))
        for event in events:
            times = (event.start, event.end, event.score)
            if not (all(map(math.isfinite, times)) and 0 <= event.start < event.end and event.label.strip()):
                raise MomentseekError(
                    f"the sound detector {self.detector.name} gave {event}; an event has a label and 0 <= start < end"
                )
        ordered = sorted(events, key=lambda event: (event.start, event.end, event.label))
        yield TrackPart(video.duration, [[e.start, e.end, e.label.strip(), e.score] for e in ordered])

    def make_cues(self, parts: Sequence[Any]) -> list[Cue]:
        """A cue for each sound, its label as the text."""
        cues = [Cue(start, end, printable(label), score=score) for part in parts for start, end, label, score in part]
        self.found.heard += 1
        self.found.events += len(cues)
        return cues

    def note(self, video: PendingVideo, text: str) -> None:
        """Report a video that could not be heard."""
        reason = text.removeprefix(f"{self.undone_in_video}: ")
        self.found.failed += [(known, reason) for known in self.library.catalog.videos([video.id])]


def listen_to_videos(
    library: LibraryReader, name: str, wanted: Collection[int] | None = None, progress: ShowCount | None = None
) -> SoundReport:
    """Hear the videos with sound that a detector has not heard yet; the caller holds the library's lock."""

    def show(step: IngestStep | BackgroundStep | IngestNote) -> None:
        if progress is not None and isinstance(step, BackgroundStep):
            progress(step.videos, step.of_videos)

    one = SoundPass(PassRequest(library, progress=show, wanted=wanted), SOUND_DETECTORS[name]())
    run_pass(one)
    return one.found


def sound_labels(catalog: Catalog) -> list[str]:
    """All labels that were heard anywhere, in order."""
    sql = "SELECT DISTINCT text FROM cues WHERE kind = ? ORDER BY text"
    return [row[0] for row in catalog.rows(sql, (SOUNDS.name,))]


def events_with_labels(
    catalog: Catalog, labels: Collection[str], videos: NDArray[np.int64] | None, limit: int
) -> list[tuple[int, SoundEvent]]:
    """Video and event of the surest events with one of some labels; ``videos`` restricts them to these ids."""
    some = "" if videos is None else "AND video IN (SELECT value FROM json_each(?))"
    ids = () if videos is None else (json.dumps(videos.tolist()),)
    rows = catalog.rows(
        f"""SELECT video, start, end, text, score FROM cues
            WHERE kind = ? AND text IN (SELECT value FROM json_each(?)) {some}
            ORDER BY score DESC, video, id LIMIT ?""",
        (SOUNDS.name, json.dumps(list(labels)), *ids, limit),
    )
    return [(video, SoundEvent(*rest)) for video, *rest in rows]
