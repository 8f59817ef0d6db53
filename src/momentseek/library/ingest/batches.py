"""Frames of several videos encoded in batches, and each video's rows put together again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from momentseek.encoders.protocol import ImageTextEncoder, Pixels, Vectors
from momentseek.encoders.store import unit_rows
from momentseek.errors import MomentseekError
from momentseek.library.ingest.clock import StageTimer
from momentseek.library.ingest.events import IngestJob, PartEnd, VideoEnd, VideoStart
from momentseek.library.rows import StoredVectors, joined
from momentseek.library.video_parts import VideoParts

BATCH = 16
"""Frames encoded together; they may be of several videos."""


class VideoAssembly:
    """A video's rows as they come."""

    def __init__(self, began: VideoStart, checkpoint: VideoParts) -> None:
        self.job = began.job
        self.checkpoint = checkpoint
        self.parts: list[StoredVectors] = [rows for rows, _ in began.kept]
        self.shots: dict[int, tuple[float, ...]] = {part: shots for part, (_, shots) in enumerate(began.kept)}
        self.rows: list[Vectors] = []
        """Of the part that is being made."""
        self.ended: VideoEnd | None = None

    @property
    def clips(self) -> int:
        """Encoded so far."""
        return len(self.parts) * self.checkpoint.part_clips + len(self.rows)

    @property
    def whole(self) -> bool:
        """Whether every frame that was given is encoded, and no more will come."""
        return self.ended is not None and self.clips >= self.ended.clips

    def take(self, row: Vectors) -> None:
        """The next clip's vector."""
        self.rows.append(row)
        if len(self.rows) == self.checkpoint.part_clips:
            self.parts.append(StoredVectors.of(np.stack(self.rows)))
            self.rows = []
            self.keep(len(self.parts) - 1)

    def end_part(self, part: int, shots: tuple[float, ...]) -> None:
        """The cuts of a part; it may not be wholly encoded yet."""
        self.shots[part] = shots
        self.keep(part)

    def keep(self, part: int) -> None:
        """Save a part once both its rows and its cuts are there."""
        if part < len(self.parts) and part in self.shots:
            self.checkpoint.save(part, self.parts[part], self.shots[part])

    def joined(self) -> StoredVectors:
        """All of them."""
        return joined([*self.parts, *([StoredVectors.of(np.stack(self.rows))] if self.rows else [])])

    def cuts(self) -> tuple[float, ...]:
        """All cuts of the video."""
        return tuple(t for part in sorted(self.shots) for t in self.shots[part])


class BatchEncoder:
    """Videos that are being encoded, in the order in which they began."""

    def __init__(self, encoder: ImageTextEncoder, clock: StageTimer) -> None:
        self.encoder, self.clock = encoder, clock
        self.open: deque[VideoAssembly] = deque()
        self.waiting: list[tuple[IngestJob, Pixels]] = []

    def begin(self, began: VideoStart, checkpoint: VideoParts) -> VideoAssembly:
        """Frames of another video follow."""
        assembly = VideoAssembly(began, checkpoint)
        self.open.append(assembly)
        return assembly

    def image(self, job: IngestJob, pixels: Pixels) -> bool:
        """A frame; true if it filled a batch and that was encoded."""
        self.waiting.append((job, pixels))
        if len(self.waiting) < BATCH:
            return False
        self.encode()
        return True

    def end_part(self, ended: PartEnd) -> None:
        """A part has no more frames."""
        self._of(ended.job).end_part(ended.part, ended.shots)

    def end(self, ended: VideoEnd) -> None:
        """A video has no more frames."""
        self._of(ended.job).ended = ended

    def fail(self, job: IngestJob) -> None:
        """A video is given up."""
        with suppress(StopIteration):
            assembly = self._of(job)
            assembly.checkpoint.drop()
            self.open.remove(assembly)
        self.waiting = [(other, pixels) for other, pixels in self.waiting if other is not job]

    def whole(self) -> Iterator[VideoAssembly]:
        """Videos that are done, taken out."""
        while self.open and self.open[0].whole:
            yield self.open.popleft()

    def encode(self) -> None:
        """Encode the frames that wait."""
        if not self.waiting:
            return
        with self.clock.stage("encode"):
            rows = np.asarray(self.encoder.encode_images([pixels for _, pixels in self.waiting]), dtype=np.float32)
        if rows.shape != (len(self.waiting), self.encoder.dim) or not unit_rows(rows).all():
            raise MomentseekError(
                f"the encoder {self.encoder.name} gave {rows.shape} numbers for {len(self.waiting)} images, or rows "
                f"that are not finite or not of length 1; check it (momentseek models verify)"
            )
        waiting, self.waiting = self.waiting, []
        for (job, _), row in zip(waiting, rows, strict=True):
            self._of(job).take(row)

    def _of(self, job: IngestJob) -> VideoAssembly:
        return next(assembly for assembly in reversed(self.open) if assembly.job is job)
