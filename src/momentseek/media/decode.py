"""Frames of a video by the clock of the file (at a steady rate, far apart, or one as a thumbnail), and its sound."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.media.container import FilePath, acceleration, has_pictures, libav, open_media, packets, sound_stream
from momentseek.media.pixels import FrameConverter, Pixels
from momentseek.media.probe import MAX_DURATION_SECONDS, container_start
from momentseek.media.quick_sampling import CODECS, QuickReader, QuickSamplingError, Ticks
from momentseek.media.reader import MAX_GAP_SECONDS, ROUNDING_SECONDS, Damage, Picture, Reader

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext


Sampling = Literal["exact", "quick"]
"""Whether every picture is decoded, or only what is cheap and near the wanted times (`media.quick_sampling`)."""

SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)
SAMPLING_VARIABLE = "MOMENTSEEK_SAMPLING"


def default_sampling() -> Sampling:
    """The sampling that ``add`` uses if none is named: what the environment says, else exact."""
    named = os.environ.get(SAMPLING_VARIABLE, "").strip().lower() or "exact"
    for sampling in SAMPLINGS:
        if named == sampling:
            return sampling
    raise MomentseekError(f"{SAMPLING_VARIABLE} is {named!r}; set it to {' or '.join(SAMPLINGS)}, or unset it")


OnPicture = Callable[[float, Pixels], None]

SMALL_PICTURES_PER_SECOND = 30.0
SMALL_PICTURE_WIDTH = 64


@dataclass(frozen=True)
class Frame:
    """A frame of a video, shown at ``time`` (seconds): RGB, upright, (height, width, 3)."""

    time: float
    pixels: Pixels


@dataclass(frozen=True)
class FrameSettings:
    """Which frames of a video are decoded: those shown at ticks ``(k + phase) / rate``, and how."""

    rate: float
    """Frames per second of video."""
    phase: float = 0.5
    start: float = 0.0
    """Only ticks in ``[start, end)`` are kept: the same ticks and pixels as in a whole run."""
    end: float | None = None
    short_side: int | None = None
    """Pixels of the shorter side to which larger pictures are shrunk; smaller ones are never enlarged."""
    sampling: Sampling = "exact"
    """With ``quick`` a tick gets a picture near it that is cheaper to decode, and ``on_picture`` sees fewer."""
    threads: int | None = None
    """Threads that decode; None for as many as help one file."""
    hardware: str | None = None
    """The kind of device that decodes; None for the processor."""

    def __post_init__(self) -> None:
        if not self.rate > 0 or not 0 <= self.phase < 1:
            asked = f"frames at rate {self.rate} and phase {self.phase}"
            raise MomentseekError(f"{asked}: need rate > 0 and 0 <= phase < 1")

    def time(self, tick: int) -> float:
        """The time of a tick, in seconds since the container's start."""
        return (tick + self.phase) / self.rate

    @property
    def until(self) -> float:
        """Where the ticks end; infinite if they go on to the end of the video."""
        return math.inf if self.end is None else self.end


def frames(path: FilePath, rate: float, *, on_picture: OnPicture | None = None, **settings: Any) -> Frames:
    """The frames of a video at a steady rate; ``settings`` are those of `FrameSettings`.

    The frame at a tick is the last whose time stamp is not later, whatever the frame rate or its changes. The last,
    shorter clip gives the last frame, so a video of T seconds gives ``ceil(T * rate)`` frames, at least one.
    ``on_picture(time, small)`` is called with up to 30 frames a second, 64 pixels wide (as stored: not turned), whether
    or not a tick falls on them. ``.damage`` says afterwards what was unreadable.
    """
    return Frames(path, FrameSettings(rate, **settings), on_picture)


class FrameIterator(Iterator[Frame]):
    """An iterator of frames that can be asked, once it has ended, how far it came and what was damaged."""

    def __init__(self) -> None:
        self.duration: float | None = None
        """Where the last picture ends; known when a run to the end of the video has finished."""
        self.damage: Damage | None = None
        self._generator = self._run()

    def __next__(self) -> Frame:
        return next(self._generator)

    def close(self) -> None:
        """Stop before the end, and let go of the file."""
        self._generator.close()

    def _run(self) -> Generator[Frame]:
        raise NotImplementedError


class Frames(FrameIterator):
    """Frames that this process decodes."""

    def __init__(self, path: FilePath, settings: FrameSettings, on_picture: OnPicture | None = None) -> None:
        super().__init__()
        self.path, self.settings = path, settings
        self.sampling = settings.sampling
        """How it was decoded in the end: exactly, if the file is too odd for quick sampling."""
        self._small_pictures = _SmallPictures(on_picture, settings.start, settings.until)
        self._tick = first_tick(settings.start, settings.rate, settings.phase)

    def _run(self) -> Generator[Frame]:
        hardware = self.settings.hardware
        device = None if hardware is None else acceleration(hardware)
        if self.sampling == "quick":
            try:
                with open_media(self.path, device) as container:
                    ticks = Ticks(self.settings.rate, self.settings.phase)
                    yield from self._read(QuickReader(container, self.path, ticks, self.settings.short_side))
                return
            except QuickSamplingError:
                self.sampling = "exact"
        with open_media(self.path, device) as container:
            yield from self._read(Reader(container, self.path, self.settings.threads))

    def _read(self, reader: Reader) -> Generator[Frame]:
        at, until = self.settings.time, self.settings.until
        converter = FrameConverter(reader.aspect, short_side=self.settings.short_side)
        shown: Picture | None = None
        pixels: Pixels | None = None
        try:
            for picture in reader.pictures(at(self._tick) if self._tick or self.settings.start > 0 else 0.0):
                while shown and reader.due(at(self._tick)) + ROUNDING_SECONDS < picture.time and at(self._tick) < until:
                    pixels = converter.pixels_of(shown.frame) if pixels is None else pixels
                    yield Frame(at(self._tick), pixels)
                    self._tick += 1
                if at(self._tick) >= until and picture.time >= until:
                    return
                if shown is None or picture.frame is not shown.frame:
                    pixels = None
                shown = picture
                self._small_pictures.show(picture, reader.aspect)
            if shown is None:
                raise reader.no_picture()
            self.duration = shown.time + shown.duration if reader.end is None else reader.end
            while self._tick / self.settings.rate < self.duration - ROUNDING_SECONDS and at(self._tick) < until:
                pixels = converter.pixels_of(shown.frame) if pixels is None else pixels
                yield Frame(at(self._tick), pixels)
                self._tick += 1
        finally:
            self.damage = reader.damage(self.duration)


def first_tick(start: float, rate: float, phase: float) -> int:
    """The first k >= 0 with ``(k + phase) / rate >= start``, by that very expression.

    So no two windows share a tick or lose one between them.

    >>> first_tick(0.0, 2 / 3, 0.5), first_tick(0.75, 2 / 3, 0.5), first_tick(0.76, 2 / 3, 0.5)
    (0, 0, 1)
    """
    k = max(0, math.floor(start * rate - phase) - 1)
    while (k + phase) / rate < start:
        k += 1
    return k


class _SmallPictures:
    """Passes small pictures on, at most 30 a second."""

    def __init__(self, on_picture: OnPicture | None, start: float, end: float) -> None:
        self.on_picture, self.start, self.end = on_picture, start, end
        self._converter: FrameConverter | None = None
        self._last: tuple[Picture, Pixels] | None = None
        self._due = -math.inf

    def show(self, picture: Picture, aspect: Fraction | None) -> None:
        time = picture.time
        if self.on_picture is None or not self.start <= time < self.end or time < self._due - ROUNDING_SECONDS:
            return
        interval = 1 / SMALL_PICTURES_PER_SECOND
        self._due = max(self._due + interval, time) if self._due > -math.inf else time + interval
        if self._last is None or self._last[0].frame is not picture.frame:
            self._converter = self._converter or FrameConverter(aspect, width=SMALL_PICTURE_WIDTH, roughly=True)
            self._last = picture, self._converter.pixels_of(picture.frame, turned=False)
        self.on_picture(time, self._last[1])


MAX_SHORT_SIDE = 1080
"""Pixels of the shorter side to which larger frames are made smaller."""

Slot = tuple[float, float]
"""Start and end of a stretch of a video, in seconds."""


def sparse_frames(path: FilePath, slots: Sequence[Slot], short_side: int = MAX_SHORT_SIDE) -> Iterator[Frame]:
    """One frame of each of some stretches, which follow each other: one near the middle that is quick to get.

    That is a key frame in the middle half of the stretch, or else the last reference picture up to its middle: what no
    other picture refers to is not decoded. Stretches after the last picture give nothing.
    """
    with open_media(path) as container:
        reader = Reader(container, path)
        if reader.stream.codec_context.name in CODECS:
            reader.stream.codec_context.skip_frame = "NONREF"
        converter = FrameConverter(reader.aspect, short_side=short_side)
        base = reader.stream.time_base or Fraction(0)
        entries = [entry for entry in reader.stream.index_entries if entry.is_keyframe and base]
        keys = sorted(float(entry.timestamp * base) - reader.start for entry in entries)
        shown: Picture | None = None
        coming: Picture | None = None
        pictures: Iterator[Picture] | None = None
        for slot in slots:
            at = _target(slot, keys)
            if pictures is None or (shown and any(shown.time + ROUNDING_SECONDS < key <= at for key in keys)):
                pictures, shown, coming = reader.pictures(at), None, None
            while coming is None or coming.time <= at + ROUNDING_SECONDS:
                shown = coming or shown
                coming = next(pictures, None)
                if coming is None:
                    break
            if shown is None and coming is not None and coming.time < slot[1]:
                shown = coming
            if shown is None:
                raise reader.no_picture(at)
            if coming is None and shown.time + shown.duration <= slot[0] + ROUNDING_SECONDS:
                return
            yield Frame(at, converter.pixels_of(shown.frame))


def _target(slot: Slot, keys: Sequence[float]) -> float:
    """The time of the frame to take from a stretch.

    >>> _target((0.0, 4.0), [0.0, 2.5, 9.0]), _target((4.0, 8.0), [0.0, 2.5, 9.0])
    (2.5, 6.0)
    """
    start, end = slot
    middle = (start + end) / 2
    near = [key for key in keys if abs(key - middle) <= (end - start) / 4]
    return min(near, key=lambda key: abs(key - middle), default=middle)


def thumbnail(path: FilePath, time: float, width: int = 320, quality: int = 75) -> bytes:
    """The frame being shown at ``time``, at most ``width`` pixels wide, as the bytes of a WebP file.

    A time before the beginning or past the end gives the first or the last frame.
    """
    with open_media(path) as container:
        if not has_pictures(container):
            return webp(sound_picture(width), quality)
        reader = Reader(container, path)
        if reader.expected is not None:
            time = min(time, reader.expected)
        shown: Picture | None = None
        for picture in reader.pictures(max(0.0, time)):
            if shown is not None and picture.time > time + ROUNDING_SECONDS:
                break
            shown = picture
        if shown is None:
            raise reader.no_picture(time)
        return webp(FrameConverter(reader.aspect, width=width).pixels_of(shown.frame), quality)


def sound_picture(width: int) -> Pixels:
    """A drawing for a recording of sound, which has no pictures: bars on a dark ground."""
    height, bars = max(1, width * 9 // 16), 24
    across = np.arange(width) * bars // width
    tall = (0.15 + 0.55 * np.abs(np.sin(1.7 * across) * np.sin(0.31 * across + 0.4))) * height / 2
    inside = (np.arange(width) * bars % width) / width < 0.6
    lit = inside & (np.abs(np.arange(height)[:, None] - height / 2) < tall)
    return np.where(lit[..., None], (99, 207, 196), (20, 23, 22)).astype(np.uint8)


def webp(pixels: Pixels, quality: int = 75) -> bytes:
    """RGB pixels as the bytes of a WebP file."""
    av = libav()
    height, width, _ = pixels.shape
    encoder: VideoCodecContext = av.CodecContext.create("libwebp", "w")
    encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
    encoder.time_base = Fraction(1)
    encoder.options = {"quality": str(min(100, max(0, quality)))}
    frame = av.VideoFrame.from_ndarray(pixels, "rgb24").reformat(format="yuv420p")
    frame.pts = 0
    return b"".join(bytes(packet) for packet in (*encoder.encode(frame), *encoder.encode(None)))


SAMPLE_RATE = 16_000
"""Samples a second of what ``sound`` gives."""

Samples = NDArray[np.float32]


def sound(path: FilePath) -> Iterator[Samples]:
    """The samples of a file's first audio stream, in blocks.

    A stream that begins late, or has holes, is filled with silence, so that the n-th sample is always at
    ``n / SAMPLE_RATE`` seconds of the video. What cannot be decoded is silence too. MediaError if there is no sound.
    Whoever wants the end of a file skips its beginning: decoding sound is quick, and after a jump into the middle
    resampled samples differ in their last digits.
    """
    av = libav()
    with open_media(path) as container:
        stream = sound_stream(container)
        if stream is None:
            raise MediaError(f"{path}: has no sound that can be decoded; convert it, or add subtitles")
        videos = container.streams.video
        zero = container_start(container, videos[0]) if videos else (container.start_time or 0) / 1e6
        resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
        given = 0
        for packet in packets(container, [stream]):
            try:
                decoded: list[Any] = packet.decode()
            except (av.FFmpegError, ValueError):
                continue
            for frame in decoded:
                if frame.time is None:
                    continue
                begin = round((frame.time - zero) * SAMPLE_RATE)
                frame.pts = None  # the resampler would refuse stamps that go back
                for piece in resampler.resample(frame):
                    samples = piece.to_ndarray().reshape(-1)
                    at, begin = begin, begin + len(samples)
                    if at - given > MAX_GAP_SECONDS * SAMPLE_RATE or at > MAX_DURATION_SECONDS * SAMPLE_RATE:
                        return
                    if abs(at - given) < SAMPLE_RATE // 20:  # stamps are rounded: no hole
                        at = given
                    if at > given:
                        yield np.zeros(at - given, np.float32)
                        given = at
                    fresh = samples[given - at :]
                    if len(fresh):
                        yield np.nan_to_num(fresh.astype(np.float32), posinf=0.0, neginf=0.0)
                        given += len(fresh)
