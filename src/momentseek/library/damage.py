"""Damage met in segments: what cannot be proven to be as it was written feeds no rewrite, and is named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import LibraryError, MomentseekError
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.checksums import checksum
from momentseek.library.file_stamp import printable
from momentseek.library.paths import LibraryPaths
from momentseek.library.segments import SEGMENT_SUFFIX, Segment, read_segment, sum_segment
from momentseek.tables import count

MAX_NAMES = 5
"""Videos named in a message; the others are counted."""


@dataclass(frozen=True)
class SegmentDamage:
    """A segment whose file is damaged, and the videos in it that are not proven sound."""

    segment: str
    videos: tuple[int, ...]
    """Their ids; empty if the file cannot be read at all."""
    count: int
    """How many they are."""


class DamagedVectorsError(LibraryError):
    """Segments were not rewritten, because videos in them are damaged."""

    def __init__(self, catalog: Catalog, damages: Iterable[SegmentDamage]) -> None:
        self.damages = tuple(damages)
        super().__init__(damage_message(catalog, self.damages))


def proven_videos(folder: Path, found: Segment) -> NDArray[np.bool_]:
    """Which videos of a segment are proven to be as they were written: by their own checksums, or, where the file is of
    a release that had none, all or none of them by the hash of the whole file.
    """
    if found.sums is not None:
        return np.asarray(sum_segment(found) == found.sums)
    try:
        whole = checksum(folder / f"{found.name}{SEGMENT_SUFFIX}") == found.name
    except OSError:
        whole = False
    return np.full(len(found.ids), whole)


def find_damage(paths: LibraryPaths, row: SegmentRow, gone: NDArray[np.int64]) -> SegmentDamage | None:
    """The damage to a segment, but for the videos ``gone``, whose vectors nobody needs; None if there is none."""
    try:
        found = read_segment(paths.segments, row.name)
    except MomentseekError:
        return SegmentDamage(row.name, (), row.videos)
    wrong = found.ids[~(proven_videos(paths.segments, found) | np.isin(found.ids, gone))]
    if len(wrong):
        return SegmentDamage(row.name, tuple(wrong.tolist()), len(wrong))
    if (len(found.ids), found.rows) != (row.videos, row.rows):
        return SegmentDamage(row.name, (), row.videos)
    return None


def damage_message(catalog: Catalog, damages: Iterable[SegmentDamage]) -> str:
    """One sentence that names the videos whose vectors are damaged, and the remedy."""
    found = list(damages)
    names = [printable(video.name) for video in catalog.videos({id for damage in found for id in damage.videos})]
    total = sum(damage.count for damage in found)
    shown = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
    which = f" ({shown})" if names else f" (segment {', '.join(damage.segment for damage in found)})"
    return (
        f"the vectors of {count(total, 'video')}{which} are damaged on the disk, and were left as they are; run: "
        "momentseek verify --repair, then momentseek retry"
    )


def refuse_damage(catalog: Catalog, paths: LibraryPaths, streams: Iterable[str]) -> None:
    """Refuse streams whose vectors are damaged, before they are copied elsewhere."""
    gone = catalog.gone()
    found = [
        damage for stream in streams for row in catalog.segments(stream) if (damage := find_damage(paths, row, gone))
    ]
    if found:
        raise DamagedVectorsError(catalog, found)
