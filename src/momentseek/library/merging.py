"""Rewriting segments: join small ones, drop removed videos, and never copy damaged vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import LibraryError
from momentseek.core.reports import count
from momentseek.library import segments
from momentseek.library import video_parts as checkpoint
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.file_stamp import printable
from momentseek.library.kept_pictures import drop_unwanted_pictures
from momentseek.library.paths import LibraryPaths, folder_size
from momentseek.library.segments import MAX_JOINED_ROWS, DamagedSegmentError, Segment, read_segment, sum_segment

MAX_NAMES = 5
"""Largest number of videos named in a message; the others are only counted."""


@dataclass(frozen=True)
class SegmentDamage:
    """A segment whose file is damaged, and the videos in it whose checksums are wrong."""

    segment: str
    videos: tuple[int, ...]
    """Their ids; empty if the file cannot be read at all."""
    count: int
    """Number of these videos."""


class DamagedVectorsError(LibraryError):
    """Segments were not rewritten, because videos in them are damaged."""

    def __init__(self, catalog: Catalog, damages: Iterable[SegmentDamage]) -> None:
        self.damages = tuple(damages)
        super().__init__(damage_message(catalog, self.damages))


def proven_videos(found: Segment) -> NDArray[np.bool_]:
    """Mask of the videos of a segment whose checksums are right."""
    return np.asarray(sum_segment(found) == found.sums)


def find_damage(paths: LibraryPaths, row: SegmentRow, gone: NDArray[np.int64]) -> SegmentDamage | None:
    """The damage to a segment, ignoring the removed videos ``gone``; None if there is none."""
    try:
        found = read_segment(paths.segments, row.name)
    except DamagedSegmentError:
        return SegmentDamage(row.name, (), row.videos)
    wrong = found.ids[~(proven_videos(found) | np.isin(found.ids, gone))]
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


def groups_to_join(rows: Sequence[int], large: int = MAX_JOINED_ROWS) -> list[range]:
    """Choose neighbouring segments to join, so that each has more rows than all smaller ones after it.

    So N rows are in about ``log2(N)`` segments and ``N / large`` large ones, and a row is rewritten ``log2(N)`` times.

    >>> groups_to_join([900, 100, 60, 50]), groups_to_join([900, 100, 60]), groups_to_join([5, 5, 5, 5], large=10)
    ([range(1, 4)], [], [range(0, 2), range(2, 4)])
    """
    cut, total = len(rows), 0
    for at in reversed(range(len(rows))):
        if rows[at] >= large:
            break
        if rows[at] <= total:
            cut = at
        total += rows[at]
    groups, first, size = [], cut, 0
    for at in range(cut, len(rows)):
        size += rows[at]
        if size >= large or at + 1 == len(rows):
            groups.append(range(first, at + 1))
            first, size = at + 1, 0
    return [group for group in groups if len(group) > 1]


def merge_segments(catalog: Catalog, paths: LibraryPaths, stream: str, damages: dict[str, SegmentDamage]) -> int:
    """Join small segments of a stream; returns the number of joined segments. The caller holds the library's lock.

    A damaged segment, and those before it, stay as they are; it is added to ``damages`` under its name.
    """
    rows = _rows_to_join(catalog, stream, damages)
    joined = 0
    for group in groups_to_join([row.rows for row in rows]):
        try:
            rewrite_segments(catalog, paths, [rows[at] for at in group], catalog.gone())
        except DamagedVectorsError as e:
            damages.update({damage.segment: damage for damage in e.damages})
            return joined + merge_segments(catalog, paths, stream, damages)
        joined += len(group)
    return joined


def _rows_to_join(catalog: Catalog, stream: str, damages: Mapping[str, SegmentDamage]) -> list[SegmentRow]:
    """The segments after the last damaged one, because only neighbours are joined."""
    rows = catalog.segments(stream)
    first = max((at + 1 for at, row in enumerate(rows) if row.name in damages), default=0)
    return rows[first:]


def rewrite_segments(catalog: Catalog, paths: LibraryPaths, old: Sequence[SegmentRow], gone: NDArray[np.int64]) -> None:
    """Replace segments by one without the videos ``gone``, in one transaction.

    Refused if the vectors of another video are damaged, because a rewrite would give them a fresh hash.
    """
    damages = [damage for row in old if (damage := find_damage(paths, row, gone)) is not None]
    if damages:
        raise DamagedVectorsError(catalog, damages)
    parts = [
        part for row in old for part in segments.parts_without(segments.read_segment(paths.segments, row.name), gone)
    ]
    replace_segments(catalog, paths, old, parts)


def replace_segments(
    catalog: Catalog,
    paths: LibraryPaths,
    old: Sequence[SegmentRow],
    parts: Sequence[Segment],
    also: Callable[[], None] = lambda: None,
) -> None:
    """Replace segments by one made of ``parts``, and call ``also``, in one transaction."""
    new = store_joined_segment(paths, old[0].stream, parts) if parts else None
    with catalog.changes():
        for row in old:
            catalog.remove_segment(row.name)
        if new is not None:
            catalog.insert_segment(new)
        also()
    for row in old:
        if new is None or row.name != new.name:
            with suppress(OSError):  # some systems cannot delete a mapped file; it becomes an orphan
                (paths.segments / f"{row.name}{segments.SEGMENT_SUFFIX}").unlink()


def store_joined_segment(paths: LibraryPaths, stream: str, parts: Sequence[Segment]) -> SegmentRow:
    """Write several segments as one."""
    name = segments.write_joined(paths.segments, parts[0].stream, parts)
    videos, rows = sum(len(part.ids) for part in parts), sum(part.rows for part in parts)
    return SegmentRow(name, stream, videos, rows, min(int(part.ids[0]) for part in parts))


@dataclass(frozen=True)
class CompactReport:
    """What compaction did; ``before`` and ``after`` are the library's size in bytes."""

    videos: int
    """Number of removed or replaced videos whose vectors were dropped."""
    segments: int
    """Number of segments that were rewritten or joined."""
    orphans: int
    before: int
    after: int


def compact_library(catalog: Catalog, paths: LibraryPaths) -> CompactReport:
    """Rewrite the segments that contain removed videos, one at a time, then the catalog. The caller holds the lock.

    A reader sees each segment either before or after the change. If it is interrupted, the next call does the rest.
    Damaged segments stay as they are, and are named in an error after everything else is done.
    """
    before = folder_size(paths.folder)
    gone = catalog.gone()
    rewritten = 0
    damages: dict[str, SegmentDamage] = {}
    needed: set[int] = set()
    for row in catalog.segments():
        try:
            held = np.intersect1d(segments.read_segment(paths.segments, row.name).ids, gone)
        except DamagedSegmentError:  # its videos are unknown
            damages[row.name] = SegmentDamage(row.name, (), row.videos)
            needed = set(gone.tolist())
            continue
        try:
            if len(held):
                rewrite_segments(catalog, paths, [row], gone)
                rewritten += 1
        except DamagedVectorsError as e:
            damages.update({damage.segment: damage for damage in e.damages})
            needed |= set(held.tolist())
    with catalog.changes():
        catalog.run(
            "DELETE FROM gone WHERE video NOT IN (SELECT value FROM json_each(?))", (json.dumps(sorted(needed)),)
        )
    rewritten += sum(merge_segments(catalog, paths, stream, damages) for stream in segments.VECTOR_STREAMS)
    orphans = paths.drop_orphans(catalog)
    checkpoint.drop_old_parts(paths.folder)
    drop_unwanted_pictures(catalog)
    _drop_thumbnails(paths, set(gone.tolist()))
    catalog.tidy()
    if damages:
        raise DamagedVectorsError(catalog, damages.values())
    return CompactReport(len(gone), rewritten, orphans, before, folder_size(paths.folder))


def _drop_thumbnails(paths: LibraryPaths, gone: set[int]) -> None:
    for path in paths.thumbnails.glob("*-*"):
        with suppress(ValueError, OSError):
            if int(path.name.split("-", 1)[0]) in gone:
                path.unlink()
