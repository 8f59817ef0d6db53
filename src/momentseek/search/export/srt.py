"""Hits as subtitles: each moment a cue that names it and says what is said.

Hits of one video keep that video's times, so the file can be played with it and marks its moments. Hits of several
videos share no clock but that of the timeline which the EDL and FCPXML exports lay out, so they get its times: the file
labels that timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from momentseek.media.cue import Cue
from momentseek.media.edit_lists import ExportText
from momentseek.media.edit_lists.timecode import commonest_rate
from momentseek.media.subtitles import srt
from momentseek.search.export.excerpts import excerpts
from momentseek.search.export.kind import Kind, Thumbnail
from momentseek.search.hit import Hit
from momentseek.search.show import when


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """The cues, by time; a note says whose times they are."""
    if len({hit.path for hit in hits}) > 1:
        note = "the moments are of several videos, so the times are those of the EDL or FCPXML of the same moments"
        return ExportText(srt.srt_text(_in_a_row(hits)), (note,))
    cues = sorted((Cue(hit.start, hit.end, _text(hit)) for hit in hits), key=lambda cue: (cue.start, cue.end))
    return ExportText(srt.srt_text(cues))


def _in_a_row(hits: Sequence[Hit]) -> Iterator[Cue]:
    rate = commonest_rate(hit.rate for hit in hits)
    at = 0
    for hit, excerpt in zip(hits, excerpts(hits, ""), strict=True):
        first, last = excerpt.frames(rate)
        yield Cue(float(at / rate), float((at + last - first) / rate), _text(hit))
        at += last - first


def _text(hit: Hit) -> str:
    said = " ".join(cue.text for cue in hit.said)
    name = " ".join(hit.name.split())
    return f"{hit.rank}. {name} {when(hit)}" + (f"\n{said}" if said else "")


KIND = Kind("srt", (".srt",), "the moments as subtitles, to mark them in a player", render)
