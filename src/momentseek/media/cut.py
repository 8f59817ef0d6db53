"""Cut moments out of videos into files, and write previews that every browser plays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.media.container import FilePath, libav, open_media, packets, regular_file, sound_stream, video_stream
from momentseek.media.pixels import orientation, shrunk
from momentseek.media.probe import container_start, probe
from momentseek.media.reader import Picture, Reader

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.frame import VideoFrame


@dataclass(frozen=True)
class Codecs:
    """The codecs and options of an output format."""

    video: str
    audio: str
    options: dict[str, str]


# No B-frames: MP4 stores durations in decoding order, so with B-frames a variable-rate clip would not end on time.
_H264 = Codecs("libx264", "aac", {"crf": "20", "preset": "veryfast", "bf": "0"})
CODECS_BY_SUFFIX = {
    ".mp4": _H264,
    ".mov": _H264,
    ".mkv": _H264,
    ".webm": Codecs("libvpx-vp9", "libopus", {"crf": "31", "b": "0", "deadline": "realtime", "cpu-used": "6"}),
}
_CLOCK = Fraction(1, 90_000)
_KEEP_DURATIONS = 1 << 8  # AV_CODEC_FLAG_FRAME_DURATION: the last frame has the duration we set
_SAMPLE_RATE = 48_000  # per second; both AAC and Opus support it


def recoding(
    source: FilePath, start: float, end: float, out: Path, codecs: Codecs, short_side: int | None = None
) -> Iterator[float]:
    """Encode ``[start, end)`` into ``out`` frame by frame; yield the source time until which each frame is shown.

    ``short_side`` limits the shorter side; frames are never enlarged.
    """
    av = libav()
    flags = {"movflags": "+faststart"} if out.suffix in (".mp4", ".mov") else {}
    with (
        open_media(source) as container,
        open_media(source) as second,
        av.open(str(out.absolute()), "w", options=flags) as clip,
    ):
        reader = Reader(container, source)
        audio = sound_stream(second)
        sound = None if audio is None else _SoundTrack(second, audio, reader.start, start, end)
        encoder: _PictureEncoder | None = None
        tone: Any = None
        for picture, until in _displayed_pictures(reader, start, end):
            if encoder is None:
                encoder = _PictureEncoder(clip, codecs, reader, picture.frame, short_side)
                if sound is not None:
                    tone = clip.add_stream(codecs.audio, rate=_SAMPLE_RATE, layout=sound.layout)
            clip.mux(encoder.encode(picture.frame, max(0.0, picture.time - start), until - start))
            if sound is not None:
                for frame in sound.until(until):
                    clip.mux(tone.encode(frame))
            yield until
        if encoder is None:
            raise reader.no_picture(start)
        clip.mux(encoder.encode(None))
        if tone is not None:
            clip.mux(tone.encode(None))


def _displayed_pictures(reader: Reader, start: float, end: float) -> Iterator[tuple[Picture, float]]:
    """Yield the pictures visible within ``[start, end)``, each with the time until which it is shown."""
    shown: Picture | None = None
    for picture in reader.pictures(start):
        if shown is not None and picture.time > start + 1e-6:
            yield shown, min(picture.time, end)
        shown = picture
        if picture.time >= end - 1e-6:
            return
    if shown is not None and shown.time + shown.duration > start:
        yield shown, min(shown.time + shown.duration, end)


class _PictureEncoder:
    """Rotates frames upright, makes their sides even, and encodes them."""

    def __init__(
        self, clip: Any, codecs: Codecs, reader: Reader, frame: VideoFrame, short_side: int | None = None
    ) -> None:
        turned = orientation(frame).transposed
        width, height = (frame.height, frame.width) if turned else (frame.width, frame.height)
        width, height = shrunk(width, height, short_side)
        self.size = max(2, width // 2 * 2), max(2, height // 2 * 2)
        self.stream = clip.add_stream(codecs.video, rate=reader.rate, options=codecs.options)
        self.stream.width, self.stream.height = self.size
        self.stream.pix_fmt = "yuv420p"
        context = self.stream.codec_context
        context.time_base = _CLOCK
        context.flags |= _KEEP_DURATIONS
        if reader.aspect is not None:
            context.sample_aspect_ratio = 1 / reader.aspect if turned else reader.aspect
        context.color_range, context.colorspace = frame.color_range, frame.colorspace
        self._graph: Any = None
        self._shape: tuple[object, ...] = ()

    def encode(self, frame: VideoFrame | None, time: float = 0.0, until: float = 0.0) -> list[Packet[Any]]:
        """Return the packets for a frame shown from ``time`` to ``until`` in the clip; for None, the last packets."""
        if frame is None:
            return list(self.stream.encode(None))
        frame.pts, frame.time_base = 0, _CLOCK
        shape = (frame.width, frame.height, frame.format.name, orientation(frame))
        if shape != self._shape:  # the first frame, or one of another size
            self._graph, self._shape = self._filters(frame), shape
        self._graph.push(frame)
        even = self._graph.pull()
        even.time_base = _CLOCK
        even.pts = round(time / _CLOCK)
        even.duration = max(1, round(until / _CLOCK) - even.pts)
        even.pict_type = 0  # the encoder decides
        return list(self.stream.encode(even))

    def _filters(self, frame: VideoFrame) -> Any:
        from av.filter import Graph

        graph = Graph()
        chain = [graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=_CLOCK)]
        turn = orientation(frame)
        if turn.transposed:
            chain.append(graph.add("transpose", "cclock_flip"))  # mirrors at the main diagonal, i.e. transposes
        if turn.across < 0:
            chain.append(graph.add("hflip"))
        if turn.down < 0:
            chain.append(graph.add("vflip"))
        width, height = self.size
        chain.append(graph.add("scale", f"{width}:{height}:flags=bicubic"))
        chain += [graph.add("format", "yuv420p"), graph.add("buffersink")]
        for one, other in pairwise(chain):
            one.link_to(other)
        graph.configure()
        return graph


class _SoundTrack:
    """The sound of ``[start, end)`` as continuous samples: gaps become silence, overlaps are dropped."""

    def __init__(self, container: InputContainer, stream: AudioStream, zero: float, start: float, end: float) -> None:
        self.zero, self.start = zero, start
        self.stream = stream
        self.layout = "mono" if self.stream.codec_context.channels == 1 else "stereo"
        self.total = round((end - start) * _SAMPLE_RATE)
        self.written = 0
        self._pieces = self._place_samples(container)
        self._waiting: tuple[int, NDArray[np.float32]] | None = None

    def until(self, time: float) -> Iterator[Any]:
        """Yield audio frames up to ``time`` seconds of the source."""
        wanted = min(self.total, round((time - self.start) * _SAMPLE_RATE))
        while self.written < wanted:
            piece = self._waiting or next(self._pieces, None)
            self._waiting = None
            if piece is None or piece[0] > self.written:
                if piece is not None and piece[0] >= wanted:
                    self._waiting = piece
                stop = wanted if piece is None else min(piece[0], wanted)
                yield self._frame(np.zeros((1 if self.layout == "mono" else 2, stop - self.written), np.float32))
                if piece is None or self._waiting is not None:
                    continue
            place, samples = piece
            samples = samples[:, max(0, self.written - place) : self.total - place]
            if samples.shape[1]:
                yield self._frame(samples)

    def _frame(self, samples: NDArray[np.float32]) -> Any:
        frame = libav().AudioFrame.from_ndarray(np.ascontiguousarray(samples), "fltp", self.layout)
        frame.sample_rate, frame.pts, frame.time_base = _SAMPLE_RATE, self.written, Fraction(1, _SAMPLE_RATE)
        self.written += samples.shape[1]
        return frame

    def _place_samples(self, container: InputContainer) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield samples and their start within the clip, which is negative for sound that begins before it."""
        av = libav()
        base = self.stream.time_base or Fraction(1, _SAMPLE_RATE)
        if self.start > 0:
            with suppress(av.FFmpegError):  # a container that cannot seek is read from its beginning
                container.seek(int((self.start + self.zero - 0.5) / base), stream=self.stream, backward=True)
        resampler = av.AudioResampler(format="fltp", layout=self.layout, rate=_SAMPLE_RATE)
        try:
            for packet in packets(container, [self.stream]):
                try:
                    decoded = [f for f in self.stream.decode(packet) if f.pts is not None]
                except av.FFmpegError:
                    continue
                for frame in decoded:
                    for even in resampler.resample(frame):
                        seconds = float(even.pts * even.time_base) - self.zero - self.start
                        if seconds * _SAMPLE_RATE >= self.total:
                            return
                        samples = np.asarray(even.to_ndarray(), np.float32)
                        if (place := round(seconds * _SAMPLE_RATE)) + samples.shape[1] > 0:
                            yield place, samples
        except av.FFmpegError:
            return  # the rest is damaged: silence from here on


def _write_sound(source: FilePath, clip: Path, start: float, end: float) -> Cut:
    """Re-encode ``[start, end)`` of an audio recording into a file."""
    with open_media(source) as container, libav().open(str(clip.absolute()), "w") as written:
        stream = sound_stream(container)
        if stream is None:
            raise MediaError(f"{source}: has no sound that can be decoded; get another copy")
        sound = _SoundTrack(container, stream, (container.start_time or 0) / 1e6, start, end)
        tone: Any = written.add_stream(CODECS_BY_SUFFIX[clip.suffix].audio, rate=_SAMPLE_RATE, layout=sound.layout)
        for frame in sound.until(end):
            written.mux(tone.encode(frame))
        written.mux(tone.encode(None))
    return Cut(clip, start, end, end - start, 0)


_ROUNDING_SECONDS = 0.005  # Matroska counts in milliseconds


@dataclass(frozen=True)
class Cut:
    """A clip that was written: its span in the source in seconds, its duration and its number of frames."""

    path: Path
    start: float
    end: float
    duration: float
    frames: int


def write_clip(source: FilePath, clip: Path, name: str, start: float, end: float, *, exact: bool, pad: float) -> Cut:
    """Write ``[start, end)`` of a video, extended by ``pad`` seconds on both sides, and check the clip's duration.

    ``name`` is the final name of the file, for error messages.
    """
    info = probe(source)
    begin, finish = max(0.0, start - pad), min(info.duration, end + pad)
    if not begin < finish:
        raise MomentseekError(
            f"{source}: cannot cut {start:g} to {end:g} s out of {info.duration:g} s; "
            "the start must lie in the video and before the end"
        )
    asked, leeway = finish - begin, float(1 / info.rate) + _ROUNDING_SECONDS
    try:
        if not info.width:
            return _write_sound(source, clip, begin, finish)
        if exact:
            first, frames = begin, sum(1 for _ in recoding(source, begin, finish, clip, CODECS_BY_SUFFIX[clip.suffix]))
        else:
            first, frames = copy_packets(source, begin, finish, clip)
        duration = probe(clip).duration
    except (libav().FFmpegError, ValueError) as e:
        reason = getattr(e, "strerror", None) or e
        raise MomentseekError(f"{name}: cannot be written ({reason}); try .mkv, or cut exactly") from None
    except OSError as e:
        raise MomentseekError(f"{name}: cannot be written ({e.strerror or e}); check the folder") from None
    if duration < asked - leeway or (exact and duration > asked + leeway):
        raise MediaError(
            f"{info.path}: the clip came out {duration:.2f} s long instead of {asked:.2f} s and was not kept; "
            f"the video is damaged after {begin:.1f} s"
        )
    return Cut(clip, first, finish if exact else first + duration, duration, frames)


def cut(
    path: FilePath,
    start: float,
    end: float,
    out: FilePath,
    *,
    exact: bool = True,
    pad: float = 0.0,
    write: Callable[..., Cut] = write_clip,
) -> Cut:
    """Cut ``[start, end)``, extended by ``pad`` seconds on both sides, into ``out``, whose suffix sets the format.

    An exact cut is re-encoded (H.264 and AAC; VP9 and Opus for .webm): its first frame is the one shown at ``start``,
    and its duration is right within one frame. A fast cut (``exact=False``) copies packets from the last key frame at
    or before ``start``, so the clip may begin earlier, at ``Cut.start``. Times outside the video are clipped to it.
    ``write`` makes the clip under a temporary name next to ``out``; it is renamed only if its duration is right.
    """
    source, target = regular_file(path), Path(out)
    if target.suffix.lower() not in CODECS_BY_SUFFIX:
        raise MomentseekError(f"{target}: clips are written as {', '.join(CODECS_BY_SUFFIX)}; choose one of these")
    if target.is_dir():
        raise MomentseekError(f"{target}: is a folder; give the name of the clip to write")
    if target.exists() and os.path.samefile(source, target):
        raise MomentseekError(f"{target}: is the video itself, which is never written over; choose another name")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".momentseek-") as room:
            temporary = Path(room) / f"clip{target.suffix.lower()}"
            made = write(source, temporary, name=os.fspath(out), start=start, end=end, exact=exact, pad=pad)
            temporary.replace(target)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror or e}); check the folder") from None
    return replace(made, path=target)


def copy_packets(source: FilePath, start: float, end: float, out: Path) -> tuple[float, int]:
    """Copy pictures and sound from the last key frame at or before ``start`` to ``end`` or slightly later.

    Returns the start of the clip and its number of pictures.
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
                if order >= end + zero and time > latest:  # no picture before the latest one is missing
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
    """Yield packets from a key frame shown at or before ``start``, seeking further back until one is found."""
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
    """Return a time stamp in seconds, or the packet's other one if this is missing."""
    if stamp is None:
        stamp = packet.pts if packet.pts is not None else packet.dts
    return float((stamp or 0) * packet.time_base)


PREVIEW_SHORT_SIDE = 540
"""Maximum of the shorter side in pixels: enough to judge a moment, at a third of the cost of full HD."""
# Frames keep their times, so that stepping by frames and edges stay exact; a key frame about every two seconds makes
# seeking fast.
PREVIEW_CODECS = Codecs("libx264", "aac", {"crf": "26", "preset": "superfast", "bf": "0", "g": "50"})


def preview(source: FilePath, out: Path) -> Iterator[float]:
    """Write a preview of a whole video to the MP4 file ``out`` (H.264 and AAC); yield the share done, in [0, 1]."""
    duration = probe(source).duration
    for at in recoding(source, 0.0, duration, out, PREVIEW_CODECS, PREVIEW_SHORT_SIDE):
        yield min(1.0, max(0.0, at / duration))
