"""The second pass: a library's second image encoder encodes videos that the first has already made searchable.

It is slow, so it encodes fewer pictures: one for each stretch in which the first encoder's vectors hardly change. The
pictures were cached when the video was decoded (`library.kept_pictures`); otherwise they are decoded here. Results are
stored part by part like those of any other track. They are written into the segments for several videos at a time,
because a segment is written as a whole.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.pinned_file import PinnedFile
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.database import PICTURES
from momentseek.library.encoders import DEFAULT_ENCODER, reencode_command, second_encoder, vision_spec
from momentseek.library.kept_pictures import KeptPictures, choose_clips, meanings_of
from momentseek.library.merging import SegmentDamage, damage_message, find_damage, replace_segments
from momentseek.library.segments import Segment, StoredVectors, locate, parts_without, read_segment, segment_of
from momentseek.library.timed_text import Maker, PendingVideo, TrackPart, finish_track, track_parts
from momentseek.library.tracks.background import PassRequest, TrackPass
from momentseek.media.sandbox.calls import sparse_frames
from momentseek.recognition.encoders.fused import FusedEncoder
from momentseek.recognition.encoders.protocol import Pixels, Vectors

PART_PICTURES = 64
"""Number of pictures in a part: what a killed process loses."""
BATCH_PICTURES = 16
"""Number of pictures in a batch of the encoder."""
JOIN_SECONDS = 10.0
"""Shortest time between two updates of the segments."""
MAX_JOIN_SHARE = 0.05
"""Largest share of the time for these updates; large segments are rewritten less often."""


def second_pass(request: PassRequest) -> SecondPass:
    """Create the pass over a library with two encoders; raises an error if it has only one, or weights are missing."""
    library = request.library
    encoder = library.encoders.fused
    if encoder is None:
        spec = vision_spec(library.catalog)
        raise MomentseekError(
            f"{library.path}: has one encoder, {spec}, and no second to look at its videos; for two, run: "
            f"{reencode_command(library.path, DEFAULT_ENCODER)}"
        )
    if not encoder.ready:
        raise MomentseekError(not_ready(encoder))
    return SecondPass(request, encoder)


def not_ready(encoder: FusedEncoder) -> str:
    """A message that says why the second pass is not possible, and what to do."""
    return (
        f"{SecondPass.undone}: the weights of {second_encoder(encoder.name)} are not installed; get them with: "
        "momentseek models get; then the next add, or momentseek encode, encodes the waiting videos"
    )


def expand(clips: Sequence[int], rows: Vectors, count: int) -> Vectors:
    """One row for each of ``count`` clips: that of the last encoded clip up to it, or of the first encoded clip.

    >>> expand([0, 2], np.array([[1.0], [2.0]], np.float32), 4).ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    place = np.searchsorted(np.asarray(clips), np.arange(count), side="right") - 1
    return rows[np.maximum(place, 0)]


class SecondPass(TrackPass):
    """Encodes pictures with the second of a library's two encoders, newest videos first, then shortest first."""

    kind = PICTURES
    what = "encoding"
    undone = "the second encoder did not encode the videos"
    undone_in_video = "the second encoder did not encode it"
    order = "CAST(videos.added / 3600 AS INTEGER) DESC, duration"
    after_adding = True

    def __init__(self, request: PassRequest, encoder: FusedEncoder) -> None:
        super().__init__(request, Maker(encoder.second.name, encoder.fingerprint))
        self.what = f"encoding by {second_encoder(encoder.name)}"
        self.encoder = encoder
        self.damages: dict[str, SegmentDamage] = {}
        """Damaged segments, by name; they stay as they are."""
        self._ready: dict[int, PendingVideo] = {}
        """Videos that are completely encoded, and wait to be written into their segments."""
        self._joined_at, self._join_seconds = time.monotonic(), 0.0
        self._clip_seconds = self.library.clip_seconds
        self._held: dict[str, Segment] = {}
        self._stopped = False

    def __exit__(self, *reason: object) -> None:
        """Stop, and wait for the current batch, because a process that exits while a thread computes is aborted."""
        self._stopped, answers = True, self._answers
        super().__exit__(*reason)
        if answers is not None:
            answers.close()

    # in the thread

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Encode the pictures of a video from where an earlier run has stopped."""
        rows = self._rows(video.id)
        if self.encoder.is_filled(rows).all():  # copied from a video with the same content
            return
        kept = self._pictures_of(video)
        chosen = kept.clips(len(rows))
        clips = self._choose(rows) if chosen is None else chosen
        left = clips[clips * self._clip_seconds >= video.done - 1e-6]
        for at in range(0, len(left), PART_PICTURES):
            wanted = left[at : at + PART_PICTURES]
            pictures = self._decode(video, wanted.tolist()) if chosen is None else kept.pictures(wanted.tolist())
            found = self._encode(pictures, begun=video.done > 0 or at > 0)
            last = at + PART_PICTURES >= len(left) or len(found) < len(wanted)
            done = video.duration if last else float(left[at + PART_PICTURES] * self._clip_seconds)
            content = {"clips": wanted[: len(found)].tolist(), "rows": _text(found)}
            yield TrackPart(done, content if len(found) else None)
            if last:  # the rest of the file may be damaged
                return

    def _rows(self, video: int) -> NDArray[np.float16]:
        """The stored rows of a video; segments are kept open until they are replaced."""
        with closing(Catalog(self.library.path)) as catalog:  # the library's own is another thread's
            while True:
                named = [row.name for row in catalog.segments("vision")]
                self._held = {name: self._held[name] for name in named if name in self._held}
                for name in named:
                    with suppress(MomentseekError):  # replaced meanwhile, or damaged
                        self._held[name] = self._held.get(name) or read_segment(self.library.paths.segments, name)
                held = list(self._held.values())
                if (place := locate(held, video)) is not None:
                    return held[place[0]].part(place[1], place[1] + 1).half
                if named == [row.name for row in catalog.segments("vision")]:
                    raise MediaError("its vectors are missing or damaged; run: momentseek verify --repair")

    def _pictures_of(self, video: PendingVideo) -> KeptPictures:
        return KeptPictures(self.library.path, video.hash, self.encoder.second.short_side)

    def _choose(self, rows: NDArray[np.float16]) -> NDArray[np.int64]:
        """The clips whose pictures are encoded, by the first encoder's vectors."""
        first = self.encoder.split(rows)[0]
        return choose_clips(meanings_of(self.encoder.first)(first), self._clip_seconds)

    def _decode(self, video: PendingVideo, clips: list[int]) -> Iterator[Pixels]:
        """The pictures of some clips, from the file."""
        length = self._clip_seconds
        slots = [(clip * length, min((clip + 1) * length, max(video.duration, clip * length))) for clip in clips]
        file = PinnedFile(video.path, video.size, video.mtime_ns)
        with closing(sparse_frames(file, slots, self.encoder.second.short_side)) as frames:
            for frame in frames:
                yield frame.pixels

    def _encode(self, pictures: Iterator[Pixels], *, begun: bool) -> Vectors:
        """The vectors of some pictures, fewer if the file cannot be read to its end."""
        second = self.encoder.second
        found: list[Vectors] = []
        waiting: list[Pixels] = []
        try:
            for pixels in pictures:
                if self._stopped:
                    raise MomentseekError("the second pass was stopped")
                waiting.append(pixels)
                if len(waiting) == BATCH_PICTURES:
                    found.append(second.encode_images(waiting))
                    waiting = []
        except MediaError:
            if not (begun or found or waiting):
                raise
        if waiting:
            found.append(second.encode_images(waiting))
        if not (found or begun):
            raise MediaError("none of its pictures can be decoded; get another copy")
        return np.concatenate(found) if found else np.empty((0, second.dim), np.float32)

    # in the thread that holds the lock

    def finish_video(self, video: PendingVideo) -> None:
        """Queue a finished video for its segment, and update the segments if it is time."""
        self._ready[video.id] = video
        waited = time.monotonic() - self._joined_at
        if waited >= max(JOIN_SECONDS, self._join_seconds / MAX_JOIN_SHARE):
            self.join()

    def finish_run(self) -> None:
        """Write the remaining videos into their segments."""
        self.join()
        if self.damages:
            self.report.notes.append(damage_message(self.library.catalog, self.damages.values()))

    def join(self) -> None:
        """Rewrite the segments of the queued videos, each in one transaction."""
        begun = time.monotonic()
        for row in self.library.catalog.segments("vision") if self._ready else []:
            if row.name not in self.damages:
                self._join(row)
        self._ready = {}
        self._joined_at = time.monotonic()
        self._join_seconds = self._joined_at - begun

    def _join(self, row: SegmentRow) -> None:
        catalog, paths = self.library.catalog, self.library.paths
        gone = catalog.gone()
        try:
            found = read_segment(paths.segments, row.name)
        except MomentseekError:
            self.damages[row.name] = SegmentDamage(row.name, (), row.videos)
            return
        videos = [self._ready[id] for id in found.ids.tolist() if id in self._ready and id not in gone]
        if not videos:
            return
        if (damage := find_damage(paths, row, gone)) is not None:  # a rewrite would hide it
            self.damages[row.name] = damage
            return
        parts: list[Segment] = []
        for run in parts_without(found, gone):
            parts += self._fill_parts(run)

        def finish() -> None:
            for video in videos:
                finish_track(catalog, self.kind, video.id, self.by, video.duration)

        replace_segments(catalog, paths, [row], parts, finish)
        for video in videos:
            self._pictures_of(video).drop()
            self.report.seen += 1
            self.report.seen_seconds += video.duration - video.done

    def _fill_parts(self, run: Segment) -> Iterator[Segment]:
        """Split a run of videos into pieces, with the second encoder's columns filled in for finished videos."""
        first = 0
        for at, id in enumerate(run.ids.tolist()):
            if id in self._ready:
                if first < at:
                    yield run.part(first, at)
                yield self._fill_video(run.part(at, at + 1))
                first = at + 1
        if first < len(run.ids):
            yield run.part(first, len(run.ids))

    def _fill_video(self, one: Segment) -> Segment:
        """A video's rows with the second encoder's columns filled in; unchanged if it has no parts."""
        parts = track_parts(self.library.catalog, self.kind, int(one.ids[0]))
        if not parts:
            return one
        clips = [clip for part in parts for clip in part["clips"]]
        rows = np.concatenate([_rows_of(part["rows"], self.encoder.blocks[1]) for part in parts])
        self.report.pictures += len(clips)
        filled = self.encoder.fill(one.half, expand(clips, rows, one.rows))
        return segment_of(one.stream, one.ids.tolist(), [StoredVectors.of(filled)])


def _text(rows: Vectors) -> str:
    return base64.b64encode(rows.astype("<f2").tobytes()).decode()


def _rows_of(text: str, columns: int) -> Vectors:
    rows: Vectors = np.frombuffer(base64.b64decode(text), "<f2").reshape(-1, columns).astype(np.float32)
    return rows
