"""Decode frames of a video (at a constant rate, far apart, or one as a thumbnail) and its sound."""

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
"""``exact`` decodes every picture, ``quick`` only cheap ones near the wanted times (`media.quick_sampling`)."""

SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)
SAMPLING_VARIABLE = "MOMENTSEEK_SAMPLING"


def default_sampling() -> Sampling:
    """Return the default sampling of ``add``: the environment's, else exact."""
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
    """Which frames of a video to decode (those shown at ticks ``(k + phase) / rate``), and how."""

    rate: float
    """Frames per second of video."""
    phase: float = 0.5
    start: float = 0.0
    """Only ticks in ``[start, end)`` are decoded; they give the same pixels as in a run over the whole video."""
    end: float | None = None
    short_side: int | None = None
    """Maximum of the shorter side in pixels; larger frames are shrunk, smaller ones never enlarged."""
    sampling: Sampling = "exact"
    """With ``quick`` a tick takes a nearby picture that is cheap to decode, and ``on_picture`` gets fewer pictures."""
    threads: int | None = None
    """Number of decoding threads; None for the default."""
    hardware: str | None = None
    """Kind of device that decodes; None for the CPU."""

    def __post_init__(self) -> None:
        if not self.rate > 0 or not 0 <= self.phase < 1:
            asked = f"frames at rate {self.rate} and phase {self.phase}"
            raise MomentseekError(f"{asked}: need rate > 0 and 0 <= phase < 1")

    def time(self, tick: int) -> float:
        """Return the time of a tick, in seconds since the container's start."""
        return (tick + self.phase) / self.rate

    @property
    def until(self) -> float:
        """The end of the ticks; infinite if they continue to the end of the video."""
        return math.inf if self.end is None else self.end


def frames(path: FilePath, rate: float, *, on_picture: OnPicture | None = None, **settings: Any) -> Frames:
    """Decode the frames of a video at a constant rate; ``settings`` are those of `FrameSettings`.

    The frame at a tick is the last one whose time stamp is not later, whatever the frame rate. The last, shorter clip
    gives the last frame, so a video of T seconds gives ``ceil(T * rate)`` frames, at least one.
    ``on_picture(time, small)`` is called with up to 30 frames per second, 64 pixels wide (as stored, not rotated), on
    and between ticks. Afterwards ``.damage`` describes what was unreadable.
    """
    return Frames(path, FrameSettings(rate, **settings), on_picture)


class FrameIterator(Iterator[Frame]):
    """An iterator of frames that knows, after its end, how far it read and what was damaged."""

    def __init__(self) -> None:
        self.duration: float | None = None
        """End of the last picture; known after a run to the end of the video."""
        self.damage: Damage | None = None
        self._generator = self._run()

    def __next__(self) -> Frame:
        return next(self._generator)

    def close(self) -> None:
        """Stop before the end, and close the file."""
        self._generator.close()

    def _run(self) -> Generator[Frame]:
        raise NotImplementedError


class Frames(FrameIterator):
    """Frames that this process decodes."""

    def __init__(self, path: FilePath, settings: FrameSettings, on_picture: OnPicture | None = None) -> None:
        super().__init__()
        self.path, self.settings = path, settings
        self.sampling = settings.sampling
        """The sampling that was used: ``exact`` if quick sampling failed on the file."""
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
    """Return the first k >= 0 with ``(k + phase) / rate >= start``.

    It evaluates exactly this expression, so that adjacent windows neither share nor lose a tick.

    >>> first_tick(0.0, 2 / 3, 0.5), first_tick(0.75, 2 / 3, 0.5), first_tick(0.76, 2 / 3, 0.5)
    (0, 0, 1)
    """
    k = max(0, math.floor(start * rate - phase) - 1)
    while (k + phase) / rate < start:
        k += 1
    return k


class _SmallPictures:
    """Passes small pictures to a callback, at most 30 per second."""

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
"""Maximum of the shorter side in pixels; larger frames are shrunk."""

Slot = tuple[float, float]
"""Start and end of an interval of a video, in seconds."""


def sparse_frames(path: FilePath, slots: Sequence[Slot], short_side: int = MAX_SHORT_SIDE) -> Iterator[Frame]:
    """Yield one frame for each of several consecutive intervals: one near the middle that is cheap to decode.

    This is a key frame in the middle half of the interval, or else the last reference picture up to its middle;
    pictures that no other picture refers to are not decoded. Intervals after the last picture give no frame.
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
    """Return the time of the frame to take from an interval.

    >>> _target((0.0, 4.0), [0.0, 2.5, 9.0]), _target((4.0, 8.0), [0.0, 2.5, 9.0])
    (2.5, 6.0)
    """
    start, end = slot
    middle = (start + end) / 2
    near = [key for key in keys if abs(key - middle) <= (end - start) / 4]
    return min(near, key=lambda key: abs(key - middle), default=middle)


def thumbnail(path: FilePath, time: float, width: int = 320, quality: int = 75) -> bytes:
    """Return the frame shown at ``time``, at most ``width`` pixels wide, as the bytes of a WebP file.

    A time before the start or after the end gives the first or the last frame.
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
    """Return a placeholder picture for an audio recording: bars on a dark background."""
    height, bars = max(1, width * 9 // 16), 24
    across = np.arange(width) * bars // width
    tall = (0.15 + 0.55 * np.abs(np.sin(1.7 * across) * np.sin(0.31 * across + 0.4))) * height / 2
    inside = (np.arange(width) * bars % width) / width < 0.6
    lit = inside & (np.abs(np.arange(height)[:, None] - height / 2) < tall)
    return np.where(lit[..., None], (99, 207, 196), (20, 23, 22)).astype(np.uint8)


def webp(pixels: Pixels, quality: int = 75) -> bytes:
    """Encode RGB pixels as WebP."""
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
"""Samples per second that ``sound`` yields."""

Samples = NDArray[np.float32]


def sound(path: FilePath) -> Iterator[Samples]:
    """Yield the samples of a file's first audio stream, in blocks.

    A late start, gaps and undecodable parts are filled with silence, so that the n-th sample is always at
    ``n / SAMPLE_RATE`` seconds of the video. Raises MediaError if there is no sound. There is no seeking, because
    resampled samples would differ in their last digits; to get the end of a file, skip its beginning.
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
                frame.pts = None  # the resampler refuses decreasing time stamps
                for piece in resampler.resample(frame):
                    samples = piece.to_ndarray().reshape(-1)
                    at, begin = begin, begin + len(samples)
                    if at - given > MAX_GAP_SECONDS * SAMPLE_RATE or at > MAX_DURATION_SECONDS * SAMPLE_RATE:
                        return
                    if abs(at - given) < SAMPLE_RATE // 20:  # time stamps are rounded; this is no gap
                        at = given
                    if at > given:
                        yield np.zeros(at - given, np.float32)
                        given = at
                    fresh = samples[given - at :]
                    if len(fresh):
                        yield np.nan_to_num(fresh.astype(np.float32), posinf=0.0, neginf=0.0)
                        given += len(fresh)
