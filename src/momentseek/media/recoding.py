"""The exact cut: pictures and sound are decoded, trimmed and encoded anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MediaError
from momentseek.media.container import FilePath, libav, open_media, packets, sound_stream
from momentseek.media.picture import orientation, shrunk
from momentseek.media.reader import Picture, Reader

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame


@dataclass(frozen=True)
class Codecs:
    """The codecs and options with which a kind of file is encoded."""

    video: str
    audio: str
    options: dict[str, str]


# No B-frames: MP4 keeps durations in decoding order, so with them a clip of a variable rate would not end when asked.
_H264 = Codecs("libx264", "aac", {"crf": "20", "preset": "veryfast", "bf": "0"})
CODECS_BY_SUFFIX = {
    ".mp4": _H264,
    ".mov": _H264,
    ".mkv": _H264,
    ".webm": Codecs("libvpx-vp9", "libopus", {"crf": "31", "b": "0", "deadline": "realtime", "cpu-used": "6"}),
}
_CLOCK = Fraction(1, 90_000)
_KEEP_DURATIONS = 1 << 8  # AV_CODEC_FLAG_FRAME_DURATION: the last picture ends where we say
_SAMPLE_RATE = 48_000  # a second; both AAC and Opus take it


def recode(source: FilePath, start: float, end: float, out: Path) -> tuple[float, int]:
    """Encode ``[start, end)`` into ``out``, whose first instant is ``start``; returns that and the pictures written."""
    written = sum(1 for _ in recoding(source, start, end, out, CODECS_BY_SUFFIX[out.suffix]))
    return start, written


def recoding(
    source: FilePath, start: float, end: float, out: Path, codecs: Codecs, short_side: int | None = None
) -> Iterator[float]:
    """Encode ``[start, end)`` into ``out``, picture by picture; yields until when each is shown in the source.

    ``short_side`` shrinks pictures, and never enlarges them.
    """
    av = libav()
    flags = {"movflags": "+faststart"} if out.suffix in (".mp4", ".mov") else {}
    with (
        open_media(source) as container,
        open_media(source) as second,
        av.open(str(out.absolute()), "w", options=flags) as clip,
    ):
        reader = Reader(container, source)
        heard = sound_stream(second)
        sound = None if heard is None else _SoundTrack(second, heard, reader.start, start, end)
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
            reader.refuse_hunger()
            raise MediaError(f"{source}: no picture can be decoded at {start:.1f} s; get another copy")
        clip.mux(encoder.encode(None))
        if tone is not None:
            clip.mux(tone.encode(None))


def _displayed_pictures(reader: Reader, start: float, end: float) -> Iterator[tuple[Picture, float]]:
    """The pictures shown within ``[start, end)``, the first since before it, each with the time until it is shown."""
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
    """Turns frames upright, to even sides, and encodes them."""

    def __init__(
        self, clip: Any, codecs: Codecs, reader: Reader, frame: VideoFrame, short_side: int | None = None
    ) -> None:
        turned = orientation(frame)[0] == 0
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
        """Packets for a frame shown from ``time`` to ``until`` in the clip, or the last ones for None."""
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
        even.pict_type = 0  # the encoder decides anew
        return list(self.stream.encode(even))

    def _filters(self, frame: VideoFrame) -> Any:
        from av.filter import Graph

        graph = Graph()
        chain = [graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=_CLOCK)]
        across, _, down, _ = turn = orientation(frame)
        if across == 0:
            chain.append(graph.add("transpose", "cclock_flip"))  # mirrors at the main diagonal: a plain transposition
            across, down = turn[2], turn[1]
        else:
            across, down = turn[0], turn[3]
        if across < 0:
            chain.append(graph.add("hflip"))
        if down < 0:
            chain.append(graph.add("vflip"))
        width, height = self.size
        chain.append(graph.add("scale", f"{width}:{height}:flags=bicubic"))
        chain.append(graph.add("format", "yuv420p"))
        chain.append(graph.add("buffersink"))
        for one, other in pairwise(chain):
            one.link_to(other)
        graph.configure()
        return graph


class _SoundTrack:
    """The sound of ``[start, end)`` as one unbroken run of samples: gaps become silence, overlaps are dropped."""

    def __init__(self, container: InputContainer, stream: AudioStream, zero: float, start: float, end: float) -> None:
        self.zero, self.start = zero, start
        self.stream = stream
        self.layout = "mono" if self.stream.codec_context.channels == 1 else "stereo"
        self.total = round((end - start) * _SAMPLE_RATE)
        self.written = 0
        self._pieces = self._place_samples(container)
        self._waiting: tuple[int, NDArray[np.float32]] | None = None

    def until(self, time: float) -> Iterator[Any]:
        """Frames of sound up to ``time`` seconds of the source."""
        wanted = min(self.total, round((time - self.start) * _SAMPLE_RATE))
        while self.written < wanted:
            piece = self._waiting or next(self._pieces, None)
            self._waiting = None
            if piece is None or piece[0] > self.written:
                if piece is not None and piece[0] >= wanted:
                    self._waiting = piece
                stop = wanted if piece is None else min(piece[0], wanted)
                yield self._frame(np.zeros((self._channels, stop - self.written), np.float32))
                if piece is None or self._waiting is not None:
                    continue
            place, samples = piece
            samples = samples[:, max(0, self.written - place) : self.total - place]
            if samples.shape[1]:
                yield self._frame(samples)

    @property
    def _channels(self) -> int:
        return 1 if self.layout == "mono" else 2

    def _frame(self, samples: NDArray[np.float32]) -> Any:
        frame = libav().AudioFrame.from_ndarray(np.ascontiguousarray(samples), "fltp", self.layout)
        frame.sample_rate, frame.pts, frame.time_base = _SAMPLE_RATE, self.written, Fraction(1, _SAMPLE_RATE)
        self.written += samples.shape[1]
        return frame

    def _place_samples(self, container: InputContainer) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Samples and where in the clip they begin; the place is negative for sound that was on before it."""
        av = libav()
        base = self.stream.time_base or Fraction(1, _SAMPLE_RATE)
        if self.start > 0:
            with suppress(av.FFmpegError):  # a container that cannot seek is read from its beginning
                container.seek(int((self.start + self.zero - 0.5) / base), stream=self.stream, backward=True)
        resampler = av.AudioResampler(format="fltp", layout=self.layout, rate=_SAMPLE_RATE)
        try:
            for packet in packets(container, [self.stream]):
                try:
                    heard = [f for f in self.stream.decode(packet) if f.pts is not None]
                except av.FFmpegError:
                    continue
                for frame in heard:
                    for even in resampler.resample(frame):
                        seconds = float(even.pts * even.time_base) - self.zero - self.start
                        if seconds * _SAMPLE_RATE >= self.total:
                            return
                        samples = np.asarray(even.to_ndarray(), np.float32)
                        if (place := round(seconds * _SAMPLE_RATE)) + samples.shape[1] > 0:
                            yield place, samples
        except av.FFmpegError:
            return  # a broken tail: silence from here on
