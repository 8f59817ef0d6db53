"""Examples for "more like this": a moment of the library, or any picture, as the vector to search for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.library.video import AnyVideo, Video
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels, Vectors
from momentseek.search.fusion import Candidate
from momentseek.search.query import Query
from momentseek.search.stream_index import StreamIndex


@dataclass(frozen=True, eq=False)
class SearchExample:
    """An example to search by: a unit vector, and the moment it was taken from, if it is in the library."""

    vector: Vectors
    video: Video | None = None
    start: float = 0.0
    end: float = 0.0

    def is_shown_by(self, candidate: Candidate, video: AnyVideo) -> bool:
        """Whether a candidate overlaps the example itself, possibly in a copy of the file."""
        if self.video is None or (video.hash or video.id) != (self.video.hash or self.video.id):
            return False
        return candidate.start < self.end and self.start < candidate.end


def example_of_moment(index: StreamIndex, video: Video, start: float, end: float) -> SearchExample:
    """A moment as an example: the mean of the vectors of its clips, at least one."""
    rows = index.rows(video.id)
    if rows is None or not len(rows) or not np.isfinite(rows).all():
        raise MomentseekError(f"{video.name}: has no undamaged vectors to compare with; run momentseek verify")
    if start >= video.duration:
        raise MomentseekError(
            f"{video.name}: ends at {video.duration:.1f} s, so there is nothing at {start:g} s; name an earlier time"
        )
    middles = (np.arange(len(rows)) + 0.5) * index.clip_seconds
    inside = (middles >= start) & (middles < end)
    if not inside.any():
        inside[min(int((start + end) / 2 / index.clip_seconds), len(rows) - 1)] = True
    first, last = np.flatnonzero(inside)[[0, -1]].tolist()
    begin, finish = min(start, first * index.clip_seconds), max(end, (last + 1) * index.clip_seconds)
    return SearchExample(_unit(rows[inside].mean(axis=0)), video, begin, min(finish, video.duration))


def example_of_picture(encoder: ImageTextEncoder, picture: Pixels) -> SearchExample:
    """A picture as an example."""
    return SearchExample(_unit(encoder.encode_images([picture])[0]))


def check_filters(where: Query) -> None:
    """Refuse a query with words: a search by example only takes filters."""
    if where or where.avoid or where.unsaid:
        raise MomentseekError("a search by example takes no words; use only in:, before: and after:")


def _unit(vector: Vectors) -> Vectors:
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length < 1e-6:
        raise MomentseekError("the library's encoder recognises nothing in the example; choose another one")
    return np.asarray(vector / length, np.float32)
