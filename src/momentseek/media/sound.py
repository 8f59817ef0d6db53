"""The sound of a video as samples for a recogniser: one channel, 16,000 a second, a stretch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MediaError
from momentseek.media.container import FilePath, libav, open_media, packets, sound_stream
from momentseek.media.probe import MAX_DURATION_SECONDS, container_start

SAMPLE_RATE = 16_000
"""Samples a second of what ``sound`` gives."""
MAX_GAP_SECONDS = 3600.0
"""Longest silence that is filled in where time stamps leap; a longer leap is taken for a broken clock."""

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
            for frame in _decode(av, packet):
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


def _decode(av: Any, packet: Any) -> Iterator[Any]:
    """The frames of a packet; a packet that cannot be decoded has none."""
    try:
        yield from packet.decode()
    except (av.FFmpegError, ValueError):
        return
