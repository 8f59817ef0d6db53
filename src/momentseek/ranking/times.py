"""From clips to seconds."""

from __future__ import annotations

from typing import Literal

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import FloatArray, IntArray

EndTime = Literal["inclusive", "start"]
END_TIMES: tuple[EndTime, ...] = ("inclusive", "start")


def moments_of(
    first: IntArray,
    last: IntArray,
    edges: FloatArray,
    place: IntArray | int = 0,
    end_time: EndTime = "inclusive",
) -> tuple[FloatArray, FloatArray]:
    """Start and end in seconds of spans of clips ``first`` to ``last``, both included.

    ``edges`` are the times between clips, one more than there are clips; edges of several videos may stand one after
    another, and ``place`` then says where those of each span's video begin. A span ends where its last clip ends
    (``inclusive``), or, as ReLoCLNet's public code has it, where its last clip starts (``start``); a span of one clip
    is that clip in both cases, because a moment has a length.

    >>> edges = np.array([0.0, 1.5, 3.0, 4.5, 5.2])
    >>> moments_of(np.array([1, 2]), np.array([3, 2]), edges)
    (array([1.5, 3. ]), array([5.2, 4.5]))
    >>> moments_of(np.array([1, 2]), np.array([3, 2]), edges, end_time="start")
    (array([1.5, 3. ]), array([4.5, 4.5]))
    """
    if end_time not in END_TIMES:
        raise MomentseekError(f"end_time must be {' or '.join(END_TIMES)}, not {end_time!r}")
    beyond = last + 1 if end_time == "inclusive" else np.maximum(last, first + 1)
    return edges[place + first], edges[place + beyond]
