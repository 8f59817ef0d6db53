"""The fast cut: packets are copied as they are, from a key frame on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.errors import MediaError
from momentseek.media.container import libav, opened, packets, sound_stream, video_stream
from momentseek.media.probe import container_start

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream


def copy_packets(source: Path, start: float, end: float, out: Path) -> tuple[float, int]:
    """Copy pictures and sound from the last key frame at or before ``start`` until ``end``; no less, a little more.

    Returns where the clip begins and how many pictures it has.
    """
    av = libav()
    with opened(source) as container, av.open(str(out.absolute()), "w") as clip:
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
