"""Search in a library whose vectors were made by a trained model, by the model's scores instead of clip by clip.

A model with a boundary head (XML, ReLoCLNet) scores videos, and its head finds spans on their curves; Slate scores
spans by three curves; a map model (MMN, CroCs) keeps vectors of moments, and scores these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from momentseek.library.video import AnyVideo
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import Boundaries, BoundaryHead
from momentseek.recognition.exported.moment_map import MomentScores
from momentseek.recognition.exported.span_head import SpanHead, SpanQuery
from momentseek.search.confidence import Scale
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
    """Searches videos by the score of a model with a boundary head, and finds spans with the head.

    The scans find candidate videos by all modalities together and by each alone; then the model's score ranks them.
    """

    def __init__(self, query: VisionQuery, head: BoundaryHead) -> None:
        super().__init__(query, LEARNED_LOCALISER)
        self._head = head

    @property
    def probes(self) -> Vectors:
        """The query's vectors, for all modalities together and for each alone."""
        return self._head.probes(self.query.vector)

    def scan_depth(self, depth: int) -> int:
        """The number of videos on which spans are wanted."""
        return depth

    def budget(self, page: int) -> SpanBudget:
        """A budget that ends when no other video could improve a page of the best spans."""
        return HeadBudget(self._head.alpha, page)

    def video_scores(self, state: LibraryState, videos: Sequence[int]) -> dict[int, float]:
        """The model's score of each video."""
        found = {id: state.vision.rows(id) for id in state.video_cards(videos)}
        return {id: self._head.match(rows, self.query.vector) for id, rows in found.items() if rows is not None}

    def spans(self, state: LibraryState, videos: Sequence[int]) -> list[list[StreamHit]]:
        """The head's spans; their level is judged by the model's score of the whole video."""
        found = []
        for id in videos:
            curve = build_curve(state.vision, self.query, known) if (known := state.video_cards([id]).get(id)) else None
            if curve is None or not isinstance(curve.bounds, Boundaries) or self.query.videos is None:
                found += super().spans(state, [id])
                continue
            spans, level = localise(curve, self.localiser), self.query.videos.level(curve.bounds.match)
            columns = zip(
                spans.start.tolist(), spans.end.tolist(), spans.score.tolist(), spans.peak.tolist(), strict=True
            )
            found.append([StreamHit(id, start, end, score, level, peak) for start, end, score, peak in columns])
        return found


class CurveSearch(VisionSearch):
    """Searches videos by their best spans, which are scored by three curves."""

    def __init__(self, query: VisionQuery, curves: SpanQuery) -> None:
        super().__init__(query, LEARNED_LOCALISER)
        self._curves = curves

    @property
    def probes(self) -> Vectors:
        """The query's vector for the inside of spans; the scan takes the rest from the query."""
        return self._curves.what[None]

    def scan_depth(self, depth: int) -> int:
        """Four times as many videos if something is to be avoided, because that is only known clip by clip."""
        return depth * (4 if self.query.avoid else 1)

    def budget(self, page: int) -> SpanBudget:
        """A budget that ends when no other video could improve a page of the best spans."""
        return HeadBudget(1.0, page)

    def video_scores(self, state: LibraryState, videos: Sequence[int]) -> dict[int, float]:
        """The score of each video's best span."""
        found: dict[int, float] = {}
        for block in state.vision.read(list(state.video_cards(videos))):
            best = self._curves.best(block.rows, block.offsets)
            state.vision.damaged_videos.update(id for id, z in zip(block.ids, best, strict=True) if np.isnan(z))
            found |= {id: z for id, z in zip(block.ids, best.tolist(), strict=True) if np.isfinite(z)}
        return found

    def spans(self, state: LibraryState, videos: Sequence[int]) -> list[list[StreamHit]]:
        """The best spans of each video; their level is judged by the best spans of other videos."""
        return [self._spans_of(state, id) for id in videos]

    def _spans_of(self, state: LibraryState, id: int) -> list[StreamHit]:
        curve = build_curve(state.vision, self.query, known) if (known := state.video_cards([id]).get(id)) else None
        if curve is None or self.query.videos is None:
            return []
        spans = localise(curve, self.localiser)
        columns = zip(spans.start.tolist(), spans.end.tolist(), spans.score.tolist(), spans.peak.tolist(), strict=True)
        level = self.query.videos.level
        return [StreamHit(id, start, end, score, level(score), peak) for start, end, score, peak in columns]


def choose_search(query: VisionQuery, localiser: str, head: BoundaryHead | SpanHead | None) -> VisionSearch:
    """Choose the search for a query: with a trained model's head if requested and available, otherwise by clips."""
    if localiser == LEARNED_LOCALISER and query.curves is not None:
        return CurveSearch(query, query.curves)
    if localiser == LEARNED_LOCALISER and query.spans is not None and isinstance(head, BoundaryHead):
        return HeadSearch(query, head)
    return ClipSearch(query, localiser)


class HeadBudget:
    """A budget that ends when no other video could have a span better than a page of those found."""

    def __init__(self, alpha: float, page: int) -> None:
        self._alpha, self._page = alpha, page
        self._scores: list[float] = []

    def allows(self, score: float) -> bool:
        """Whether to seek spans on the next video, to which the model gives this score."""
        return len(self._scores) < self._page or self._alpha * score >= self._scores[self._page - 1]

    def spend(self, found: Sequence[StreamHit]) -> None:
        """Take note of what was found on it."""
        self._scores = sorted([*self._scores, *(hit.score for hit in found)], reverse=True)


def moments_of_video(state: LibraryState, query: VisionQuery, video: AnyVideo) -> list[StreamHit]:
    """The moments of a video that enter the ranking, best first; empty if it has no undamaged vectors."""
    assert query.moments is not None
    curve = build_curve(state.vision, query, video)
    if curve is None or curve.moments is None or not len(curve.moments.start):
        return []
    return _best_moments(video.id, curve, curve.moments, query.moments.sureness)


def choose_moments(
    bounds: Mapping[int, float],
    videos: Mapping[int, AnyVideo],
    find: Callable[[int], list[StreamHit]],
    depth: int,
) -> list[StreamHit]:
    """Choose the moments of the ``depth`` best videos, searching videos in the order of their upper bounds.

    ``find`` returns a video's moments, best first. The number of moments requested does not matter, because moments are
    sorted by level first, and the level does not follow from the score. Files with the same content count as one video.
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


def content_key(video: AnyVideo) -> str | int:
    """A key that only copies of a video share."""
    return video.hash or video.id
