"""Joining small segments: few files to map, each row rewritten only a few times in its life."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from momentseek.library import segments
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.damage import DamagedVectorsError, SegmentDamage, find_damage
from momentseek.library.paths import LibraryPaths
from momentseek.library.segments import MAX_JOINED_ROWS, Segment


def groups_to_join(rows: Sequence[int], large: int = MAX_JOINED_ROWS) -> list[range]:
    """Which neighbours to join so that each segment has more rows than all smaller ones after it.

    So N rows lie in about ``log2(N)`` segments and ``N / large`` large ones, and a row is rewritten ``log2(N)`` times.

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
    """Join small segments of a stream; returns how many there were. For who holds the library's lock.

    A damaged segment, and those before it, are left as they are; it is put into ``damages`` by its name.
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
    """The segments after the last damaged one: only neighbours are joined."""
    rows = catalog.segments(stream)
    first = max((at + 1 for at, row in enumerate(rows) if row.name in damages), default=0)
    return rows[first:]


def rewrite_segments(catalog: Catalog, paths: LibraryPaths, old: Sequence[SegmentRow], gone: NDArray[np.int64]) -> None:
    """Replace segments by one that holds the same without the videos ``gone``, all at once.

    Refused if the vectors of another video are damaged: a rewrite would give them a fresh hash.
    """
    damages = [damage for row in old if (damage := find_damage(paths, row, gone)) is not None]
    if damages:
        raise DamagedVectorsError(catalog, damages)
    parts = [
        part for row in old for part in segments.parts_without(segments.read_segment(paths.segments, row.name), gone)
    ]
    new = store_joined_segment(paths, old[0].stream, parts) if parts else None
    with catalog.changes():
        for row in old:
            catalog.remove_segment(row.name)
        if new is not None:
            catalog.insert_segment(new)
    for row in old:
        if new is None or row.name != new.name:
            with suppress(OSError):  # a file that another process has mapped cannot go everywhere; it is an orphan then
                (paths.segments / f"{row.name}{segments.SEGMENT_SUFFIX}").unlink()


def store_joined_segment(paths: LibraryPaths, stream: str, parts: Sequence[Segment]) -> SegmentRow:
    """Write one segment from several."""
    name = segments.write_joined(paths.segments, parts[0].stream, parts)
    videos, rows = sum(len(part.ids) for part in parts), sum(part.rows for part in parts)
    return SegmentRow(name, stream, videos, rows, min(int(part.ids[0]) for part in parts))
