"""BatchEncoder: encodes frames of several videos in batches, and collects the vectors of each video."""

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
"""Number of frames in a batch, which may span several videos."""


class VideoAssembly:
    """A video while its clips are being encoded: the vectors and cuts so far."""

    def __init__(self, start: VideoStart, parts: VideoParts, pictures: PictureKeeper | None = None) -> None:
        self.job = start.job
        self.parts = parts
        """The storage of finished parts of a long video."""
        self.pictures = pictures
        """Keeps pictures for the second encoder, if there is one."""
        self.finished: list[StoredVectors] = [rows for rows, _ in start.kept]
        """Vectors of the completely encoded parts."""
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
        """Whether all frames are encoded, and no more will come."""
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
        """Record the cuts of a part, which may not be completely encoded yet."""
        self.shots[part] = shots
        self.keep(part)

    def keep(self, part: int) -> None:
        """Save a part if both its vectors and its cuts are known."""
        if part < len(self.finished) and part in self.shots:
            self.parts.save(part, self.finished[part], self.shots[part])

    def keep_pictures(self) -> None:
        """Save the pictures collected since the last call."""
        if self.pictures is not None:
            self.pictures.save()

    def drop(self) -> None:
        """Delete the stored parts and pictures, because the video is given up."""
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
        """The videos that are not completely encoded, in the order in which they began."""
        self.waiting: list[tuple[IngestJob, tuple[Pixels, ...]]] = []
        self.clips = max(1, FRAMES_PER_BATCH // window_frames(encoder))
        """Number of clips in a batch."""

    def begin(self, start: VideoStart, parts: VideoParts, pictures: PictureKeeper | None = None) -> VideoAssembly:
        """Begin another video, whose frames follow."""
        assembly = VideoAssembly(start, parts, pictures)
        self.open.append(assembly)
        return assembly

    def add_clip(self, job: IngestJob, frames: tuple[Pixels, ...]) -> bool:
        """Queue the frames of a clip; returns whether that filled a batch, which was then encoded."""
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
        """Give up a video and delete its stored parts."""
        with suppress(StopIteration):
            assembly = self._assembly(job)
            assembly.drop()
            self.open.remove(assembly)
        self.waiting = [(other, frames) for other, frames in self.waiting if other is not job]

    def take_whole(self) -> Iterator[VideoAssembly]:
        """Remove and yield the videos that are completely encoded."""
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
    """Drop clips with the same pictures as another; returns the rest, and the position of each clip in it.

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
    """The number of frames of a clip that an encoder uses: one, unless it declares more."""
    return max(1, encoder.window_frames) if isinstance(encoder, WindowEncoder) else 1


def encode_clips(encoder: ImageTextEncoder, clips: list[tuple[Pixels, ...]]) -> Vectors:
    """Encode clips, given their frames; one vector each."""
    if isinstance(encoder, WindowEncoder):
        return encoder.encode_windows(clips)
    return encoder.encode_images([frames[0] for frames in clips])
