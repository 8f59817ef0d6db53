"""Cutting a moment out of a video into a file of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.errors import MediaError, MomentseekError
from momentseek.media.container import FilePath, libav, open_media, packets, regular_file, sound_stream, video_stream
from momentseek.media.probe import Probe, container_start, probe
from momentseek.media.recoding import CODECS_BY_SUFFIX, recode
from momentseek.plain_file import PlainFile

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream

_ROUNDING_SECONDS = 0.005  # seconds; Matroska counts in milliseconds


@dataclass(frozen=True)
class Cut:
    """A clip that was written: which seconds of the source it shows, its duration and its number of frames."""

    path: Path
    start: float
    end: float
    duration: float
    frames: int


@dataclass(frozen=True)
class WrittenClip:
    """A clip in its file before it takes its name: which seconds it shows, its duration and its number of frames."""

    start: float
    end: float
    duration: float
    frames: int


def cut(path: FilePath, start: float, end: float, out: FilePath, *, exact: bool = True, pad: float = 0.0) -> Cut:
    """Write ``[start, end)`` of a video, ``pad`` seconds more on each side, as a clip of the kind of ``out``'s suffix.

    Exactly: encoded anew (H.264 and AAC; VP9 and Opus for .webm), the first frame is the one shown at ``start``, and
    the duration is right within one frame. Fast (``exact=False``): packets are copied from the last key frame at or
    before ``start``, so the clip may begin earlier; ``Cut.start`` says where. Times past either end are drawn in.
    The clip is looked at again before it takes its name; one of another duration than asked is not kept.
    """
    name = os.fspath(out)
    return place_clip(path, out, lambda source, clip: write_clip(source, clip, name, start, end, exact=exact, pad=pad))


def place_clip(path: FilePath, out: FilePath, write: Callable[[Path | PlainFile, Path], WrittenClip]) -> Cut:
    """Let ``write`` make a clip of a video under a temporary name beside ``out``, which it takes if all went well."""
    source, target = regular_file(path), Path(out)
    _check_target(source, target)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".momentseek-") as room:
            temporary = Path(room) / f"clip{target.suffix.lower()}"
            made = write(source, temporary)
            temporary.replace(target)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror or e}); check the folder") from None
    return Cut(target, made.start, made.end, made.duration, made.frames)


def write_clip(
    source: Path | PlainFile, clip: Path, name: str, start: float, end: float, *, exact: bool, pad: float
) -> WrittenClip:
    """Write ``[start, end)`` of a video and ``pad`` seconds more on each side into a file, and check it.

    The file will be called ``name``, so that is what errors call it.
    """
    info = probe(source)
    begin, finish = max(0.0, start - pad), min(info.duration, end + pad)
    if not begin < finish:
        raise MomentseekError(
            f"{source}: cannot cut {start:g} to {end:g} s out of {info.duration:g} s; "
            "the start must lie in the video and before the end"
        )
    try:
        write = recode if exact else copy_packets
        first, frames = write(source, begin, finish, clip)
        duration = _check_duration(clip, finish - begin, info, exact=exact, place=begin)
    except (libav().FFmpegError, ValueError) as e:
        reason = getattr(e, "strerror", None) or e
        raise MomentseekError(f"{name}: cannot be written ({reason}); try .mkv, or cut exactly") from None
    except OSError as e:
        raise MomentseekError(f"{name}: cannot be written ({e.strerror or e}); check the folder") from None
    return WrittenClip(first, finish if exact else first + duration, duration, frames)


def _check_duration(clip: Path, asked: float, source: Probe, *, exact: bool, place: float) -> float:
    """The duration of the clip as it lies on disk, if it is what was asked for."""
    duration = probe(clip).duration
    leeway = float(1 / source.rate) + _ROUNDING_SECONDS
    if duration < asked - leeway or (exact and duration > asked + leeway):
        raise MediaError(
            f"{source.path}: the clip came out {duration:.2f} s long instead of {asked:.2f} s and was not kept; "
            f"the video is damaged after {place:.1f} s"
        )
    return duration


def _check_target(source: FilePath, target: Path) -> None:
    if target.suffix.lower() not in CODECS_BY_SUFFIX:
        raise MomentseekError(f"{target}: clips are written as {', '.join(CODECS_BY_SUFFIX)}; choose one of these")
    if target.is_dir():
        raise MomentseekError(f"{target}: is a folder; give the name of the clip to write")
    if target.exists() and os.path.samefile(source, target):
        raise MomentseekError(f"{target}: is the video itself, which is never written over; choose another name")


def copy_packets(source: FilePath, start: float, end: float, out: Path) -> tuple[float, int]:
    """Copy pictures and sound from the last key frame at or before ``start`` until ``end``; no less, a little more.

    Returns where the clip begins and how many pictures it has.
    """
    av = libav()
    with open_media(source) as container, av.open(str(out.absolute()), "w") as clip:
        video = video_stream(container, source)
        zero = container_start(container, video)
        sound = sound_stream(container)
        streams: list[Stream] = [video] if sound is None else [video, sound]
        copies = {s.index: clip.add_stream_from_template(s) for s in streams}
        first: float | None = None
        frames, latest = 0, 0.0
        for packet in _from_key_frame(container, video, streams, start + zero):
            time, order = _seconds(packet, packet.pts), _seconds(packet, packet.dts)
            if packet.stream_index == video.index:
                if order >= end + zero and time > latest:  # and no picture is missing before the latest shown
                    break
                first = time if first is None else first
                frames, latest = frames + 1, max(latest, time)
            elif first is None or not first <= time < end + zero:
                continue
            shift = round(Fraction(first) / packet.time_base)
            packet.pts = None if packet.pts is None else packet.pts - shift
            packet.dts = None if packet.dts is None else packet.dts - shift
            packet.stream = copies[packet.stream_index]
            clip.mux(packet)
        if first is None:
            raise MediaError(f"{source}: has no key frame to cut at near {start:.1f} s; cut exactly instead")
    return first - zero, frames


def _from_key_frame(
    container: InputContainer, video: Stream, streams: Sequence[Stream], start: float
) -> Iterator[Packet[Stream]]:
    """Packets from a key frame that is shown at or before ``start``; looked for further back until there is one."""
    av = libav()
    back = 0.0
    while True:
        target = max(0.0, start - back)
        base = video.time_base or Fraction(1, 1000)
        try:
            container.seek(int(target / base), stream=video, backward=True)
        except av.FFmpegError:
            if back == 0:  # this container cannot seek: from the beginning
                back = start
        read = (p for p in packets(container, streams) if p.size)
        found = next((p for p in read if p.stream_index == video.index and p.is_keyframe), None)
        if found is not None and (_seconds(found, found.pts) <= start + 1e-6 or back >= start):
            yield found
            yield from read
            return
        if back >= start:
            return
        back = min(start, max(1.0, 4 * back))


def _seconds(packet: Packet[Stream], stamp: int | None) -> float:
    """A time stamp in seconds; the packet's other one where it lacks this."""
    if stamp is None:
        stamp = packet.pts if packet.pts is not None else packet.dts
    return float((stamp or 0) * packet.time_base)
