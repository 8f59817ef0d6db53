"""Options for adding videos to a library."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from momentseek.media.decode import Sampling, default_sampling
from momentseek.recognition.ocr.models import default_ocr_model
from momentseek.recognition.sounds.yamnet import default_sound_detector
from momentseek.recognition.speech.models import default_transcriber
from momentseek.recognition.weights.files import model_in_environment


@dataclass(frozen=True)
class WritePace:
    """How often finished videos are written: when this many rows are waiting, or after this many seconds."""

    rows: int = 50_000
    seconds: float = 10.0
    part_clips: int = 400
    """Number of clips in a part of a long video; finished parts are stored until the video is finished."""


SECOND_PASS_VARIABLE = "MOMENTSEEK_SECOND_PASS"
"""Environment variable that switches the second pass off (``off``)."""


def default_second_pass() -> bool:
    """Whether ``add`` makes the second pass by default: yes, unless the environment switches it off."""
    return model_in_environment(SECOND_PASS_VARIABLE) is not False


@dataclass(frozen=True)
class AddOptions:
    """Options for adding videos; a model is None if its track is not wanted."""

    transcriber: str | None = field(default_factory=default_transcriber)
    """The speech recogniser for videos without subtitles."""
    ocr_model: str | None = field(default_factory=default_ocr_model)
    """The OCR model."""
    sound_detector: str | None = field(default_factory=default_sound_detector)
    """The detector of sounds other than speech: ``yamnet``, or one that was registered."""
    captioner: str | None = None
    """The model that describes scenes: the folder of an exported captioner, or ``URL#MODEL``."""
    second_pass: bool = field(default_factory=default_second_pass)
    """Whether the second of a library's two encoders encodes the videos after the first."""
    sampling: Sampling = field(default_factory=default_sampling)
    """How frames are sampled from videos."""
    jobs: int | None = None
    """Number of files to decode in parallel; None for as many as the cores can use."""
    hardware: str | None = None
    """The kind of device that decodes (`media.hardware.find_device`); None for the processor."""
    subtitles: Path | None = None
    """An additional folder in which to look for subtitles."""
    retry: bool = False
    """Whether to try again files that failed before and have not changed since."""
    links: bool = True
    """Whether links may be followed."""
    pace: WritePace = WritePace()
