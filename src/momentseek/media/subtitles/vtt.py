"""WebVTT (W3C): blocks between blank lines; a block with a line of times is a cue, others are notes and styles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.srt import parse_blocks, srt_text, times

SUFFIXES = (".vtt", ".webvtt")


def parse(text: str) -> Iterator[Cue]:
    r"""Yield the cues of a WebVTT file unchanged, without identifiers, settings, ``NOTE``, ``STYLE`` and ``REGION``.

    >>> found = parse("WEBVTT\n\nNOTE by hand\n\nintro\n00:01.000 --> 00:02.000 align:start\n<v Ann>Hello\n")
    >>> [(cue.start, cue.end, cue.text) for cue in found]
    [(1.0, 2.0, '<v Ann>Hello')]
    """
    return parse_blocks(text.splitlines(), times)


def vtt_text(cues: Iterable[Cue]) -> str:
    r"""Return cues as WebVTT; characters that would begin a tag are escaped.

    >>> vtt_text([Cue(1.0, 2.5, "a < b")])
    'WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.500\na &lt; b\n'
    """
    plain = [Cue(c.start, c.end, c.text.replace("&", "&amp;").replace("<", "&lt;").replace("-->", "→")) for c in cues]
    lines = srt_text(plain).splitlines(keepends=True)
    return "WEBVTT\n\n" + "".join(line.replace(",", ".") if " --> " in line else line for line in lines)
