"""Sounds other than speech that a detector finds in videos, as cues with a label and a score."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.database import SOUNDS
from momentseek.library.file_stamp import printable
from momentseek.library.timed_text import Maker, PendingVideo, TrackPart
from momentseek.library.tracks.background import PassRequest, TrackPass
from momentseek.media.sandbox.calls import sound
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.sounds.detectors import SOUND_DETECTORS, SoundDetector, SoundEvent, make_events
from momentseek.recognition.sounds.yamnet import YAMNET, YamnetProcess, yamnet_fingerprint


class SoundPass(TrackPass):
    """Detects sounds in videos that no detector has processed; with ``renew``, also in those of another detector.

    YAMNet runs in its own process and can resume within a video; registered detectors run in this process.
    """

    kind = SOUNDS
    what = "detecting sounds"
    undone = "sounds were not detected"
    undone_in_video = "its sounds were not detected"
    keeps_old = True

    def __init__(self, request: PassRequest, name: str = YAMNET, threads: int = 1, *, renew: bool = False) -> None:
        self._detector: SoundDetector | None = None if name == YAMNET else SOUND_DETECTORS[name]()
        fingerprint = yamnet_fingerprint() if self._detector is None else self._detector.fingerprint
        super().__init__(request, Maker(name, fingerprint))
        self._renew = renew
        self._process = YamnetProcess(threads) if self._detector is None else None

    def also(self) -> str:
        """Videos that another detector has processed, if requested."""
        return "old.problem = '' AND old.fingerprint != ?2" if self._renew else "0"

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Process a video from where an earlier run stopped; raises MomentseekError if an event is invalid."""
        if self._process is not None:
            for part in self._process.hear(video.path, video.done):
                yield TrackPart(part.done, [astuple(event) for event in part.stretches])
        elif self._detector is not None:
            events = list(self._detector.detect(sound(video.path)))
            for event in events:
                _check_event(self.by.model, event)
            ordered = sorted(events, key=lambda event: (event.start, event.end, event.label))
            yield TrackPart(video.duration, [astuple(event) for event in ordered])

    def close(self) -> None:
        """End the detector's process."""
        if self._process is not None:
            self._process.close()

    def make_cues(self, parts: Sequence[Any]) -> list[Cue]:
        """A cue for each sound, its label as the text."""
        events = [SoundEvent(*row) for part in parts for row in part]
        if self._process is not None:
            events = make_events(events)
        self.report.sounds += len(events)
        return [Cue(e.start, e.end, printable(e.label.strip()), score=e.score) for e in events]

    def count(self, seconds: float) -> None:
        """Count a video whose sounds were detected."""
        self.report.listened += 1
        self.report.listened_seconds += seconds


def _check_event(detector: str, event: SoundEvent) -> None:
    times = (event.start, event.end, event.score)
    if not (all(map(math.isfinite, times)) and 0 <= event.start < event.end and event.label.strip()):
        raise MomentseekError(f"the sound detector {detector} gave {event}; an event has a label and 0 <= start < end")


def sound_labels(catalog: Catalog) -> list[str]:
    """All labels of detected sounds, sorted."""
    sql = "SELECT DISTINCT text FROM cues WHERE kind = ? ORDER BY text"
    return [row[0] for row in catalog.rows(sql, (SOUNDS.name,))]


def events_with_labels(
    catalog: Catalog, labels: Collection[str], videos: NDArray[np.int64] | None, limit: int
) -> list[tuple[int, SoundEvent]]:
    """Video and event of sounds with one of the labels, best first; ``videos`` restricts them to these ids."""
    some = "" if videos is None else "AND video IN (SELECT value FROM json_each(?))"
    ids = () if videos is None else (json.dumps(videos.tolist()),)
    rows = catalog.rows(
        f"""SELECT video, start, end, text, score FROM cues
            WHERE kind = ? AND text IN (SELECT value FROM json_each(?)) {some}
            ORDER BY score DESC, video, id LIMIT ?""",
        (SOUNDS.name, json.dumps(list(labels)), *ids, limit),
    )
    return [(video, SoundEvent(*rest)) for video, *rest in rows]
