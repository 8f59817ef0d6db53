"""Probe a video file: duration, size, frame rate, and text tracks."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.core.errors import MediaError
from momentseek.media.container import (
    MAX_PIXELS,
    FilePath,
    check_size,
    has_pictures,
    libav,
    open_media,
    out_of_memory,
    packets,
    sound_stream,
    video_stream,
)
from momentseek.media.pixels import clockwise, display_size, orientation

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


MAX_DURATION_SECONDS = 7 * 24 * 3600.0
"""A longer duration counts as a broken clock."""

EARLIEST_YEAR = 1980
"""An earlier recording date means that the camera's clock was not set."""
_SCAN_SECONDS = 20.0
_FIRST_FRAME_PACKETS = 3000
_COMMON_RATES = [Fraction(n) for n in (10, 12, 15, 24, 25, 30, 48, 50, 60, 100, 120, 240)] + [
    Fraction(n * 1000, 1001) for n in (24, 30, 48, 60, 120, 240)
]


@dataclass(frozen=True)
class Probe:
    """The properties of a video file, as a player would show it.

    ``start`` is the container's own start time; all other times count seconds from it. ``width`` and ``height`` are in
    square pixels after ``rotation`` (degrees clockwise). ``duration`` is the end of the pictures. An audio recording
    has a width and height of 0.
    """

    path: Path
    format: str
    duration: float
    start: float
    width: int
    height: int
    rotation: int
    rate: Fraction
    codec: str
    audio: bool
    recorded: float | None = None
    """Recording time in seconds since 1970, from the file's tags; None if there is none."""
    place: tuple[float, float] | None = None
    """Latitude and longitude of the recording in degrees; None if the file has none."""


def probe(path: FilePath) -> Probe:
    """Return the properties of a video file; raise MediaError if it is no video or cannot be decoded."""
    with open_media(path) as container:
        if not has_pictures(container) and (sound := sound_stream(container)) is not None:
            return _probe_sound(container, sound, path)
        stream = video_stream(container, path)
        start = container_start(container, stream)
        duration = declared_duration(container, stream, start)
        _refuse_still(container, stream, path)
        frame = _first_frame(container, stream, path)
        turn = orientation(frame)
        width, height = display_size(frame.width, frame.height, pixel_aspect(stream))
        if turn.transposed:
            width, height = height, width
        rate = frame_rate(stream)
        return Probe(
            path=Path(path),
            format=container.format.name.split(",")[0],
            duration=_scan_duration(path, start, rate) if duration is None else duration,
            start=start,
            width=width,
            height=height,
            rotation=clockwise(turn),
            rate=rate,
            codec=stream.codec_context.codec.canonical_name,
            audio=bool(container.streams.audio),
            recorded=recording_time({**stream.metadata, **container.metadata}),
            place=recording_place(container.metadata),
        )


def _probe_sound(container: InputContainer, stream: AudioStream, path: FilePath) -> Probe:
    """Return the properties of a file without pictures: a podcast, a voice recording, a song."""
    start = (container.start_time or 0) / 1e6
    duration = (container.duration or 0) / 1e6
    if not 0 < duration <= MAX_DURATION_SECONDS:
        ends = [float((p.pts or 0) + (p.duration or 0)) * float(p.time_base) for p in packets(container, [stream])]
        duration = max(ends, default=0.0) - start
    if duration <= 0:
        raise MediaError(f"{path}: has no sound that can be decoded; get another copy")
    return Probe(
        path=Path(path),
        format=container.format.name.split(",")[0],
        duration=duration,
        start=start,
        width=0,
        height=0,
        rotation=0,
        rate=Fraction(25),
        codec=stream.codec_context.codec.canonical_name,
        audio=True,
        recorded=recording_time({**stream.metadata, **container.metadata}),
        place=recording_place(container.metadata),
    )


def recording_time(tags: Mapping[str, str]) -> float | None:
    """Return the recording time from the tags of cameras and phones, in seconds since 1970, or None.

    >>> recording_time({"creation_time": "2023-07-01T10:00:00.000000Z"})
    1688205600.0
    >>> recording_time({"creation_time": "1904-01-01T00:00:00Z"})  # a clock that was never set
    """
    for name in ("com.apple.quicktime.creationdate", "creation_time", "DATE_RECORDED", "date"):
        text = tags.get(name, "")
        with suppress(ValueError, OverflowError, OSError):
            found = datetime.fromisoformat(text)
            if found.year >= EARLIEST_YEAR and found.timestamp() < time.time() + 86400:
                return found.timestamp()
    return None


def recording_place(tags: Mapping[str, str]) -> tuple[float, float] | None:
    """Return latitude and longitude in degrees from the tags of phones (ISO 6709), or None.

    >>> recording_place({"com.apple.quicktime.location.ISO6709": "+48.8577-002.2950+035.000/"})
    (48.8577, -2.295)
    """
    text = tags.get("com.apple.quicktime.location.ISO6709") or tags.get("location") or ""
    found = re.match(r"([+-]\d{1,2}(?:\.\d+)?)([+-]\d{1,3}(?:\.\d+)?)", text)
    if found is None or abs(float(found[1])) > 90 or abs(float(found[2])) > 180:
        return None
    return float(found[1]), float(found[2])


def container_start(container: InputContainer, stream: VideoStream) -> float:
    """Return the container's start time in seconds.

    The video stream's start time is used if it is earlier, or more than an hour later.
    """
    first = 0.0 if stream.start_time is None else float(stream.start_time * (stream.time_base or 0))
    began: int | None = container.start_time
    if began is None:
        return first
    start = began / 1e6
    return start if 0 <= first - start <= 3600 else first


def declared_duration(container: InputContainer, stream: VideoStream, start: float) -> float | None:
    """Return the declared seconds from the container's start to the end of the pictures; None if not credible.

    A duration is not credible if it is not positive, longer than a week, or leaves less than 25 bytes per second.
    """
    claims = []
    if stream.duration is not None and stream.time_base is not None:
        first = (stream.start_time or 0) * stream.time_base
        claims.append(float(first + stream.duration * stream.time_base) - start)
    if (tagged := _seconds(stream.metadata.get("DURATION", ""))) is not None:
        claims.append(tagged - max(0.0, start))
    if container.duration is not None:
        claims.append(container.duration / 1e6)
    for claim in claims:
        if 0 < claim <= MAX_DURATION_SECONDS and (claim < 600 or container.size >= 25 * claim):
            return claim
    return None


def frame_rate(stream: VideoStream) -> Fraction:
    """Return the average frames per second of a stream, snapped to a standard rate if it is near one.

    The average gives the number of frames; the guessed rate of a variable stream is often its time base (1000).
    """
    for rate in (stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate is not None and Fraction(1, 3600) <= rate <= 1000:
            return sane_rate(Fraction(rate))
    return Fraction(25)


def sane_rate(rate: Fraction) -> Fraction:
    """Return the standard rate near a rate, or else the rate with a small denominator.

    >>> sane_rate(Fraction(2997003, 100000)), sane_rate(Fraction(19001, 1583))
    (Fraction(30000, 1001), Fraction(11403, 950))
    """
    nearest = min(_COMMON_RATES, key=lambda usual: abs(usual - rate))
    if abs(nearest - rate) <= rate * Fraction(1, 5000):
        return nearest
    return rate.limit_denominator(1001) or rate


def pixel_aspect(stream: VideoStream) -> Fraction | None:
    """Return a pixel's width divided by its height; None if pixels are square or the file does not say."""
    aspect = stream.sample_aspect_ratio
    return Fraction(aspect) if aspect is not None and aspect > 0 and aspect != 1 else None


def _refuse_still(container: InputContainer, stream: VideoStream, path: FilePath) -> None:
    """Refuse GIF and similar files and HEIF photographs with a single picture."""
    names = set(container.format.name.split(","))
    brand = container.metadata.get("major_brand", "").strip()
    if not names & {"gif", "apng", "webp", "jpegxl_anim"} and brand not in ("avif", "heic", "heix", "mif1"):
        return
    count = 0
    for packet in packets(container, [stream]):
        count += packet.size > 0
        if count > 1:
            container.seek(0)
            return
    raise MediaError(f"{path}: is a single picture, not a video; give a video file")


def _first_frame(container: InputContainer, stream: VideoStream, path: FilePath) -> VideoFrame:
    """Return the first frame that can be decoded; the search is limited in time."""
    av = libav()
    stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
    deadline = time.process_time() + _SCAN_SECONDS  # CPU time, so that a file never fails because the machine is busy
    no_memory = False
    with suppress(av.FFmpegError):
        for count, packet in enumerate(packets(container, [stream])):
            try:
                for frame in stream.decode(packet):
                    check_size(frame.width, frame.height, path)
                    return frame
            except av.FFmpegError as e:
                no_memory = no_memory or isinstance(e, MemoryError)
            if count > _FIRST_FRAME_PACKETS or time.process_time() > deadline:
                break
    if no_memory:
        raise out_of_memory(path)
    raise MediaError(f"{path}: none of its pictures can be decoded; it is damaged or protected, so get another copy")


def _scan_duration(path: FilePath, start: float, rate: Fraction) -> float:
    """Find the end of the last picture by reading packets without decoding them.

    If a huge file cannot be read in time, its duration is extrapolated from the bytes read so far.
    """
    av = libav()
    frame = float(1 / rate)
    deadline = time.monotonic() + _SCAN_SECONDS
    last, position = 0.0, 0
    with open_media(path) as container:
        stream = video_stream(container, path)
        with suppress(av.FFmpegError):  # the rest is damaged: use what came before
            for packet in packets(container, [stream]):
                stamp = packet.pts if packet.pts is not None else packet.dts
                if stamp is None:
                    if packet.size and packet.dts is None:
                        last += frame
                    continue
                length = float((packet.duration or 0) * packet.time_base) or frame
                end = float(stamp * packet.time_base) - start + min(length, 3600.0)
                if last < end <= last + 3600:
                    last = end
                position = max(position, packet.pos or 0)
                if time.monotonic() > deadline and position:
                    return last * container.size / position
    return last or frame


def _seconds(clock: str) -> float | None:
    """Return Matroska's per-track duration in seconds.

    >>> _seconds("00:01:02.500000000"), _seconds("")
    (62.5, None)
    """
    found = re.fullmatch(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)", clock.strip())
    return None if found is None else int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])
