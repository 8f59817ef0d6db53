"""Read the pictures of an open video in display order, despite damage in the file."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import dropwhile
from typing import TYPE_CHECKING, TypeVar

from momentseek.core.errors import MediaError
from momentseek.media.container import MAX_PIXELS, FilePath, check_size, libav, out_of_memory, packets, video_stream
from momentseek.media.probe import MAX_DURATION_SECONDS, container_start, declared_duration, frame_rate, pixel_aspect

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


T = TypeVar("T")

ROUNDING_SECONDS = 1e-6
"""Rounding of time stamps; too small to be visible."""
MAX_GAP_SECONDS = 3600.0
"""A longer gap between two pictures means that the file's clock is broken."""
_MAX_THREADS = 4
_MAX_RETRIES = 50
_MAX_B_FRAMES = 16  # in a row; H.264 allows no more pictures to be reordered


@dataclass(frozen=True)
class Damage:
    """The unreadable parts of a video.

    >>> print(Damage(readable=12.34, expected=30.0, skipped=3, reason="the file ends early"))
    readable until 12.3 s of 30.0 s (the file ends early); 3 broken places skipped
    >>> print(Damage(readable=30.0, expected=30.0, skipped=1))
    1 broken place skipped
    """

    readable: float
    expected: float | None
    skipped: int = 0
    reason: str | None = None

    def __str__(self) -> str:
        parts = []
        if self.reason is not None:
            whole = "" if self.expected is None else f" of {self.expected:.1f} s"
            parts.append(f"readable until {self.readable:.1f} s{whole} ({self.reason})")
        if self.skipped:
            parts.append(f"{self.skipped} broken place{'s' if self.skipped > 1 else ''} skipped")
        return "; ".join(parts)


@dataclass(frozen=True)
class Picture:
    """A decoded frame with its time, and how long it is shown if nothing follows."""

    time: float
    duration: float
    frame: VideoFrame


class Reader:
    """Reads all pictures of an open video by time stamp; damaged parts are skipped and counted.

    By default up to four ``threads`` decode: more help little, and each takes memory.
    """

    def __init__(self, container: InputContainer, path: FilePath, threads: int | None = None) -> None:
        self.container, self.path = container, path
        self._is_avi = container.format.name == "avi"
        self.stream: VideoStream = video_stream(container, path)
        self.start = container_start(container, self.stream)
        self.rate: Fraction = frame_rate(self.stream)
        self.expected = declared_duration(container, self.stream, self.start)
        self.aspect = pixel_aspect(self.stream)
        self.skipped, self.reached, self.reason, self.out_of_memory = 0, 0.0, "", False
        self.end: float | None = None
        """End of the video's last picture, if known from more than the pictures that were read."""
        context = self.stream.codec_context
        context.options = {"max_pixels": str(MAX_PIXELS)}
        context.thread_type = "AUTO"
        context.thread_count = threads or min(_MAX_THREADS, os.cpu_count() or 1)

    def due(self, tick: float) -> float:
        """Return the time of the picture for a wanted time: the wanted time itself."""
        return tick

    def pictures(self, since: float = 0.0) -> Iterator[Picture]:
        """Yield the pictures from the one shown at ``since`` (or an earlier one) on."""
        return self._items_since(since, self._pictures_in_order, lambda picture: picture.time, self._from_key_frame)

    def _items_since(
        self,
        since: float,
        read: Callable[[], Iterator[T]],
        time_of: Callable[[T], float],
        read_after_seek: Callable[[], Iterator[T]] | None = None,
    ) -> Iterator[T]:
        """Yield what ``read`` gives from ``since`` or earlier on, seeking further back until it is early enough."""
        back = 0.0
        while since > back:
            if not self._seek(since - back):
                if back == 0:  # this container cannot seek; nothing has been read yet
                    since = 0.0
                break
            items = (read_after_seek or read)()
            first = next(items, None)
            if first is not None and time_of(first) <= since + ROUNDING_SECONDS:
                yield first
                yield from items
                return
            back = max(1.0, 4 * back)  # the key frame found lies after the time asked for
        if since > 0:
            self._rewind()
        yield from read()

    def no_picture(self, time: float | None = None) -> MediaError:
        """Return the error for a video without any decodable picture (at a time), for lack of memory or otherwise."""
        if self.out_of_memory:
            return out_of_memory(self.path)
        what = "none of its pictures can be decoded" if time is None else f"no picture can be decoded at {time:.1f} s"
        return MediaError(f"{self.path}: {what}; get another copy")

    def damage(self, duration: float | None) -> Damage | None:
        """Return the damage so far, or None; pass ``duration`` when the end was reached."""
        reason = self.reason or None
        reached = max(self.reached, duration or 0.0)
        if duration is not None and reason is None and self.expected is not None:
            missing = self.expected - reached
            if missing > max(0.5, 0.01 * self.expected, 3 / float(self.rate)):
                reason = "the file ends early"
        if reason is None and not self.skipped:
            return None
        return Damage(reached if duration is None else duration, self.expected, self.skipped, reason)

    def _seek(self, time: float) -> bool:
        av = libav()
        base = self.stream.time_base or Fraction(1, 1000)
        try:
            self.container.seek(int((time + self.start) / base), stream=self.stream, backward=True)
        except (av.FFmpegError, OverflowError):
            return False
        return True

    def _rewind(self) -> None:
        av = libav()
        start = int(self.start * 1e6)
        for position in (start - 1_000_000, start):  # AVI cannot seek before its start
            with suppress(av.FFmpegError):
                self.container.seek(position, backward=True)
                return
        raise MediaError(f"{self.path}: cannot be wound back to its beginning; convert the video")

    def _from_key_frame(self) -> Iterator[Picture]:
        """Yield the pictures after a seek; those before the first key frame may lack their references."""
        ordered = dropwhile(lambda picture: not picture.frame.key_frame, self._pictures_in_order())
        if self._is_avi and self._has_b_frames:
            next(ordered, None)  # its time stamp may be that of a lost B-frame before it
        return ordered

    def _pictures_in_order(self) -> Iterator[Picture]:
        last = -math.inf
        for picture in self._sort_stamps(self._stamp_frames()):
            if picture.time <= last:
                self.skipped += 1
                continue
            if picture.time > MAX_DURATION_SECONDS or (picture.time > last + MAX_GAP_SECONDS and last > -math.inf):
                self.reason = f"its clock jumps to {picture.time:.0f} s"
                return
            last = picture.time
            yield picture

    def _sort_stamps(self, pictures: Iterator[Picture]) -> Iterator[Picture]:
        """Yield the pictures in the same order, with their time stamps sorted.

        A decoder returns pictures in display order. AVI, and files copied from it, store time stamps in decoding order,
        so pictures around B-frames have each other's stamps. Stamps are sorted over as many pictures as B-frames can
        follow each other; for other containers only until that many were in order.
        """
        ahead = _MAX_B_FRAMES if self._has_b_frames and "mp4" not in self.container.format.name else 0
        waiting: deque[Picture] = deque()
        times: list[float] = []
        latest = last = -math.inf
        orderly = 0
        for picture in pictures:
            time = picture.time
            orderly = orderly + 1 if time > latest else -_MAX_B_FRAMES
            if time <= last:
                if ahead or not self._has_b_frames or last - time > _MAX_B_FRAMES * picture.duration:
                    self.skipped += 1
                    continue
                ahead = _MAX_B_FRAMES  # the first B-frames of this video: its stamp is used, the place after is free
                time = last + picture.duration / 2
            elif ahead and orderly > _MAX_B_FRAMES and not self._is_avi:
                ahead = 0
            latest = max(latest, time)
            waiting.append(picture)
            heappush(times, time)
            while len(waiting) > ahead:
                last = heappop(times)
                yield replace(waiting.popleft(), time=last)
        for picture in waiting:
            yield replace(picture, time=heappop(times))

    @property
    def _has_b_frames(self) -> bool:
        return bool(self.stream.codec_context.has_b_frames)

    def _stamp_frames(self) -> Iterator[Picture]:
        latest = -math.inf
        for frame in self._decode_frames():
            check_size(frame.width, frame.height, self.path)
            stamp = frame.pts if frame.pts is not None else frame.dts
            base = frame.time_base or self.stream.time_base
            length = 1 / float(self.rate)
            if stamp is None or base is None:
                time = 0.0 if latest == -math.inf else latest + length
            else:
                time = float(stamp * base) - self.start
            if frame.duration and base is not None and 0 < (given := float(frame.duration * base)) <= MAX_GAP_SECONDS:
                length = given
            latest = max(latest, time)
            yield Picture(time, length, frame)

    def _decode_frames(self) -> Iterator[VideoFrame]:
        av = libav()
        for packet in self._packets():
            try:
                for frame in packet.decode():
                    if frame.is_corrupt:
                        self.skipped += 1
                    else:
                        yield frame
            except (av.FFmpegError, EOFError) as e:
                self.skipped += 1
                self.out_of_memory = self.out_of_memory or isinstance(e, MemoryError)

    def _packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield video packets and the flush at the end; skip an unreadable packet as long as others follow."""
        av = libav()
        streams = [s for s in self.container.streams if s.type in ("video", "audio", "subtitle")]
        for _ in range(_MAX_RETRIES):
            try:
                for packet in packets(self.container, streams):
                    if packet.stream_index == self.stream.index:
                        self.skipped += packet.is_corrupt
                        yield packet  # type: ignore[misc]
                    elif packet.pts is not None:
                        end = float((packet.pts + (packet.duration or 0)) * packet.time_base) - self.start
                        self.reached = max(self.reached, min(end, MAX_DURATION_SECONDS))
                return
            except av.FFmpegError:
                self.skipped += 1
        self.reason = "the rest cannot be read"
