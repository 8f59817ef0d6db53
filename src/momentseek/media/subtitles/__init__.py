"""Subtitles: files beside a video or in a given folder, tracks inside it, tidied into sentences with their times.

>>> from momentseek.media import subtitles
>>> subtitles.cues_of("film.mp4", languages=["en"])  # doctest: +SKIP
Cues(found=(Cue(start=12.1, end=14.9, text='Anybody home?', language='en'), …), sources=('film.en.srt',), problems=())
"""

from momentseek.media.subtitles.beside import Sidecar, beside
from momentseek.media.subtitles.choose import VideoCues, cues_of
from momentseek.media.subtitles.embedded import embedded
from momentseek.media.subtitles.merge import joined
from momentseek.media.subtitles.read import MAX_BYTES, read

__all__ = ["MAX_BYTES", "VideoCues", "Sidecar", "beside", "cues_of", "embedded", "joined", "read"]
