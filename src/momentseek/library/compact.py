"""Giving back the room of what was removed."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.library import segments
from momentseek.library import video_parts as checkpoint
from momentseek.library.catalog import Catalog
from momentseek.library.damage import DamagedVectorsError, SegmentDamage
from momentseek.library.paths import LibraryPaths, folder_size
from momentseek.library.segment_merge import merge_segments, rewrite_segments


@dataclass(frozen=True)
class CompactReport:
    """What compaction did; ``before`` and ``after`` are the library's size in bytes."""

    videos: int
    """Number of removed or replaced videos whose vectors were dropped."""
    segments: int
    """Number of segments that were written anew or joined."""
    orphans: int
    before: int
    after: int


def compact_library(catalog: Catalog, paths: LibraryPaths) -> CompactReport:
    """Rewrite the segments that hold removed videos, one at a time, then the catalog. The caller holds the lock.

    A reader meanwhile sees each segment before or after. Stopped at any instant, what remains is done the next time.
    Damaged segments are left as they are, and named in an error once everything else is done.
    """
    before = folder_size(paths.folder)
    gone = catalog.gone()
    rewritten = 0
    damages: dict[str, SegmentDamage] = {}
    needed: set[int] = set()
    for row in catalog.segments():
        try:
            held = np.intersect1d(segments.read_segment(paths.segments, row.name).ids, gone)
            if len(held):
                rewrite_segments(catalog, paths, [row], gone)
                rewritten += 1
        except DamagedVectorsError as e:
            damages.update({damage.segment: damage for damage in e.damages})
            needed |= set(held.tolist())
        except MomentseekError:  # it cannot be read, so nobody knows who is in it
            damages[row.name] = SegmentDamage(row.name, (), row.videos)
            needed = set(gone.tolist())
    with catalog.changes():
        catalog.run(
            "DELETE FROM gone WHERE video NOT IN (SELECT value FROM json_each(?))", (json.dumps(sorted(needed)),)
        )
    rewritten += sum(merge_segments(catalog, paths, stream, damages) for stream in segments.VECTOR_STREAMS)
    orphans = paths.drop_orphans(catalog)
    checkpoint.drop_old_parts(paths.folder)
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
