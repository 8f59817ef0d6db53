"""BatchEncoder: encodes frames of several videos in batches and puts each video's vectors together again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.library.ingest.events import IngestJob, PartEnd, VideoEnd, VideoStart
from momentseek.library.kept_pictures import PictureKeeper
from momentseek.library.report import StageTimer
from momentseek.library.segments import StoredVectors, join_vectors
from momentseek.library.video_parts import VideoParts
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels, Vectors, WindowEncoder
from momentseek.recognition.encoders.text_cache import unit_rows

FRAMES_PER_BATCH = 16
"""Frames encoded together; they may be of several videos."""


class VideoAssembly:
    """A video while its clips are being encoded: the vectors and cuts so far."""

    def __init__(self, start: VideoStart, parts: VideoParts, pictures: PictureKeeper | None = None) -> None:
        self.job = start.job
        self.parts = parts
        """Where finished parts of a long video are kept."""
        self.pictures = pictures
        """Keeps pictures for the second encoder, if there is one."""
        self.finished: list[StoredVectors] = [rows for rows, _ in start.kept]
        """Vectors of the parts that are wholly encoded."""
        self.shots: dict[int, tuple[float, ...]] = {part: shots for part, (_, shots) in enumerate(start.kept)}
        self.rows: list[Vectors] = []
        """Vectors of the part that is being made."""
        self.ended: VideoEnd | None = None

    @property
    def clips(self) -> int:
        """Number of clips encoded so far."""
        return len(self.finished) * self.parts.part_clips + len(self.rows)

    @property
    def whole(self) -> bool:
        """Whether every frame that was given is encoded, and no more will come."""
        return self.ended is not None and self.clips >= self.ended.clips

    def take(self, row: Vectors, frames: tuple[Pixels, ...]) -> None:
        """Add the vector of the next clip, which has these frames."""
        self.rows.append(row)
        if self.pictures is not None:
            self.pictures.take(row, frames[len(frames) // 2])
        if len(self.rows) == self.parts.part_clips:
            self.keep_pictures()
            self.finished.append(StoredVectors.of(np.stack(self.rows)))
            self.rows = []
            self.keep(len(self.finished) - 1)

    def end_part(self, part: int, shots: tuple[float, ...]) -> None:
        """Note the cuts of a part, which may not be wholly encoded yet."""
        self.shots[part] = shots
        self.keep(part)

    def keep(self, part: int) -> None:
        """Save a part once both its vectors and its cuts are there."""
        if part < len(self.finished) and part in self.shots:
            self.parts.save(part, self.finished[part], self.shots[part])

    def keep_pictures(self) -> None:
        """Save the pictures that were taken since the last time."""
        if self.pictures is not None:
            self.pictures.save()

    def drop(self) -> None:
        """Delete what was kept, since the video is given up."""
        self.parts.drop()
        if self.pictures is not None:
            self.pictures.kept.drop()

    def vectors(self) -> StoredVectors:
        """The vectors of all clips so far, in order of time."""
        if not self.clips:
            return StoredVectors.of(np.empty((0, self.parts.dim), np.float32))
        return join_vectors([*self.finished, *([StoredVectors.of(np.stack(self.rows))] if self.rows else [])])

    def cuts(self) -> tuple[float, ...]:
        """Times of all cuts of the video, in seconds."""
        return tuple(t for part in sorted(self.shots) for t in self.shots[part])


class BatchEncoder:
    """Encodes the frames of videos in batches that may span several of them."""

    def __init__(self, encoder: ImageTextEncoder, timer: StageTimer) -> None:
        self.encoder, self.timer = encoder, timer
        self.open: list[VideoAssembly] = []
        """The videos that are not wholly encoded, in the order in which they began."""
        self.waiting: list[tuple[IngestJob, tuple[Pixels, ...]]] = []
        self.clips = max(1, FRAMES_PER_BATCH // window_frames(encoder))
        """Clips that are encoded together."""

    def begin(self, start: VideoStart, parts: VideoParts, pictures: PictureKeeper | None = None) -> VideoAssembly:
        """Begin another video, whose frames follow."""
        assembly = VideoAssembly(start, parts, pictures)
        self.open.append(assembly)
        return assembly

    def add_clip(self, job: IngestJob, frames: tuple[Pixels, ...]) -> bool:
        """Take the frames of a clip; true if it filled a batch, which was then encoded."""
        self.waiting.append((job, frames))
        if len(self.waiting) < self.clips:
            return False
        self.encode()
        return True

    def end_part(self, ended: PartEnd) -> None:
        """Note that a part of a video has no more frames."""
        self._assembly(ended.job).end_part(ended.part, ended.shots)

    def end(self, ended: VideoEnd) -> None:
        """Note that a video has no more frames."""
        self._assembly(ended.job).ended = ended

    def fail(self, job: IngestJob) -> None:
        """Give up a video and forget what is done of it."""
        with suppress(StopIteration):
            assembly = self._assembly(job)
            assembly.drop()
            self.open.remove(assembly)
        self.waiting = [(other, frames) for other, frames in self.waiting if other is not job]

    def take_whole(self) -> Iterator[VideoAssembly]:
        """Take out the videos that are wholly encoded."""
        for assembly in [assembly for assembly in self.open if assembly.whole]:
            self.open.remove(assembly)
            assembly.keep_pictures()
            yield assembly

    def encode(self) -> None:
        """Encode the frames that are waiting."""
        if not self.waiting:
            return
        clips, place = unlike_clips([frames for _, frames in self.waiting])
        with self.timer.stage("encode"):
            rows = np.asarray(encode_clips(self.encoder, clips), dtype=np.float32)
        if rows.shape != (len(clips), self.encoder.dim) or not unit_rows(rows).all():
            raise MomentseekError(
                f"the encoder {self.encoder.name} gave {rows.shape} numbers for {len(clips)} clips, or rows "
                f"that are not finite or not of length 1; check it (momentseek models verify)"
            )
        waiting, self.waiting = self.waiting, []
        for (job, frames), at in zip(waiting, place, strict=True):
            self._assembly(job).take(rows[at], frames)

    def _assembly(self, job: IngestJob) -> VideoAssembly:
        return next(assembly for assembly in reversed(self.open) if assembly.job is job)


def unlike_clips(clips: list[tuple[Pixels, ...]]) -> tuple[list[tuple[Pixels, ...]], list[int]]:
    """The clips without those that show the very pictures of another, and the place of each in what is left.

    >>> still, other = (np.zeros((1, 1, 3), np.uint8),), (np.ones((1, 1, 3), np.uint8),)
    >>> kept, place = unlike_clips([still, still, other, still])
    >>> len(kept), place
    (2, [0, 0, 1, 0])
    """
    kept: list[tuple[Pixels, ...]] = []
    places: dict[tuple[int, ...], int] = {}
    found: list[int] = []
    for clip in clips:
        found.append(places.setdefault(tuple(map(id, clip)), len(kept)))
        if found[-1] == len(kept):
            kept.append(clip)
    return kept, found


def window_frames(encoder: ImageTextEncoder) -> int:
    """How many frames of a clip an encoder looks at: one, unless it says more."""
    return max(1, encoder.window_frames) if isinstance(encoder, WindowEncoder) else 1


def encode_clips(encoder: ImageTextEncoder, clips: list[tuple[Pixels, ...]]) -> Vectors:
    """One vector for each clip, by its frames."""
    if isinstance(encoder, WindowEncoder):
        return encoder.encode_windows(clips)
    return encoder.encode_images([frames[0] for frames in clips])
