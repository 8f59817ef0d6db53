"""Video files and what lies beside them: probing, decoding, shots, subtitles, thumbnails, cutting, edit lists."""

from momentseek.media.ahead import ahead
from momentseek.media.cue import Cue
from momentseek.media.decode import Damage, Frame, Frames, frames
from momentseek.media.probe import Probe, Track, probe

__all__ = ["Cue", "Damage", "Frame", "Frames", "Probe", "Track", "ahead", "frames", "probe"]
