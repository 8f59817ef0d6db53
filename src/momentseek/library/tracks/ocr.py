"""Text on screen: what an OCR model reads in the frames of videos, as lines with times and boxes.

Lines are built from the results of frames after the whole video was read. They are never mixed with speech: text on
screen is not what is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from momentseek.library.database import OCR
from momentseek.library.timed_text import Maker, PendingVideo, TrackPart
from momentseek.library.tracks.background import PassRequest, TrackPass
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.ocr.lines import SLOT_SECONDS, frame_as_json, frame_of_json, merge_lines
from momentseek.recognition.ocr.models import DEFAULT_OCR_MODEL, OcrProcess, ocr_fingerprint


class OcrPass(TrackPass):
    """Finds text on screen in videos, in one frame ``every`` N seconds of a shot."""

    kind = OCR
    what = "reading text"
    undone = "text on screen was not read"
    undone_in_video = "its text on screen was not read"

    def __init__(
        self, request: PassRequest, model: str = DEFAULT_OCR_MODEL, every: float = SLOT_SECONDS, threads: int = 1
    ) -> None:
        super().__init__(request, Maker(model, ocr_fingerprint(model, every)))
        self.every = every
        self._process = OcrProcess(model, threads)

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Read a video from where an earlier run has stopped."""
        for part in self._process.read(video.path, video.duration, video.cuts, video.done, self.every):
            yield TrackPart(part.done, [frame_as_json(frame) for frame in part.frames])

    def close(self) -> None:
        """End the model's process."""
        self._process.close()

    def make_cues(self, parts: Sequence[Any]) -> list[Cue]:
        """Merge the text of frames into lines."""
        return merge_lines(frame_of_json(frame) for part in parts for frame in part)

    def count(self, seconds: float) -> None:
        """Report a video that was read."""
        self.report.read += 1
        self.report.read_seconds += seconds
