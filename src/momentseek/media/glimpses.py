"""Single frames far apart, without decoding all that lies between them where the file has an index of key frames."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from momentseek.errors import MediaError
from momentseek.media.container import FilePath, open_media
from momentseek.media.decode import Frame
from momentseek.media.picture import Painter
from momentseek.media.reader import Picture, Reader

MAX_SHORT_SIDE = 1080
"""Pixels of the shorter side to which larger frames are made smaller."""
_ROUNDING_SECONDS = 1e-6

Slot = tuple[float, float]
"""Start and end of a stretch of a video, in seconds."""


def glimpses(path: FilePath, slots: Sequence[Slot]) -> Iterator[Frame]:
    """One frame of each of some stretches, which follow each other: one near the middle that is quick to get.

    That is a key frame in the middle half of the stretch, or else the frame shown at its middle. Stretches after the
    last picture give nothing.
    """
    with open_media(path) as container:
        reader = Reader(container, path)
        painter = Painter(reader.aspect, short_side=MAX_SHORT_SIDE)
        keys = key_times(reader)
        shown: Picture | None = None
        coming: Picture | None = None
        pictures: Iterator[Picture] = iter(())
        begun = False
        for slot in slots:
            at = _target(slot, keys)
            if not begun or (shown is not None and has_key_between(keys, shown.time, at)):
                pictures, shown, coming, begun = reader.pictures(at), None, None, True
            while coming is None or coming.time <= at + _ROUNDING_SECONDS:
                shown = coming or shown
                coming = next(pictures, None)
                if coming is None:
                    break
            if shown is None and coming is not None and coming.time < slot[1]:
                shown = coming
            if shown is None:
                reader.refuse_hunger()
                raise MediaError(f"{path}: no picture can be decoded at {at:.1f} s; get another copy")
            if coming is None and shown.time + shown.duration <= slot[0] + _ROUNDING_SECONDS:
                return
            yield Frame(at, painter.paint(shown.frame))


def key_times(reader: Reader) -> list[float]:
    """When the key frames of an open video are shown, in seconds, as its index says; empty if it has none."""
    base = reader.stream.time_base
    if base is None:
        return []
    entries = (entry for entry in reader.stream.index_entries if entry.is_keyframe)
    return sorted(float(entry.timestamp * base) - reader.start for entry in entries)


def has_key_between(keys: Sequence[float], after: float, until: float) -> bool:
    """Whether a key frame lies after one time and not after another, so that jumping to it saves decoding.

    >>> has_key_between([0.0, 4.0, 8.0], 1.0, 5.0), has_key_between([0.0, 8.0], 1.0, 5.0)
    (True, False)
    """
    return bisect_right(keys, until) > bisect_right(keys, after + _ROUNDING_SECONDS)


def _target(slot: Slot, keys: Sequence[float]) -> float:
    """The time of the frame to take from a stretch.

    >>> _target((0.0, 4.0), [0.0, 2.5, 9.0]), _target((4.0, 8.0), [0.0, 2.5, 9.0])
    (2.5, 6.0)
    """
    start, end = slot
    middle = (start + end) / 2
    near = [key for key in keys if abs(key - middle) <= (end - start) / 4]
    return min(near, key=lambda key: abs(key - middle), default=middle)
