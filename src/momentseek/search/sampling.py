"""Which clips stand for a whole library: a sample that depends on what the videos are, not on how they are stored.

A query is judged by how it scores on the library in general, so a few thousand clips are read. They are the same
whatever the order in which videos were added, in which segments they lie, and whether the library is one folder or a
hundred shards: of every video each ``step``-th clip is taken, beginning at a place that follows from the video's own
vectors. The samples of several shards, put together in the order of those numbers, are the sample of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.protocol import Vectors
from momentseek.library.segments import Segment

Keys = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Some rows of vectors, each with the number of its video and its place in the video, by which they are sorted."""

    keys: Keys
    places: NDArray[np.int64]
    rows: Vectors

    @classmethod
    def join(cls, parts: list[SampledRows]) -> SampledRows:
        """Several samples as one, sorted; a part without rows says nothing about their width."""
        filled = [part for part in parts if len(part.rows)] or parts[:1]
        if not filled:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros((0, 0), np.float32))
        keys, places = (np.concatenate([getattr(p, name) for p in filled]) for name in ("keys", "places"))
        order = np.lexsort((places, keys))
        return cls(keys[order], places[order], np.concatenate([part.rows for part in filled])[order])


def video_keys(segment: Segment) -> Keys:
    """A number for each video of a segment that follows from its vectors alone and is spread evenly; 0 without rows.

    It is made of the scales of the video's rows, which lie together and are read by every scan anyway.

    >>> from momentseek.library.segments import build_segment
    >>> rows = [np.float32([[3, 4]]), np.float32([[1, 0], [0, 2]])]
    >>> ones, others = build_segment("vision", [7, 9], rows), build_segment("vision", [1, 4], rows[::-1])
    >>> bool((video_keys(ones) == video_keys(others)[::-1]).all())
    True
    """
    lengths = np.diff(segment.offsets)
    filled = np.flatnonzero(lengths)
    keys = np.zeros(len(lengths), np.uint64)
    if len(filled):
        bits = np.asarray(segment.scales).view(np.uint32)
        keys[filled] = spread(np.add.reduceat(bits, segment.offsets[:-1][filled], dtype=np.uint64))
    return keys


def spread(numbers: Keys) -> Keys:
    """Numbers made even over all 64 bits, the same ones from the same (SplitMix64, Steele et al. 2014).

    >>> spread(np.array([1, 2], np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    z = numbers.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z


def chosen_rows(keys: Keys, lengths: NDArray[np.int64], step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every ``step``-th row of each of some videos: which video, and which of its rows.

    >>> video, row = chosen_rows(np.array([1, 5], np.uint64), np.array([4, 2]), 3)
    >>> video.tolist(), row.tolist()
    ([0], [1])
    >>> [each.tolist() for each in chosen_rows(np.array([1, 5], np.uint64), np.array([1, 2]), 1)]
    [[0, 1, 1], [0, 0, 1]]
    """
    first = (keys % np.uint64(step)).astype(np.int64)
    counts = np.maximum(0, -(-(lengths - first) // step))
    video = np.repeat(np.arange(len(keys)), counts)
    nth = np.arange(len(video)) - np.repeat(np.cumsum(counts) - counts, counts)
    return video, first[video] + nth * step
