"""Open untrusted media files safely: only regular files and video containers, never the network."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from momentseek.core.errors import MediaError, MomentseekError, optional_module
from momentseek.core.pinned_file import PinnedFile

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.stream import VideoStream


_listeners: list[Callable[[], None]] = []


def on_heartbeat(listener: Callable[[], None]) -> None:
    """Call ``listener`` for every packet read, so that a waiting process sees progress."""
    _listeners.append(listener)


EFFORT_VARIABLE = "MOMENTSEEK_DECODE_EFFORT"
MAX_EFFORT = 20.0
"""Limit of CPU seconds per second of video; 8K films take 2 to 6 on a slow core."""
MAX_PIXEL_RATE = 10_000_000_000
"""Limit of pixels per second of video: a hundred of the largest pictures, or 8K at 300 frames per second."""


class DecodingBudget:
    """A limit on the CPU time and pixels of decoding one file, proportional to the seconds of video read plus one.

    A second counts once a packet of it is read, so a false duration in the header does not raise the limit.
    """

    def __init__(self, effort: float = MAX_EFFORT) -> None:
        self.effort = effort
        self._begun = time.process_time()
        self._seconds: set[int] = set()
        self._pixels = 0

    def spend(self, name: str, packet: Packet[Stream]) -> None:
        """Count a packet; raise MediaError once the file exceeds the budget."""
        stamp, base = packet.pts if packet.pts is not None else packet.dts, packet.time_base
        if stamp is not None and base:
            self._seconds.add(int(stamp * base))
        if packet.stream.type == "video" and packet.size:
            self._pixels += getattr(packet.stream, "width", 0) * getattr(packet.stream, "height", 0)
        length = 1 + len(self._seconds)
        if self._pixels > length * MAX_PIXEL_RATE:
            rate = f"{MAX_PIXEL_RATE:,} pixels a second"
            raise MediaError(f"{name}: its pictures are more than {rate} of video; make a smaller copy")
        if time.process_time() - self._begun > length * self.effort:
            raise MediaError(
                f"{name}: decoding {length - 1} s of it took more than {length * self.effort:g} s of processor time "
                f"({self.effort:g} a second, and as much to begin with) and was given up; convert it, or allow more "
                f"({EFFORT_VARIABLE})"
            )


_budget: DecodingBudget | None = None


def set_budget(budget: DecodingBudget | None) -> None:
    """Set the budget for the next file that this process decodes."""
    global _budget
    _budget = budget


FilePath = str | os.PathLike[str]

MAX_PIXELS = 100_000_000
MAX_SIDE_PIXELS = 16_384
OPEN_TIMEOUT_SECONDS = 30.0
"""Timeout for opening a file or reading one packet: long enough for a sleeping drive to wake up."""
MEMORY_VARIABLE = "MOMENTSEEK_DECODE_GIGABYTES"
MAX_EMPTY_PACKETS = 10_000
"""Limit of empty packets in a file: the last one of each stream, and those of tracks that appear midway."""

# Playlists and scripts refer to other files and addresses, and pictures are not videos. None of them is ever opened.
_REFUSED = {"concat", "dash", "hls", "imf", "image2", "image2pipe", "lavfi", "mca", "rtp", "rtsp", "sap", "sdp", "tty"}

_PICTURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"8BPS": "Photoshop",
    b"WEBP": "WebP",
}


def libav() -> Any:
    """Import ``av`` (PyAV, which includes ffmpeg); raise an error that says how to install it if it is missing."""
    return optional_module("av", "search")


@contextmanager
def open_media(path: FilePath, acceleration: Any = None) -> Iterator[InputContainer]:
    """Open a media file for reading; raise MediaError with a plain reason if that fails.

    With an `acceleration` a device decodes the file, or the CPU if the device refuses. A ``PinnedFile`` is passed as an
    open file, because libav would follow links if it opened the name. So is a file whose name is not valid Unicode.
    """
    av = libav()
    path = regular_file(path)
    options = {
        "protocol_whitelist": "file",
        "format_whitelist": _formats(),
        "max_pixels": str(MAX_PIXELS),
        "threads": "1",
    }
    settings: dict[str, Any] = {"options": options, "timeout": OPEN_TIMEOUT_SECONDS, "metadata_errors": "replace"}
    try:
        name = os.path.abspath(path)  # begins with a slash or a drive, so ffmpeg cannot take it for a protocol
        by_name = not isinstance(path, PinnedFile) and name.encode(errors="ignore").decode() == name
        file: AbstractContextManager[Any] = nullcontext(name) if by_name else path.open("rb", buffering=0)
        with file as opened, _open(opened, settings, acceleration) as container:
            yield container
    except av.FFmpegError as e:
        raise MediaError(f"{path}: {_reason(path, e)}") from None
    except OSError as e:
        raise MediaError(f"{path}: cannot be read ({e.strerror or e}); check the file and its permissions") from None


def _open(file: Any, settings: dict[str, Any], acceleration: Any) -> Any:
    av = libav()
    if acceleration is not None:
        try:
            return av.open(file, "r", hwaccel=acceleration, **settings)
        except (av.FFmpegError, NotImplementedError):  # the device's fault or the file's: the CPU will show
            if not isinstance(file, str):
                file.seek(0)
    return av.open(file, "r", **settings)


def regular_file(path: FilePath) -> Path | PinnedFile:
    """Return the path if it is a regular, non-empty file; pipes and devices are refused, so that nothing blocks."""
    path = path if isinstance(path, PinnedFile) else Path(path)
    try:
        status = path.stat()
    except (OSError, ValueError) as e:
        reason = getattr(e, "strerror", None) or str(e)
        raise MediaError(f"{path}: cannot be read ({reason}); check the path") from None
    if stat.S_ISDIR(status.st_mode):
        raise MediaError(f"{path}: is a folder; give a video file")
    if not stat.S_ISREG(status.st_mode):
        raise MediaError(f"{path}: is a pipe, socket or device; give a regular video file")
    if status.st_size == 0:
        raise MediaError(f"{path}: is empty; copy or download it again")
    return path


def _moving_streams(container: InputContainer) -> list[VideoStream]:
    """Return the video streams except cover art."""
    from av.stream import Disposition

    still = Disposition.attached_pic | Disposition.timed_thumbnails
    return [s for s in container.streams.video if not s.disposition & still]


def has_pictures(container: InputContainer) -> bool:
    """Whether a file has a video stream other than cover art."""
    return bool(_moving_streams(container))


def video_stream(container: InputContainer, path: FilePath) -> VideoStream:
    """Return the video stream that a player would choose, never cover art."""
    streams = _moving_streams(container)
    if not streams:
        if container.streams.video:
            raise MediaError(f"{path}: has no video stream, only sound and a cover picture; give a video")
        what = ", only sound" if container.streams.audio else ""
        raise MediaError(f"{path}: has no video stream{what}; give a video")
    best = container.streams.best("video")
    stream = next((s for s in streams if best is not None and s.index == best.index), streams[0])
    if getattr(stream, "codec_context", None) is None:  # there is no decoder; PyAV's types do not cover this case
        name = getattr(stream, "name", None) or "in an unknown way"
        raise MediaError(f"{path}: its pictures are coded {name} or protected and cannot be decoded; convert it")
    if stream.codec_tag in ("encv", "drmi"):
        raise MediaError(f"{path}: is encrypted (copy protection); give an unprotected copy")
    check_size(stream.codec_context.width, stream.codec_context.height, path)
    return stream


def sound_stream(container: InputContainer) -> AudioStream | None:
    """Return the first audio stream that can be decoded, or None."""
    return next((s for s in container.streams.audio if getattr(s, "codec_context", None) is not None), None)


def packets(container: InputContainer, streams: Sequence[Stream]) -> Iterator[Packet[Stream]]:
    """Yield the packets of some streams; refuse a file with more packets than bytes, which is read in circles.

    `demux` fails on streams that appear midway, after the known ones have ended.
    """
    max_packets = max(0, container.size) + MAX_EMPTY_PACKETS
    with suppress(IndexError):
        for count, packet in enumerate(container.demux(list(streams))):
            if count > max_packets:
                raise MediaError(f"{container.name}: is read in circles, so it has no end; convert it")
            for listener in _listeners:
                listener()
            if _budget is not None:
                _budget.spend(container.name, packet)
            yield packet


def out_of_memory(path: FilePath) -> MediaError:
    """Return the error for a video of which no picture could be decoded for lack of memory."""
    limit = f"more memory than decoding may have; make a smaller copy, or allow more ({MEMORY_VARIABLE})"
    return MediaError(f"{path}: its pictures take {limit}")


def check_size(width: int, height: int, path: FilePath) -> None:
    """Refuse a video whose pictures are too large for memory."""
    if max(width, height) > MAX_SIDE_PIXELS or width * height > MAX_PIXELS:
        raise MediaError(
            f"{path}: its pictures are {width} × {height}, more than {MAX_SIDE_PIXELS} a side or "
            f"{MAX_PIXELS // 1_000_000} megapixels; make a smaller copy"
        )


@cache
def _formats() -> str:
    """Return the allowed container formats, in ffmpeg's syntax."""
    names = {name for entry in libav().formats_available for name in entry.split(",")}
    return ",".join(sorted(n for n in names if n not in _REFUSED and not n.endswith("_pipe")))


def _reason(path: Path | PinnedFile, error: Exception) -> str:
    """Translate ffmpeg's error into a reason and remedy for the user."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as e:
        return f"cannot be read ({e.strerror}); check the file and its permissions"
    for magic, kind in _PICTURES.items():
        if head.startswith(magic) or (head.startswith(b"RIFF") and head[8:12] == magic):
            return f"is a {kind} picture, not a video; give a video file"
    if head.startswith(b"#EXTM3U"):
        return "is a playlist, not a video; give the videos it names"
    if head[4:8] in (b"ftyp", b"mdat", b"free", b"wide"):
        return "is an MP4 or MOV without its index, as a recording or download that stopped leaves it; repair it"
    if isinstance(error, TimeoutError) or "ExitError" in type(error).__name__:
        return f"did not answer within {OPEN_TIMEOUT_SECONDS:.0f} seconds; check the drive"
    if isinstance(error, PermissionError):
        return "may not be read; check its permissions"
    return "is no video that can be read, or is broken at its beginning; check that it plays, or convert it"


_CODEC = "h264"  # a device that decodes it is used for all codecs it supports


def device_kinds() -> list[str]:
    """Return the kinds of devices that this build of PyAV supports, such as ``cuda``, present or not."""
    codec = libav().Codec(_CODEC, "r")
    return [config.device_type.name for config in codec.hardware_configs if config.is_supported]


def find_device() -> str:
    """Return the kind of device that can decode on this machine; raise an error if there is none."""
    kinds = device_kinds()
    for kind in kinds:
        if _answers(kind):
            return kind
    offered = f"this build of PyAV can use {' or '.join(kinds)}" if kinds else "this build of PyAV can use none"
    raise MomentseekError(f"--hardware: no device that decodes videos answers here ({offered}); leave it out")


def acceleration(kind: str) -> Any:
    """Return the `av.open` setting for decoding on a device, with the CPU as fallback."""
    from av.codec.hwaccel import HWAccel

    return HWAccel(kind, allow_software_fallback=True)


def _answers(kind: str) -> bool:
    av = libav()
    try:
        acceleration(kind).create(av.Codec(_CODEC, "r"))
    except (av.FFmpegError, NotImplementedError):
        return False
    return True
