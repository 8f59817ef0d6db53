"""People: how many faces are seen when, and whether they are close, as described scenes. Nobody is recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from momentseek.library.database import CAPTIONS, TrackKind
from momentseek.library.timed_text import Maker, PendingVideo, TrackPart
from momentseek.library.tracks.background import PassRequest, TrackPass
from momentseek.media.sandbox.calls import frames
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.faces import BLAZEFACE, FACE_DETECTORS, describe_faces, heights

PEOPLE = TrackKind("people", like=CAPTIONS.name, copied=False)
STEP_SECONDS = 2.0
"""Time between two examined frames."""
PART_PICTURES = 60
"""Number of frames in a part: two minutes of video."""
SHORT_SIDE_PIXELS = 288


class PeoplePass(TrackPass):
    """Counts faces in videos that were not processed yet; with ``again``, also in selected videos."""

    kind = PEOPLE
    what = "counting faces"
    undone = "faces were not counted"
    undone_in_video = "its faces were not counted"

    def __init__(self, request: PassRequest, detector: str = BLAZEFACE) -> None:
        self._detector = FACE_DETECTORS[detector]()
        super().__init__(request, Maker(detector, self._detector.fingerprint))

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Process a video from where an earlier run stopped: time, number of faces and height of the tallest."""
        seen: list[tuple[float, int, float]] = []
        with closing(frames(video.path, 1 / STEP_SECONDS, start=video.done, short_side=SHORT_SIDE_PIXELS)) as source:
            for frame in source:
                many, tallest = heights(self._detector.detect(frame.pixels))
                seen.append((round(frame.time, 3), many, round(tallest, 3)))
                if len(seen) == PART_PICTURES:
                    yield TrackPart(frame.time + STEP_SECONDS / 2, seen)
                    seen = []
        if seen:
            yield TrackPart(video.duration, seen)

    def make_cues(self, parts: Sequence[Any]) -> list[Cue]:
        """A cue for each stretch with the same number of people."""
        return people_cues([tuple(row) for part in parts for row in part])

    def count(self, seconds: float) -> None:
        """Report a video that was looked at."""
        self.report.faces += 1


def people_cues(seen: Sequence[tuple[float, int, float]]) -> list[Cue]:
    """Cues for stretches with the same description, from frames in the middle of each step.

    >>> people_cues([(1.0, 2, 0.1), (3.0, 2, 0.1), (5.0, 0, 0.0), (7.0, 1, 0.5)])
    [Cue(start=0.0, end=4.0, text='two people', ...), Cue(start=6.0, end=8.0, text='one person, a close-up', ...)]
    """
    cues = []
    for text, rows in groupby(sorted(seen), key=lambda row: describe_faces(row[1], row[2])):
        times = [row[0] for row in rows]
        if text:
            cues.append(Cue(max(0.0, times[0] - STEP_SECONDS / 2), times[-1] + STEP_SECONDS / 2, text))
    return cues
