"""More like this: moments that look like an example, which is a moment of the library or a picture from elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from momentseek.encoders.protocol import ImageTextEncoder, Pixels, Vectors
from momentseek.errors import MomentseekError
from momentseek.library.video import Video
from momentseek.search.engine import NOTHING_PASSES_NOTE, Engine, SearchSession, allowed_videos
from momentseek.search.fusion import Candidate, KnownVideo, drop_repeats, merge_hits
from momentseek.search.hit import Results
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.state import Ids, LibraryState, StreamIndex
from momentseek.search.streams.vision import query_of_vector


@dataclass(frozen=True, eq=False)
class SearchExample:
    """What moments should look like: a unit vector, and the moment it was taken from, if it is in the library."""

    vector: Vectors
    video: Video | None = None
    start: float = 0.0
    end: float = 0.0

    def is_shown_by(self, candidate: Candidate, video: KnownVideo) -> bool:
        """Whether a candidate shows some of the example itself, be it in a copy of the file."""
        if self.video is None or (video.hash or video.id) != (self.video.hash or self.video.id):
            return False
        return candidate.start < self.end and self.start < candidate.end


def example_of_moment(index: StreamIndex, video: Video, start: float, end: float) -> SearchExample:
    """The clips of a moment as an example: the mean of their vectors; a moment shorter than a clip is that clip."""
    rows = index.rows(video.id)
    if rows is None or not len(rows) or not np.isfinite(rows).all():
        raise MomentseekError(f"{video.name}: has no sound vectors to compare with; run momentseek verify")
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
    """Refuse words beside an example."""
    if where or where.avoid or where.unsaid:
        raise MomentseekError(
            "an example and words exclude each other; of a query, only in:, before: and after: go with an example"
        )


def search_like(engine: Engine, example: SearchExample, where: Query, options: SearchOptions) -> Results:
    """The moments that look most like an example, in the videos that the filters of ``where`` let pass."""
    began = time.perf_counter()
    check_filters(where)
    state = engine.state()
    allowed = allowed_videos(state.catalog, where)
    if allowed is not None and not len(allowed):
        return Results([], where, 0, time.perf_counter() - began, NOTHING_PASSES_NOTE)
    session = ExampleSession(state, example, where, options, allowed)
    results = session.show(session.rank())
    results.took = time.perf_counter() - began
    return results


class ExampleSession(SearchSession):
    """One search by an example: what is seen alone is asked, and the example itself is no answer."""

    def __init__(
        self, state: LibraryState, example: SearchExample, where: Query, options: SearchOptions, allowed: Ids | None
    ) -> None:
        super().__init__(state, where, options, allowed)
        self.example = example

    def rank(self) -> list[Candidate]:
        """Rank the moments that look like the example."""
        if not len(self.state.vision.sample):
            return []
        self.search_vision(query_of_vector(self.state.vision, self.example.vector))
        videos = self.state.videos(hit.video for hit in self.vision.hits)
        found = merge_hits(self.vision.hits, [], videos)
        return drop_repeats(self.fuse([c for c in found if not self.example.is_shown_by(c, videos[c.video])]))


def _unit(vector: Vectors) -> Vectors:
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length < 1e-6:
        raise MomentseekError("the example says nothing to the library's encoder; choose another one")
    return np.asarray(vector / length, np.float32)
