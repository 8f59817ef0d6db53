"""Cues from text tracks inside a video file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from momentseek.errors import MediaError
from momentseek.media.container import FilePath, libav, open_media, packets, video_stream
from momentseek.media.cue import Cue
from momentseek.media.probe import container_start
from momentseek.media.subtitles import ass
from momentseek.media.subtitles.languages import language_of, preference
from momentseek.media.subtitles.merge import tidy
from momentseek.media.subtitles.read import MAX_CUES

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.stream import Stream

MAX_PACKET_BYTES = 1_000_000
"""Bytes of one cue; more is no text."""


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _mov_text(data: bytes) -> str:
    """Two bytes say how long the text is; styles follow it. UTF-16 announces itself by a mark."""
    text = data[2 : 2 + int.from_bytes(data[:2], "big")]
    return text.decode("utf-16", errors="replace") if text[:2] in (b"\xfe\xff", b"\xff\xfe") else _utf8(text)


def _ass(data: bytes) -> str:
    """Eight columns stand before the text: order, layer, style, name, three margins, effect."""
    columns = _utf8(data).split(",", 8)
    return ass.plain(columns[8]) if len(columns) == 9 else ""


TEXT_DECODERS: dict[str, Callable[[bytes], str]] = {
    "subrip": _utf8,
    "srt": _utf8,
    "text": _utf8,
    "webvtt": _utf8,
    "mov_text": _mov_text,
    "ass": _ass,
    "ssa": _ass,
}
"""How each codec's packets carry text. Tracks of pictures (DVD, Blu-ray, DVB) are not here, so they are skipped."""


@dataclass(frozen=True)
class TextTrack:
    """One text track of a video file."""

    index: int
    codec: str
    language: str | None = None
    flags: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"track {self.index} ({', '.join(filter(None, (self.codec, self.language, *sorted(self.flags))))})"


def text_tracks(path: FilePath) -> list[TextTrack]:
    """The text tracks of a video file."""
    with open_media(path) as container:
        return [_text_track(stream) for stream in container.streams.subtitles if stream.name in TEXT_DECODERS]


def by_preference(found: Sequence[TextTrack], languages: Sequence[str] = ()) -> list[TextTrack]:
    """Tracks, best first: whole ones before forced ones, then by language, the default one before others.

    >>> german, forced = TextTrack(2, "subrip", "de"), TextTrack(3, "subrip", "en", frozenset({"forced"}))
    >>> [track.index for track in by_preference([forced, german, TextTrack(4, "ass", "en")], ["en"])]
    [4, 2, 3]
    """

    def key(track: TextTrack) -> tuple[bool, int, str, bool, bool, int]:
        wanted = preference(track.language, languages)
        flags = track.flags
        return ("forced" in flags, *wanted, "sdh" in flags, "default" not in flags, track.index)

    return sorted(found, key=key)


def track_cues(path: FilePath, track: TextTrack) -> list[Cue]:
    """The tidied cues of one text track, in seconds from the video's start."""
    av = libav()
    found: list[Cue] = []
    with open_media(path) as container:
        stream = next((s for s in container.streams.subtitles if s.index == track.index), None)
        if stream is None or stream.name not in TEXT_DECODERS:
            raise MediaError(f"{path}: has no text track {track.index}; the file has changed, so add it again")
        for other in container.streams:
            if other.index != track.index:
                other.discard = av.stream.Discard.all
        start = _start(container, path)
        try:
            for cue in islice(_text_packets(container, stream, start), MAX_CUES):
                found.append(Cue(cue.start, cue.end, cue.text, track.language))
        except av.FFmpegError:
            pass  # a broken tail: what came before counts
    return tidy(found)


def _text_packets(container: InputContainer, stream: Stream, start: float) -> Iterator[Cue]:
    text_of = TEXT_DECODERS[str(stream.name)]
    for packet in packets(container, [stream]):
        if packet.pts is None or not 0 < packet.size <= MAX_PACKET_BYTES:
            continue
        begin = round(float(packet.pts * packet.time_base) - start, 6)
        text = text_of(bytes(packet))
        if text.strip("\x00 \r\n"):  # MP4 fills silences with empty cues
            yield Cue(begin, round(begin + float((packet.duration or 0) * packet.time_base), 6), text)


def _start(container: InputContainer, path: FilePath) -> float:
    try:
        return container_start(container, video_stream(container, path))
    except MediaError:  # sound and text only
        return (container.start_time or 0) / 1e6


def _text_track(stream: Stream) -> TextTrack:
    said = stream.disposition
    named = {"forced": said.forced, "sdh": said.hearing_impaired | said.captions, "default": said.default}
    title = stream.metadata.get("title", "").lower()
    flags = {flag for flag, bit in named.items() if said & bit}
    flags |= {flag for flag in ("forced", "sdh") if flag in title}
    return TextTrack(stream.index, str(stream.name), language_of(stream.language or ""), frozenset(flags))
