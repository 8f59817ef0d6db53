"""Searching a library whose vectors a trained model made, by the model's own scores instead of clip by clip.

A model with a boundary head (XML, ReLoCLNet) scores videos, and its head finds spans on their curves; a map model (MMN,
CroCs) keeps vectors of moments, and scores these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from momentseek.library.video import Video
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import BoundaryHead
from momentseek.recognition.exported.moment_map import MomentScores
from momentseek.search.confidence import Scale
from momentseek.search.fusion import KnownVideo
from momentseek.search.hit import StreamHit
from momentseek.search.localise.localiser import LEARNED_LOCALISER, MAX_SPANS, Curve, localise
from momentseek.search.state import LibraryState
from momentseek.search.streams.span_search import SpanBudget
from momentseek.search.streams.vision import (
    ClipSearch,
    VisionQuery,
    VisionSearch,
    build_curve,
)


class HeadSearch(VisionSearch):
    """Search videos by the score of a model with a boundary head, and spans until no other could have a better one.

    The scans find candidates by all modalities together and by each alone; then the model's own score ranks them.
    """

    def __init__(self, query: VisionQuery, head: BoundaryHead) -> None:
        super().__init__(query, LEARNED_LOCALISER)
        self._head = head

    @property
    def probes(self) -> Vectors:
        """What is looked for, by all modalities and by each."""
        return self._head.probes(self.query.vector)

    def scan_depth(self, depth: int) -> int:
        """As many as spans are wanted on."""
        return depth

    def budget(self, page: int) -> SpanBudget:
        """A page of the best spans is enough."""
        return HeadBudget(self._head.alpha, page)

    def video_scores(self, state: LibraryState, videos: Sequence[int]) -> dict[int, float]:
        """The model's score of each video."""
        found = {id: state.vision.rows(id) for id in state.videos(videos)}
        return {id: self._head.match(rows, self.query.vector) for id, rows in found.items() if rows is not None}

    def spans(self, state: LibraryState, videos: Sequence[int]) -> list[list[StreamHit]]:
        """The head's spans. The model says how well a video as a whole answers; that is compared with other videos."""
        found = []
        for id in videos:
            curve = build_curve(state.vision, self.query, known) if (known := state.videos([id]).get(id)) else None
            if curve is None or curve.bounds is None or self.query.videos is None:
                found += super().spans(state, [id])
                continue
            spans, level = localise(curve, self.localiser), self.query.videos.level(curve.bounds.match)
            columns = zip(
                spans.start.tolist(), spans.end.tolist(), spans.score.tolist(), spans.peak.tolist(), strict=True
            )
            found.append([StreamHit(id, start, end, score, level, peak) for start, end, score, peak in columns])
        return found


def choose_search(query: VisionQuery, localiser: str, head: BoundaryHead | None) -> VisionSearch:
    """How to search videos for a query: by a trained model's head where that is wanted and exists, else by clips."""
    if head is not None and query.spans is not None and localiser == LEARNED_LOCALISER:
        return HeadSearch(query, head)
    return ClipSearch(query, localiser)


class HeadBudget:
    """Spans are sought until no other video could have one that is better than a page of those found."""

    def __init__(self, alpha: float, page: int) -> None:
        self._alpha, self._page = alpha, page
        self._scores: list[float] = []

    def allows(self, score: float) -> bool:
        """Whether spans are sought on the next video, to which the model gives this score."""
        return len(self._scores) < self._page or self._alpha * score >= self._scores[self._page - 1]

    def spend(self, found: Sequence[StreamHit]) -> None:
        """Take note of what was found on it."""
        self._scores = sorted([*self._scores, *(hit.score for hit in found)], reverse=True)


def moments_of_video(state: LibraryState, query: VisionQuery, video: Video) -> list[StreamHit]:
    """The moments of a video that enter the ranking, best first; none where it has no undamaged vectors."""
    assert query.moments is not None
    curve = build_curve(state.vision, query, video)
    if curve is None or curve.moments is None or not len(curve.moments.start):
        return []
    return _best_moments(video.id, curve, curve.moments, query.moments.sureness)


def choose_moments(
    bounds: Mapping[int, float],
    videos: Mapping[int, KnownVideo],
    find: Callable[[int], list[StreamHit]],
    depth: int,
) -> list[StreamHit]:
    """The moments of the ``depth`` best videos, which are searched in the order of what they can score at most.

    ``find`` gives a video's moments, best first. How many moments are wanted does not matter: surer ones go first, and
    how sure one is does not follow from its score. Files with the same content count as one video.
    """
    hits: dict[int, list[StreamHit]] = {}
    best: dict[str | int, float] = {}
    for id in sorted(videos, key=lambda id: (-bounds[id], id)):
        if len(best) >= depth and bounds[id] < sorted(best.values(), reverse=True)[depth - 1]:
            break
        found = find(id)
        if found:
            hits[id] = found
            content = content_key(videos[id])
            best[content] = max(best.get(content, -np.inf), found[0].score)
    stay = set(sorted(best, key=lambda content: -best[content])[:depth])
    return [hit for id, some in hits.items() if content_key(videos[id]) in stay for hit in some]


def _best_moments(video: int, curve: Curve, moments: MomentScores, usual: Scale) -> list[StreamHit]:
    """The moments of one video that enter the ranking."""
    out = []
    for at in moments.best(MAX_SPANS).tolist():
        start, end = float(moments.start[at]), float(moments.end[at])
        level = usual.level(float(moments.sureness[at]))
        out.append(StreamHit(video, start, end, float(moments.score[at]), level, curve.peak(start, end)))
    return out


def content_key(video: KnownVideo) -> str | int:
    """What tells a video from others that are not copies of it."""
    return video.hash or video.id
