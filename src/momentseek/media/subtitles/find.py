"""Find what is said in a video: the best of its subtitle files and of the text tracks inside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.media.container import FilePath, libav, open_media, packets, video_stream
from momentseek.media.probe import container_start
from momentseek.media.subtitles import ass
from momentseek.media.subtitles.cues import MAX_CUES_PER_SECOND, Cue, join_sentences, thin_out, tidy
from momentseek.media.subtitles.read import MAX_CUES, read_subtitles
from momentseek.media.subtitles.sidecars import Sidecar, find_sidecars, language_of, preference

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


@dataclass(frozen=True)
class VideoCues:
    """What is said in a video, and where that was found."""

    cues: tuple[Cue, ...] = ()
    """Cues joined into sentences, by start."""
    sources: tuple[str, ...] = ()
    """Where they come from: a subtitle file's path, or a track of the video."""
    problems: tuple[str, ...] = ()
    """What could not be read, one sentence each; none of it is fatal."""


def cues_of(
    video: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    languages: Sequence[str] | None = None,
    duration: float | None = None,
    links: bool = True,
) -> VideoCues:
    """What is said in a video, from the best subtitles it has, joined into sentences.

    Subtitles in ``folder`` go before those next to the video, and those before tracks inside it; of each kind the first
    of ``languages`` that is there wins (unnamed, English and others follow), complete subtitles before those with
    forced cues alone, which come last of all. A file that cannot be read is noted as a problem and the next one taken.
    Given the video's ``duration`` in seconds, more cues than anybody could say in it are left out, which is noted too.
    Subtitle files that are links, or lie behind one, are read only with ``links``.
    """
    wanted = tuple(languages or ())
    problems: list[str] = []
    for source in _sources(video, folder, wanted, problems):
        try:
            if isinstance(source, Sidecar):
                found, name = read_subtitles(source.file(links), source.language), str(source.path)
            else:
                found, name = track_cues(video, source), str(source)
        except MomentseekError as e:
            problems.append(str(e))
            continue
        if found:
            joined = join_sentences(found)
            kept = joined if duration is None else thin_out(joined, duration)
            if len(kept) < len(joined):
                problems.append(
                    f"{name}: {len(joined) - len(kept):,} of {len(joined):,} cues left out, more than "
                    f"{MAX_CUES_PER_SECOND} per second of video; check that the subtitles belong to it"
                )
            return VideoCues(tuple(kept), (name,), tuple(problems))
    return VideoCues(problems=tuple(problems))


def _sources(
    video: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None,
    languages: tuple[str, ...],
    problems: list[str],
) -> Iterator[Sidecar | TextTrack]:
    """Everything that may hold the words, best first; the video is opened only when its turn comes."""
    files = _files_by_preference(find_sidecars(video, folder), folder, languages)
    yield from (file for file in files if "forced" not in file.flags)
    inside: list[TextTrack] = []
    try:
        inside = by_preference(text_tracks(video), languages)
    except MomentseekError as e:
        problems.append(str(e))
    yield from (track for track in inside if "forced" not in track.flags)
    yield from (file for file in files if "forced" in file.flags)
    yield from (track for track in inside if "forced" in track.flags)


def _files_by_preference(
    files: Sequence[Sidecar], folder: str | os.PathLike[str] | None, languages: tuple[str, ...]
) -> list[Sidecar]:
    given = None if folder is None else Path(folder)

    def key(file: Sidecar) -> tuple[bool, int, str, bool]:
        elsewhere = given is not None and given not in file.path.parents
        return (elsewhere, *preference(file.language, languages), "sdh" in file.flags)

    return sorted(files, key=key)
