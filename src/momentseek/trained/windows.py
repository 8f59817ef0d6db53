"""Long videos for a model that was trained on short ones: windows that overlap, each clip from its best window.

XML was trained on the first 100 clips of a video and ReLoCLNet on 128 means of it, which serve a TV clip and not a
film. Here a longer video is read in windows of as many clips as the model takes, each as if it were a video of its
own, and a clip's vectors are those of the window in whose middle it lies most nearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class ClipWindow:
    """Clips ``first`` to ``last`` (excluded) are read together; of these, ``begin`` to ``end`` (excluded) are kept."""

    first: int
    last: int
    begin: int
    end: int


def windows(clips: int, most: int) -> list[ClipWindow]:
    """Windows of ``most`` clips that overlap by half or more, and between them keep every clip once.

    >>> windows(3, 4)
    [ClipWindow(first=0, last=3, begin=0, end=3)]
    >>> [(w.first, w.last, w.begin, w.end) for w in windows(7, 4)]
    [(0, 4, 0, 3), (2, 6, 3, 4), (3, 7, 4, 7)]
    """
    if clips <= most:
        return [ClipWindow(0, clips, 0, clips)]
    count = -(-(clips - most) // max(1, most // 2)) + 1
    firsts = [round(i * (clips - most) / (count - 1)) for i in range(count)]
    seams = [0, *((a + most + b) // 2 for a, b in pairwise(firsts)), clips]
    return [ClipWindow(f, f + most, a, b) for f, (a, b) in zip(firsts, pairwise(seams), strict=True)]
