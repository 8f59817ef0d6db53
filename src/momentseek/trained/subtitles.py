"""What is said, clip by clip: the vectors of the cues that overlap a clip, averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from momentseek.encoders.protocol import Vectors


def said_in_clips(
    times: Sequence[tuple[float, float]], vectors: Vectors | None, clips: int, clip_seconds: float, dim: int
) -> Vectors:
    """(clips, dim): row i is the mean over the cues that overlap ``[i, i + 1) * clip_seconds``; silence is zero.

    A cue of ``[start, end)`` counts for the clips floor(start / 1.5) to ceil(end / 1.5) - 1, as in TVR (appendix B),
    whose features take the maximum over the words; here a cue has one vector for all of it, of which means stay in the
    encoder's space and maxima do not.

    >>> rows = said_in_clips([(1.0, 2.0), (1.6, 2.9)], np.eye(2, dtype=np.float32), 3, 1.5, 2)
    >>> rows.tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]
    """
    rows = np.zeros((clips, dim), np.float32)
    if vectors is None or not len(vectors) or not clips:
        return rows
    start, end = np.asarray(times, np.float64).reshape(-1, 2).T
    first = np.clip(np.floor(start / clip_seconds).astype(np.int64), 0, clips)
    last = np.clip(np.maximum(np.ceil(end / clip_seconds).astype(np.int64), first + 1), 0, clips)
    size = np.maximum(last - first, 0)
    cue = np.repeat(np.arange(len(size)), size)
    clip = np.arange(len(cue)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(first, size)
    np.add.at(rows, clip, vectors[cue])
    count = np.bincount(clip, minlength=clips)[:, None]
    return np.asarray(rows / np.maximum(count, 1), np.float32)
