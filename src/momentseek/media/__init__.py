"""Video files and what lies beside them: probing, decoding, shots, subtitles, thumbnails, cutting, edit lists."""

from momentseek.media.cue import Cue
from momentseek.media.cut import Cut, cut
from momentseek.media.decode import Damage, Frame, Frames, frames
from momentseek.media.probe import Probe, probe
from momentseek.media.shots import ShotDetector
from momentseek.media.thumbnails import thumbnail, webp

__all__ = [
    "Cue",
    "Cut",
    "Damage",
    "Frame",
    "Frames",
    "Probe",
    "ShotDetector",
    "cut",
    "frames",
    "probe",
    "thumbnail",
    "webp",
]
