"""How videos are added to a library."""

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
    """How often finished videos are written: when N rows wait, or after N seconds."""

    rows: int = 50_000
    seconds: float = 10.0
    part_clips: int = 400
    """Number of clips of a long video that are kept at a time until it is finished."""


SECOND_PASS_VARIABLE = "MOMENTSEEK_SECOND_PASS"
"""Environment variable that switches the second pass off (``off``)."""


def default_second_pass() -> bool:
    """Whether ``add`` makes the second pass if nobody says so: unless the environment switches it off."""
    return model_in_environment(SECOND_PASS_VARIABLE) is not False


@dataclass(frozen=True)
class AddOptions:
    """How videos are added; the models are None where a track is not to be made."""

    transcriber: str | None = field(default_factory=default_transcriber)
    """The recogniser that hears videos without subtitles."""
    ocr_model: str | None = field(default_factory=default_ocr_model)
    """The model that reads the text in their pictures."""
    sound_detector: str | None = field(default_factory=default_sound_detector)
    """What hears sounds other than speech in them: ``yamnet``, or one that was registered."""
    captioner: str | None = None
    """What describes their scenes: the folder of an exported captioner, or ``URL#MODEL``."""
    second_pass: bool = field(default_factory=default_second_pass)
    """Whether the second of a library's two encoders looks at the videos once the first has."""
    sampling: Sampling = field(default_factory=default_sampling)
    """How the pictures of videos are chosen."""
    jobs: int | None = None
    """Files that are read at once; None for as many as the cores can use."""
    hardware: str | None = None
    """The kind of device that decodes (`media.hardware.find_device`); None for the processor."""
    subtitles: Path | None = None
    """A folder of subtitles to look into, too."""
    retry: bool = False
    """Whether to try again files that failed before and have not changed since."""
    links: bool = True
    """Whether links may be followed."""
    pace: WritePace = WritePace()
