"""Read only the pictures of a video that are cheap to decode: key frames and reference pictures near wanted times.

A file is a sequence of groups of pictures: a key frame, which is independent, and pictures stored as differences to
others. Pictures that no other picture refers to are never decoded. B-frames are skipped altogether if a trial shows
that the file's other pictures do not need them. Of the remaining pictures, a group is decoded

* only at its key frame, if the wanted times have key frames near them and no cut can lie in the group, or if the next
  key frame shows the same and the packets in between are small, each and together;
* else up to the last wanted time in it;
* completely, if the pictures decoded so far and the next key frame differ so much that a cut may lie between them.

Anything unusual in the file (no time stamps, a broken packet, a key frame without a picture) raises
`QuickSamplingError`, and the caller decodes the rest of the file exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from momentseek.media.container import MAX_PIXELS, FilePath, check_size, libav
from momentseek.media.pixels import FrameConverter, Pixels
from momentseek.media.probe import MAX_DURATION_SECONDS
from momentseek.media.reader import MAX_GAP_SECONDS, ROUNDING_SECONDS, Picture, Reader
from momentseek.media.shots import Stretch, cells, distance, shares

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream


CODECS = ("h264", "hevc", "mpeg1video", "mpeg2video", "mpeg4", "vp8", "vp9", "av1", "libdav1d", "mjpeg", "prores")
"""Codecs whose key frames are independent and whose packets have presentation times."""
NEAR_SHARE = 0.25
"""Maximum distance of a key frame that replaces a wanted time, as a share of the interval between wanted times."""
MAX_STILL_DISTANCE = 0.06
"""If neighbouring key frames are closer than this (`shots.distance`), they serve all wanted times in between."""
MAX_STILL_SHARE = 0.5
"""A packet larger than this share of the key frame's size shows something new, which may disappear again; packets that
together are larger, per second, show movement."""
MAX_ALIKE_DISTANCE = 0.12
"""No cut lies between two pictures closer than this (`shots.distance`); cuts have 0.17 and more."""
TRIAL_PACKETS = 90
"""Number of a group's packets in the trial of whether other pictures need the file's B-frames."""
GROUPS_BETWEEN_TRIALS = 16
"""Number of groups after which the trial is repeated."""
MIN_TRIAL_PICTURES = 4
MAX_TRIAL_DIFFERENCE = 2
"""Maximum brightness difference (of 255) between small pictures decoded with and without B-frames."""
SMOOTHING_RATIO = 2.0
"""Pictures at least this many times larger than requested skip the deblocking filter, which is then invisible."""
HOLD_SECONDS = 0.125
"""Seconds between repetitions of a picture over a part that is not decoded."""
LOOK_WIDTH = 64
MAX_GROUP_PACKETS = 1500
MAX_GROUP_BYTES = 2**26


class QuickSamplingError(Exception):
    """Quick sampling failed: the rest of the file must be decoded exactly."""


@dataclass(frozen=True)
class Ticks:
    """The wanted times ``(k + phase) / rate``, in seconds."""

    rate: float
    phase: float

    def before(self, end: float, *, last: bool = False) -> float | None:
        """Return the last wanted time before ``end``; in the ``last`` group, that of the clip that has begun by then.

        >>> Ticks(0.5, 0.5).before(5.0), Ticks(0.5, 0.5).before(4.5), Ticks(0.5, 0.5).before(4.5, last=True)
        (3.0, 3.0, 5.0)
        """
        k = math.ceil(end * self.rate - (0.0 if last else self.phase) - ROUNDING_SECONDS) - 1
        return None if k < 0 else (k + self.phase) / self.rate


@dataclass(frozen=True)
class Group:
    """Packets of a group of pictures in decoding order, or of a part of a group that is too long to hold at once."""

    packets: list[Packet[VideoStream]]
    following: Packet[VideoStream] | None
    """The key frame of the next group; None if the video ends or the group continues."""
    begins: bool
    ends: bool


class QuickReader(Reader):
    """Reads the cheap pictures of an open video, in order."""

    def __init__(self, container: InputContainer, path: FilePath, ticks: Ticks, short_side: int | None = None) -> None:
        super().__init__(container, path, threads=1)  # a group is too short for more threads, which take a sixth longer
        self.ticks = ticks
        self.keys: list[float] = []
        """Times of the key frames so far and of the next one."""
        self._changing: set[float] = set()
        """Times of the key frames whose groups may contain a cut; key frames are often placed at cuts."""
        context = self.stream.codec_context
        if self._is_avi or context.name not in CODECS or self.stream.time_base is None:
            raise QuickSamplingError
        context.skip_frame = "NONREF"
        if short_side is not None and min(context.width, context.height) >= SMOOTHING_RATIO * short_side:
            context.options = {"max_pixels": str(MAX_PIXELS), "skip_loop_filter": "all"}
        self._near = NEAR_SHARE / ticks.rate
        self._converter = FrameConverter(self.aspect, width=LOOK_WIDTH, roughly=True)
        self._touched = False
        self._groups_decoded = 0

    def due(self, tick: float) -> float:
        """Return the time of the picture for a wanted time: that of a near key frame of the same shot, else its own."""
        at = bisect_right(self.keys, tick)
        if not self._changing.isdisjoint(self.keys[max(0, at - 1) : at]):
            return tick
        nearest = min(self.keys[max(0, at - 1) : at + 1], key=lambda key: abs(key - tick), default=math.inf)
        return nearest if abs(nearest - tick) <= self._near else tick

    def pictures(self, since: float = 0.0) -> Iterator[Picture]:
        """Yield the pictures from ``since`` (or earlier) on; where nothing is decoded, repeat the last one."""
        shown: Picture | None = None
        following: Picture | None = None
        for group in self._items_since(since, self._groups, lambda group: self._stamp(group.packets[0])):
            if group.begins:
                shown = following or self._key_picture(group.packets[0])
                if not self.keys:
                    self.keys.append(shown.time)
                yield shown
            assert shown is not None
            following = None if group.following is None else self._key_picture(group.following)
            if following is not None:
                if not 0 < following.time - shown.time <= MAX_GAP_SECONDS or following.time > MAX_DURATION_SECONDS:
                    raise QuickSamplingError
                if self._unlike(shown, following) >= MAX_ALIKE_DISTANCE:
                    self._changing.add(self.keys[-1])
                self.keys.append(following.time)
            for picture in self._rest(group, shown, following):
                yield (shown := picture)

    def _rest(self, group: Group, shown: Picture, following: Picture | None) -> Iterator[Picture]:
        """Yield the decoded pictures of a group after its key frame."""
        stamps = [self._stamp(packet) for packet in group.packets]
        if following is None and group.ends:
            at = int(np.argmax(stamps))
            self.end = stamps[at] + self._length(group.packets[at])
        end = self.end if following is None else following.time
        count = len(group.packets)
        if group.begins and group.ends:
            assert end is not None
            count = self._count_packets(group, stamps, end, following, shown)
        seen: dict[float, Pixels] | None = {} if count and self._trial_is_due(group) else None
        tried = max(stamps[:TRIAL_PACKETS])
        for picture in self._decode(group.packets[:count]) if count else ():
            if seen is not None and picture.time <= tried:
                seen[picture.time] = self._look(picture)
            if picture.time > shown.time:
                yield (shown := picture)
        if not group.ends:
            return
        assert end is not None
        rest: Sequence[Packet[VideoStream]] = ()
        if count < len(stamps) and following is not None and self._unlike(shown, following) >= MAX_ALIKE_DISTANCE:
            rest = group.packets[count:]
        for picture in chain(self._decode(rest), self._drain()):
            if picture.time > shown.time:
                yield (shown := picture)
        if seen is not None:
            self._try_without_b_frames(group.packets[: min(count, TRIAL_PACKETS)], seen)
        for i in range(1, math.ceil((end - shown.time) / HOLD_SECONDS) - 1):
            yield replace(shown, time=shown.time + i * HOLD_SECONDS)

    def _count_packets(
        self, group: Group, stamps: Sequence[float], end: float, following: Picture | None, key: Picture
    ) -> int:
        """Return the number of packets to decode for the wanted times in a group; 0 if its key frame suffices."""
        sizes = [packet.size for packet in group.packets]
        small = max(sizes[1:], default=0) <= MAX_STILL_SHARE * sizes[0]
        small = small and sum(sizes[1:]) <= MAX_STILL_SHARE * sizes[0] * (end - key.time)
        if small and following is not None and self._unlike(key, following) < MAX_STILL_DISTANCE:
            return 0  # nothing important changes
        tick = self.ticks.before(end, last=following is None)
        while tick is not None and tick > key.time and self.due(tick) != tick:
            tick = self.ticks.before(tick - ROUNDING_SECONDS)
        if tick is None or tick <= key.time:
            return 0
        needed = [i for i, stamp in enumerate(stamps) if stamp <= tick + ROUNDING_SECONDS]
        return needed[-1] + 1 if needed and needed[-1] else 0

    def _trial_is_due(self, group: Group) -> bool:
        """Whether to run `_try_without_b_frames` on a group; it pays off only if more groups follow."""
        if not (group.begins and group.following and self._has_b_frames and self.stream.codec_context.name == "h264"):
            return False
        self._groups_decoded += 1
        if self._groups_decoded % GROUPS_BETWEEN_TRIALS != 1:
            return False
        self.stream.codec_context.skip_frame = "NONREF"
        return True

    def _try_without_b_frames(self, some: Sequence[Packet[VideoStream]], seen: dict[float, Pixels]) -> None:
        """Check with the first packets of a group whether its pictures look the same without B-frames.

        Many encoders let P-frames refer to B-frames; skipping those would cause artefacts.
        """
        self.stream.codec_context.skip_frame = "BIDIR"
        alike = 0
        for picture in chain(self._decode(some), self._drain()):
            if picture.time not in seen:
                continue
            if np.abs(seen[picture.time].astype(np.int16) - self._look(picture)).max() > MAX_TRIAL_DIFFERENCE:
                alike = 0
                self._reset()
                break
            alike += 1
        if alike < MIN_TRIAL_PICTURES:
            self.stream.codec_context.skip_frame = "NONREF"

    def _look(self, picture: Picture) -> Pixels:
        return self._converter.pixels_of(picture.frame, turned=False)

    def _unlike(self, one: Picture, other: Picture) -> float:
        """Return the distance between two pictures, from 0 to 1."""
        small = [self._look(one), self._look(other)]
        if small[0].shape != small[1].shape:
            return 1.0
        grids, levels = np.stack([cells(s) for s in small]), np.stack([shares(s) for s in small])
        stretch = Stretch(np.array([0.0, 1.0]), grids, levels)
        return float(distance(stretch, np.array([0]), np.array([1]))[0])

    def _seek(self, time: float) -> bool:
        if not super()._seek(time):
            raise QuickSamplingError
        return True

    def _groups(self) -> Iterator[Group]:
        held: list[Packet[VideoStream]] = []
        begins, size = True, 0
        for packet in self._packets():
            if not packet.size:
                continue
            if packet.is_keyframe and held:
                yield Group(held, packet, begins, True)
                held, begins, size = [], True, 0
            elif len(held) >= MAX_GROUP_PACKETS or size > MAX_GROUP_BYTES:
                yield Group(held, None, begins, False)
                held, begins, size = [], False, 0
            if held or packet.is_keyframe or not begins:  # what precedes the first key frame cannot be decoded
                held.append(packet)
                size += packet.size
            if self.skipped or self.reason:
                raise QuickSamplingError
        if self.skipped or self.reason or not held:
            raise QuickSamplingError
        yield Group(held, None, begins, True)

    def _key_picture(self, packet: Packet[VideoStream]) -> Picture:
        """Decode a key frame by itself."""
        found = [*self._decode([packet]), *self._drain()]
        if len(found) != 1 or abs(found[0].time - self._stamp(packet)) > ROUNDING_SECONDS:
            raise QuickSamplingError
        return found[0]

    def _decode(self, some: Sequence[Packet[VideoStream] | None]) -> Iterator[Picture]:
        av = libav()
        context = self.stream.codec_context
        for packet in some:
            self._touched = True
            try:
                frames = context.decode(packet)
            except (av.FFmpegError, EOFError):
                raise QuickSamplingError from None
            for frame in frames:
                check_size(frame.width, frame.height, self.path)
                if frame.pts is None or self.stream.time_base is None:
                    raise QuickSamplingError
                time = float(frame.pts * self.stream.time_base) - self.start
                if frame.is_corrupt and time >= (self.keys[-2:] or [-math.inf])[0]:
                    raise QuickSamplingError
                yield Picture(time, 1 / float(self.rate), frame)

    def _drain(self) -> Iterator[Picture]:
        """Yield the pictures that the decoder still holds, and empty it."""
        if self._touched:
            yield from self._decode([None])
            self._reset()

    def _reset(self) -> None:
        """Discard the pictures that the decoder holds."""
        self.stream.codec_context.flush_buffers()
        self._touched = False

    def _stamp(self, packet: Packet[VideoStream]) -> float:
        if packet.pts is None or packet.time_base is None:
            raise QuickSamplingError
        return float(packet.pts * packet.time_base) - self.start

    def _length(self, packet: Packet[VideoStream]) -> float:
        given = float((packet.duration or 0) * packet.time_base)
        return given if 0 < given <= MAX_GAP_SECONDS else 1 / float(self.rate)
