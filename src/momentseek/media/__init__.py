"""Video files and what lies beside them: probing, decoding, shots, subtitles, thumbnails, cutting, edit lists."""

from momentseek.media.ahead import ReadAhead
from momentseek.media.cue import Cue
from momentseek.media.cut import Cut, cut
from momentseek.media.decode import Damage, Frame, Frames, frames
from momentseek.media.probe import Probe, Track, probe
from momentseek.media.shots import ShotDetector, shots
from momentseek.media.thumbnails import thumbnail, webp

__all__ = [
    "Cue",
    "Cut",
    "Damage",
    "Frame",
    "Frames",
    "Probe",
    "ShotDetector",
    "Track",
    "ReadAhead",
    "cut",
    "frames",
    "probe",
    "shots",
    "thumbnail",
    "webp",
]
