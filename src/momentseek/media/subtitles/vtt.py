"""WebVTT, by the W3C: blocks between blank lines; one with a line of times is a cue, others are notes and styles."""

from __future__ import annotations

from collections.abc import Iterator

from momentseek.media.cue import Cue
from momentseek.media.subtitles.srt import times

SUFFIXES = (".vtt", ".webvtt")


def parse(text: str) -> Iterator[Cue]:
    r"""The cues of a WebVTT file as written; identifiers, settings, ``NOTE``, ``STYLE`` and ``REGION`` are passed over.

    >>> list(parse("WEBVTT\n\nNOTE by hand\n\nintro\n00:01.000 --> 00:02.000 align:start\n<v Ann>Hello\n"))
    [Cue(start=1.0, end=2.0, text='<v Ann>Hello', language=None)]
    """
    span: tuple[float, float] | None = None
    lines: list[str] = []
    for line in text.splitlines():
        found = times(line)
        if found is None and line:
            lines.append(line)
            continue
        if span is not None:  # a blank line, or times although no blank line stood between
            yield Cue(*span, "\n".join(lines).strip())
        span, lines = found, []
    if span is not None:
        yield Cue(*span, "\n".join(lines).strip())
