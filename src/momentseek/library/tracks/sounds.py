"""Sounds: what a detector heard in videos besides speech, as events with times.

A video's events are written when all of it was heard, in one change; what was heard by the same detector is not heard
again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.file_stamp import printable
from momentseek.library.video import Video
from momentseek.media.sandbox.calls import sound
from momentseek.recognition.sounds import SOUND_DETECTORS, SoundEvent

if TYPE_CHECKING:
    from momentseek.core.progress import ShowCount
    from momentseek.recognition.sounds import SoundDetector


@dataclass
class SoundReport:
    """What ``listen`` did."""

    heard: int = 0
    """Videos that were heard to their end."""
    events: int = 0
    """Events found in them."""
    failed: list[tuple[Video, str]] = field(default_factory=list)
    """Videos whose sound could not be heard, and why."""


def listen_to_videos(
    catalog: Catalog, name: str, wanted: Collection[int] | None = None, progress: ShowCount | None = None
) -> SoundReport:
    """Hear the videos with sound that a detector has not heard yet; the caller holds the library's lock."""

    detector = SOUND_DETECTORS[name]()
    catalog.make_sounds()
    done = {row[0] for row in catalog.rows("SELECT video FROM listened WHERE fingerprint = ?", (detector.fingerprint,))}
    waiting = [video for video in catalog.videos(wanted) if video.audio and video.id not in done]
    report = SoundReport()
    for at, video in enumerate(waiting):
        if progress is not None:
            progress(at, len(waiting))
        try:
            events = hear_events(detector, video)
        except (MediaError, OSError) as e:
            report.failed.append((video, printable(str(e))))
            continue
        with catalog.changes():
            keep_events(catalog, video.id, detector, events)
        report.heard += 1
        report.events += len(events)
    if progress is not None and waiting:
        progress(len(waiting), len(waiting))
    return report


def hear_events(detector: SoundDetector, video: Video) -> list[SoundEvent]:
    """The sounds of a video, decoded in a process of its own; refused if the detector says what cannot be."""

    events = list(detector.detect(sound(video.path)))
    for event in events:
        times = (event.start, event.end, event.score)
        if not (all(map(math.isfinite, times)) and 0 <= event.start < event.end and event.label.strip()):
            raise MomentseekError(
                f"the sound detector {detector.name} gave {event}; an event has a label and 0 <= start < end"
            )
    return events


def keep_events(catalog: Catalog, video: int, detector: SoundDetector, events: list[SoundEvent]) -> None:
    """Keep what was heard in a video in place of what was heard before, inside ``changes()``."""

    catalog.run("DELETE FROM sounds WHERE video = ?", (video,))
    for event in sorted(events, key=lambda event: (event.start, event.end, event.label)):
        catalog.run(
            "INSERT INTO sounds (video, start, end, label, score) VALUES (?, ?, ?, ?, ?)",
            (video, event.start, event.end, printable(event.label.strip()), event.score),
        )
    catalog.run("INSERT OR REPLACE INTO listened VALUES (?, ?, ?)", (video, detector.name, detector.fingerprint))


def sound_labels(catalog: Catalog) -> list[str]:
    """All labels that were heard anywhere, in order."""
    if not catalog.has_sounds:
        return []
    return [row[0] for row in catalog.rows("SELECT DISTINCT label FROM sounds ORDER BY label")]


def events_with_labels(
    catalog: Catalog, labels: Collection[str], videos: NDArray[np.int64] | None, limit: int
) -> list[tuple[int, SoundEvent]]:
    """Video and event of the surest events with one of some labels; ``videos`` restricts them to these ids."""

    some = "" if videos is None else "AND video IN (SELECT value FROM json_each(?))"
    ids = () if videos is None else (json.dumps(videos.tolist()),)
    rows = catalog.rows(
        f"""SELECT video, start, end, label, score FROM sounds
            WHERE label IN (SELECT value FROM json_each(?)) {some} ORDER BY score DESC, video, id LIMIT ?""",
        (json.dumps(list(labels)), *ids, limit),
    )
    return [(video, SoundEvent(*rest)) for video, *rest in rows]
