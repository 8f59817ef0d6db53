"""Moments that can be looked at: inside their video, and not too short.

Spans are brought into this form before those that say the same are dropped: two that differ only below the shortest
length would be shown as one and the same otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from momentseek.moments.arrays import FloatArray

SHORTEST = 0.5
"""Seconds of a moment, if the video is that long."""


def inside(start: ArrayLike, end: ArrayLike, duration: float) -> tuple[FloatArray, FloatArray]:
    """Spans inside their video, those too short made longer on both sides as far as there is room.

    >>> starts, ends = inside([9.9, 3.0, 2.0], [12.0, 3.0, 4.0], 10.0)
    >>> starts.tolist(), ends.tolist()
    ([9.5, 2.75, 2.0], [10.0, 3.25, 4.0])
    """
    least = min(SHORTEST, duration)
    first, last = (np.clip(np.asarray(side, np.float64), 0.0, duration) for side in (start, end))
    lacking = least - (last - first)
    wide = np.minimum(np.maximum(0.0, first - lacking / 2), duration - least)
    return np.where(lacking > 0, wide, first), np.where(lacking > 0, wide + least, last)
