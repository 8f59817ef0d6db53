"""What is still good in a damaged segment.

Every vector is kept twice, as int8 and as float16, and has length 1 (but for those of ``spans``): damage to either
copy, or to the scale between them, shows in that row. So the videos all of whose rows are sound are kept, and only the
others are made again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library import segments
from momentseek.library.catalog import SegmentRow
from momentseek.library.paths import LibraryPaths
from momentseek.library.segments import Segment

CHUNK = 1 << 15
"""Rows checked at a time."""
LENGTH_ERROR = 2e-3


def row_faults(found: Segment, first: int, last: int) -> dict[str, NDArray[np.bool_]]:
    """What may be wrong with the rows from ``first`` to ``last``, and which have it.

    >>> two = segments.segment("vision", [1], [np.array([[0.6, 0.8], [3, 4]], np.float32)])
    >>> [(text, rows.tolist()) for text, rows in row_faults(two, 0, 2).items() if rows.any()]
    [('holds vectors that are not of length 1', [False, True])]
    """
    rows = found.half[first:last].astype(np.float32)
    scales = found.scales[first:last, None]
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(rows, axis=1)
        empty = ~np.isfinite(length) | (length == 0)
        long = (np.abs(length - 1) > LENGTH_ERROR) & (found.stream != "spans")
        differ = ~(np.abs(found.codes[first:last] * scales - rows) <= scales * 0.51 + 1e-3).all(axis=1)
    return {
        "holds vectors that are not finite or of length 0": empty,
        "holds vectors that are not of length 1": long,
        "its two copies of a vector differ": differ,
    }


def salvaged(place: LibraryPaths, row: SegmentRow, wanted: Mapping[int, int], dim: int) -> list[Segment]:
    """The videos of a segment that are sound: those of ``wanted``, with as many rows as it says; views of the file."""
    try:
        found = segments.read(place.segments, row.name)
        if not _in_order(found) or found.stream != row.stream or found.dim != dim:
            return []
        good = _sound_videos(found, wanted)
    except (MomentseekError, OSError):
        return []
    return segments.without(found, found.ids[~good]) if len(set(found.ids.tolist())) == len(found.ids) else []


def _in_order(found: Segment) -> bool:
    offsets = found.offsets
    return bool(
        len(offsets) == len(found.ids) + 1
        and offsets[0] == 0
        and offsets[-1] == found.rows
        and (np.diff(offsets) >= 0).all()
        and found.codes.shape == found.half.shape
        and len(found.half) == found.rows
    )


def _sound_videos(found: Segment, wanted: Mapping[int, int]) -> NDArray[np.bool_]:
    bad = [np.logical_or.reduce(list(row_faults(found, at, at + CHUNK).values())) for at in range(0, found.rows, CHUNK)]
    before = np.concatenate([[0], np.cumsum(np.concatenate(bad))]) if bad else np.zeros(1, np.int64)
    counts = np.diff(found.offsets).tolist()
    listed = np.array([wanted.get(id) == n for id, n in zip(found.ids.tolist(), counts, strict=True)], np.bool_)
    clean: NDArray[np.bool_] = before[found.offsets[1:]] == before[found.offsets[:-1]]
    return clean & listed
