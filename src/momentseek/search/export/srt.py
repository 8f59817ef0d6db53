"""Hits as subtitles: each moment is a cue with its name, what is said, and other texts and sounds that matched.

Hits of one video keep the times of the video, so the file can be played with it and marks the moments. Hits of several
videos get the times of the timeline that the EDL and FCPXML exports create, so the file labels that timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from momentseek.media.edit_lists import ExportText, commonest_rate
from momentseek.media.subtitles import srt
from momentseek.media.subtitles.cues import Cue
from momentseek.search.display import time_range
from momentseek.search.export import EXPORT_KINDS, ExportKind, Thumbnail, excerpts
from momentseek.search.hit import Hit, heard_labels


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render the hits as cues, sorted by time; a note says if the times are those of a timeline."""
    if len({hit.path for hit in hits}) > 1:
        note = "the moments are from several videos, so the times are those of the EDL or FCPXML of the same moments"
        return ExportText(srt.srt_text(_cues_on_timeline(hits)), (note,))
    cues = sorted((Cue(hit.start, hit.end, _cue_text(hit)) for hit in hits), key=lambda cue: (cue.start, cue.end))
    return ExportText(srt.srt_text(cues))


def _cues_on_timeline(hits: Sequence[Hit]) -> Iterator[Cue]:
    rate = commonest_rate(hit.rate for hit in hits)
    at = 0
    for hit, excerpt in zip(hits, excerpts(hits, ""), strict=True):
        first, last = excerpt.frames(rate)
        yield Cue(float(at / rate), float((at + last - first) / rate), _cue_text(hit))
        at += last - first


def _cue_text(hit: Hit) -> str:
    said = " ".join(cue.text for cue in hit.said)
    name = " ".join(hit.name.split())
    written = " / ".join(line.text for line in hit.written) if "text" in hit.streams else ""
    described = " ".join(caption.text for caption in hit.described) if "described" in hit.streams else ""
    found = [f"[{written}]"] * bool(written) + [f"[described by a model: {described}]"] * bool(described)
    found += [f"[heard: {', '.join(heard_labels(hit))}]"] * ("sound" in hit.streams and bool(hit.heard))
    lines = [f"{hit.rank}. {name} {time_range(hit)}", said, *found]
    return "\n".join(line for line in lines if line)


EXPORT_KINDS.add("srt", ExportKind((".srt",), "the moments as subtitles, to mark them in a player", render))
