"""Sights: the vectors that one stream searches, in one state of the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.protocol import Vectors
from momentseek.library.scan import Scan
from momentseek.library.segments import Segment, locate
from momentseek.trained.boundary_head import BoundaryHead
from momentseek.trained.moment_map import MomentMap

SAMPLE = 8192
"""Clips from which it is judged what is usual."""
MOMENTS = 1 << 15
"""Rows of moments from which the same is judged where a model keeps such; those of :data:`WINDOWS` windows at least."""
WINDOWS = 32

Encode = Callable[[Sequence[str]], Vectors]
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StreamIndex:
    """One stream's segments, in one state of the library."""

    segments: tuple[Segment, ...]
    gone: Ids
    clip_seconds: float
    plan: Path | None = None
    """The folder of the plan by which a large library is scanned, if it has one."""
    broken: set[int] = field(default_factory=set)
    """Videos met whose vectors are not finite: their file was damaged."""
    spans: tuple[Segment, ...] = ()
    """Of a trained model, what it finds spans by; a row for each clip."""
    head: BoundaryHead | None = None
    """What the model finds them with."""
    moments: MomentMap | None = None
    """Of a model that keeps vectors of moments instead, which ones: ``spans`` has a row for each."""

    @cached_property
    def scan(self) -> Scan:
        """The search for the best videos."""
        return Scan(self.segments) if self.plan is None else Scan.open(self.segments, self.plan)

    @cached_property
    def ids(self) -> Ids:
        """Of the videos in all segments, in their order."""
        return np.concatenate([np.asarray(s.ids) for s in self.segments] or [np.zeros(0, np.int64)])

    @cached_property
    def clips(self) -> int:
        """Of all videos that count."""
        return int(
            sum(length[~np.isin(s.ids, self.gone)].sum() for s in self.segments for length in [np.diff(s.offsets)])
        )

    @cached_property
    def lengths(self) -> dict[int, int]:
        """Clips of each video, by its id."""
        return {
            id: clips
            for s in self.segments
            for id, clips in zip(s.ids.tolist(), np.diff(s.offsets).tolist(), strict=True)
        }

    @cached_property
    def moment_scan(self) -> Scan:
        """The search for the videos with the best moments."""
        return Scan(self.spans)

    @property
    def damaged(self) -> bool:
        """Whether vectors were met that are not finite."""
        return bool(self.broken)

    @cached_property
    def sample(self) -> Vectors:
        """Clips taken at even steps from the whole library, always the same ones; damaged ones are left out."""
        step = max(1, -(-sum(s.rows for s in self.segments) // SAMPLE))
        parts = []
        for segment in self.segments:
            rows = np.arange(step // 2 if segment.rows > step // 2 else 0, segment.rows, step)
            owner = np.searchsorted(segment.offsets, rows, side="right") - 1
            ids = np.asarray(segment.ids)[owner]
            there = ~np.isin(ids, self.gone)
            vectors = segment.half[rows[there]].astype(np.float32)
            whole = np.isfinite(vectors).all(axis=1)
            self.broken.update(ids[there][~whole].tolist())
            parts.append(vectors[whole])
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    @cached_property
    def stretches(self) -> list[Vectors]:
        """Videos taken at even steps from the whole library, long ones in parts as long as a model reads at a time."""
        window = self.head.window if self.head is not None else SAMPLE
        parts: list[Vectors] = []
        step = max(1, -(-sum(s.rows for s in self.segments) // SAMPLE))
        for segment in self.segments:
            for at in range(0, len(segment.ids), step):
                rows = segment.vectors(at)
                if segment.ids[at] not in self.gone and len(rows) and np.isfinite(rows).all():
                    parts += [rows[first : first + window] for first in range(0, len(rows), window)]
        return parts[:SAMPLE]

    @cached_property
    def windows(self) -> list[Vectors]:
        """Moments of windows taken at even steps from the whole library, of each window all."""
        assert self.moments is not None
        rows = sum(s.rows for s in self.spans)
        total = sum(self.moments.count(clips) for clips in self.lengths.values())
        step = max(1, min(-(-rows // MOMENTS), total // WINDOWS))
        parts: list[Vectors] = []
        at, gone = step // 2, set(self.gone.tolist())
        for segment in self.spans:
            for place, id in enumerate(segment.ids.tolist()):
                clips = self.lengths.get(id, 0)
                if not clips or id in gone:
                    continue
                count = self.moments.count(clips)
                if at < count:
                    found, owner = segment.vectors(place), self.moments.of(clips).window
                    if len(found) != len(owner) or not np.isfinite(found).all():
                        self.broken.add(id)
                    else:
                        parts += [found[owner == window] for window in range(at, count, step)]
                    at += step * len(range(at, count, step))
                at -= count
        return parts

    def place(self, video: int) -> tuple[int, int] | None:
        """Which segment holds a video's rows, and at which place in it; None if none does."""
        return locate(self.segments, video)
