"""Subtitles: files beside a video or in a given folder, tracks inside it, tidied into sentences with their times.

>>> from momentseek.media import subtitles
>>> subtitles.cues_of("film.mp4", languages=["en"])  # doctest: +SKIP
VideoCues(cues=(Cue(start=12.1, end=14.9, text='Anybody home?', language='en'), …), sources=('film.en.srt',), …)
"""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.media.subtitles.beside import Sidecar, find_sidecars
    from momentseek.media.subtitles.choose import VideoCues, cues_of
    from momentseek.media.subtitles.merge import join_sentences
    from momentseek.media.subtitles.read import MAX_SUBTITLE_BYTES, read_subtitles

__all__ = [
    "MAX_SUBTITLE_BYTES",
    "Sidecar",
    "VideoCues",
    "cues_of",
    "find_sidecars",
    "join_sentences",
    "read_subtitles",
]

__getattr__ = late_names(
    __name__,
    {
        "MAX_SUBTITLE_BYTES": "read",
        "Sidecar": "beside",
        "VideoCues": "choose",
        "cues_of": "choose",
        "find_sidecars": "beside",
        "join_sentences": "merge",
        "read_subtitles": "read",
    },
)
