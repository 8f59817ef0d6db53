"""Previews: copies that every browser plays, of videos that it might not (AVI, HEVC, MPEG-2, …)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from momentseek.media.container import FilePath
from momentseek.media.probe import probe
from momentseek.media.recoding import Codecs, recoding

PREVIEW_SHORT_SIDE = 540
"""Pixels of the shorter side at most: enough to judge a moment, at a third of the work of full HD."""
# The same frames at the same times as the video, so stepping by frames and edges stay exact; key frames every two
# seconds or so make seeking quick.
PREVIEW_CODECS = Codecs("libx264", "aac", {"crf": "26", "preset": "superfast", "bf": "0", "g": "50"})


def preview(source: FilePath, out: Path) -> Iterator[float]:
    """Write a preview of a whole video as H.264 and AAC into the MP4 file ``out``; yields the share done, in [0, 1]."""
    duration = probe(source).duration
    for at in recoding(source, 0.0, duration, out, PREVIEW_CODECS, PREVIEW_SHORT_SIDE):
        yield min(1.0, max(0.0, at / duration))
