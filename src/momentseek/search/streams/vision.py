"""What is seen: the query's vector against the vectors of all clips, then spans on the curves of the best videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.protocol import Vectors
from momentseek.errors import MomentseekError
from momentseek.library.segments import locate
from momentseek.library.video import Video
from momentseek.search.confidence import PER_SCENE, Scale, evidence
from momentseek.search.localise.localiser import (
    LEARNED_LOCALISER,
    MAP_LOCALISER,
    MAX_SPANS,
    Background,
    Curve,
    localise,
)
from momentseek.search.query import Part
from momentseek.search.streams.moment_map import TOLERATED, MapAim, aim_moments, look_by_map, moments_of
from momentseek.search.streams.sights import Encode, Ids, StreamIndex
from momentseek.search.streams.stream_hit import StreamHit
from momentseek.trained.boundary_head import Boundaries, BoundaryHead

__all__ = ["DEPTH", "Aim", "Looked", "StreamIndex", "aim", "curve", "look", "spans"]

DEPTH = 100
"""Videos whose curves are looked at."""
FEWEST = 8
"""Videos on which spans are sought in any case."""
ALIKE = 0.1
"""Length below which nothing is left of a thing to avoid once what is looked for is taken out of it."""


@dataclass(frozen=True, eq=False)
class Aim:
    """What to look for as vectors, and what is usual for it in the library.

    A clip ``v`` scores ``v·q - Σ w s max(0, (v·a - m) / s_a - 1)``: the cosine with what is looked for, less, for
    each thing to avoid, its weight times the spreads by which the clip shows more of it than usual (one is
    tolerated), in units of the spread ``s`` of ``v·q``. Of a thing to avoid only what it adds to the query counts:
    ``dog -puppy`` must not punish dogs.
    """

    vector: Vectors
    avoid: tuple[tuple[Vectors, float, Scale], ...]
    spread: float
    scale: Scale
    background: Background
    spans: Vectors | None = None
    """Of a trained model, the query as spans are found by it."""
    videos: Scale | None = None
    """And what is usual for a video as a whole, by the model's own score."""
    moments: MapAim | None = None
    """The same of a model that keeps vectors of moments."""

    def scores(self, clips: Vectors) -> NDArray[np.float32]:
        """Of each clip."""
        return _scores(clips, self.vector, self.avoid, self.spread)


def aim(
    sights: StreamIndex, seen: Sequence[Part], avoid: Sequence[Part], encode: Encode, spans: Encode | None = None
) -> Aim:
    """Encode what a query looks for and what it avoids; ``spans`` encodes what a trained model finds spans by."""
    if not len(sights.sample):
        raise MomentseekError("all of the library's vectors are damaged; run momentseek verify")
    rows = encode([part.text for part in (*seen, *avoid)])
    weights = np.array([part.weight for part in seen], np.float32)
    vector = _unit(weights @ rows[: len(seen)])
    if vector is None:
        raise MomentseekError("the parts of the query cancel each other out; ask for one of them")
    plain = sights.sample @ vector
    spread = Scale.of(plain).spread
    avoided = []
    for part, row in zip(avoid, rows[len(seen) :], strict=True):
        rest = row - (row @ vector) * vector
        direction = _unit(rest) if np.linalg.norm(rest) > ALIKE else None
        if direction is None:
            raise MomentseekError(f"the query looks for and avoids the same: {part.text}; take one of them out")
        avoided.append((direction, part.weight, Scale.of(sights.sample @ direction)))
    usual = _scores(sights.sample, vector, avoided, spread)
    scale, level = Scale.of(usual, sights.clips), Background.of(usual)
    if spans is not None and sights.moments is not None:
        asked = spans([part.text for part in (*seen, *avoid)])
        against = [(row, part.weight) for row, part in zip(asked[len(seen) :], avoid, strict=True)]
        moments = aim_moments(sights, weights, asked[: len(seen)], against)
        return Aim(vector, tuple(avoided), spread, scale, level, moments=moments)
    if spans is None or sights.head is None:
        return Aim(vector, tuple(avoided), spread, scale, level)
    asked = weights @ spans([part.text for part in seen]) / np.abs(weights).sum()
    matches = [sights.head.match(stretch, vector) for stretch in sights.stretches]
    films = Scale.of(matches, PER_SCENE * -(-sights.clips // sights.head.window))
    return Aim(vector, tuple(avoided), spread, scale, level, asked, films)


@dataclass(frozen=True, eq=False)
class Looked:
    """The curves of the best videos and the spans on them, best first."""

    moments: list[StreamHit]
    curves: dict[int, Curve]


def look(
    sights: StreamIndex,
    target: Aim,
    videos: Callable[[Sequence[int]], Mapping[int, Video]],
    allowed: Ids | None,
    localiser: str,
    page: int = 20,
    depth: int = DEPTH,
) -> Looked:
    """The best videos by their best clip; on each, spans; all spans ranked together.

    Spans are sought on every video with a clip that stands out, ``depth`` at most; on others, while there are fewer
    than ``page`` spans.
    """
    if sights.head is not None and target.spans is not None and localiser == LEARNED_LOCALISER:
        return _look_by_model(sights, sights.head, target, videos, allowed, page, depth)
    if target.moments is not None and localiser == MAP_LOCALISER:
        of = partial(curve, sights, target)
        return Looked(*look_by_map(sights, target.moments, videos, of, allowed, depth))
    target = replace(target, moments=None)  # they are not asked for, and many
    mask = None if allowed is None else np.isin(sights.ids, allowed)
    # what must be avoided is known only clip by clip, so more videos are looked at
    reach = depth * (4 if target.avoid else 1)
    best = sights.scan.search(target.vector, reach, allowed=mask, gone=sights.gone)
    known = videos(best.ids[0].tolist())
    curves: dict[int, Curve] = {}
    for id, segment, at in zip(best.ids[0].tolist(), best.segment[0].tolist(), best.at[0].tolist(), strict=True):
        if id in known and id not in curves:
            made = curve(sights, target, known[id], (segment, at))
            if made is not None:
                curves[id] = made
    order = sorted(curves, key=lambda id: (-float(curves[id].scores.max()), id))[:depth]
    moments: list[StreamHit] = []
    for count, id in enumerate(order):
        # from here on all is weak: what fills a page is enough
        if count >= FEWEST and len(moments) >= page and target.scale.level(float(curves[id].scores.max())) == "weak":
            break
        moments += spans(id, curves[id], target, localiser)
    moments.sort(key=lambda m: (-m.score, m.video, m.start, m.end))
    return Looked(moments, curves)


def _look_by_model(
    sights: StreamIndex,
    head: BoundaryHead,
    target: Aim,
    videos: Callable[[Sequence[int]], Mapping[int, Video]],
    allowed: Ids | None,
    page: int,
    depth: int,
) -> Looked:
    """The best videos by a trained model's score, and spans on them until no other video could have a better one.

    The scan finds candidates by all modalities together and by each alone; then the model's own score ranks them.
    """
    mask = None if allowed is None else np.isin(sights.ids, allowed)
    best = sights.scan.search(head.probes(target.vector), depth, allowed=mask, gone=sights.gone)
    places = {
        id: (segment, at)
        for id, segment, at in zip(
            *(column.ravel().tolist() for column in (best.ids, best.segment, best.at)), strict=True
        )
    }
    known = videos(list(places))
    match = {id: head.match(sights.segments[s].vectors(at), target.vector) for id, (s, at) in places.items()}
    order = sorted((id for id in places if id in known), key=lambda id: (-match[id], id))[:depth]
    curves: dict[int, Curve] = {}
    moments: list[StreamHit] = []
    enough = -np.inf
    for id in order:
        if head.alpha * match[id] < enough:
            break
        made = curve(sights, target, known[id], places[id])
        if made is not None:
            curves[id] = made
            moments += spans(id, made, target, LEARNED_LOCALISER)
            if len(moments) >= page:
                enough = sorted((m.score for m in moments), reverse=True)[page - 1]
    moments.sort(key=lambda m: (-m.score, m.video, m.start, m.end))
    return Looked(moments, curves)


def curve(sights: StreamIndex, target: Aim, video: Video, place: tuple[int, int] | None = None) -> Curve | None:
    """The aim's score on each clip of a video; None if the video has no vectors in this stream."""
    place = place or sights.place(video.id)
    if place is None:
        return None
    rows = sights.segments[place[0]].vectors(place[1])
    if not len(rows):
        return None
    if not np.isfinite(rows).all():
        sights.broken.add(video.id)
        return None
    edges = np.arange(len(rows) + 1, dtype=np.float64) * sights.clip_seconds
    if video.duration > edges[-2]:
        edges[-1] = video.duration
    shots = np.asarray(video.shots, np.float64)
    scores = target.scores(rows)
    bounds = _bounds(sights, target, video.id, rows, scores)
    moments = None if target.moments is None else moments_of(sights, target.moments, video)
    return Curve(scores, edges, rows, shots, target.background, bounds, moments)


def _bounds(
    sights: StreamIndex, target: Aim, video: int, rows: Vectors, scores: NDArray[np.float32]
) -> Boundaries | None:
    """What a trained model says of a video's starts and ends; None where none made the library's vectors."""
    place = locate(sights.spans, video)
    if sights.head is None or target.spans is None or place is None:
        return None
    found = sights.spans[place[0]].vectors(place[1]) @ target.spans
    if len(found) != len(rows) or not np.isfinite(found).all():
        sights.broken.add(video)
        return None
    less = (rows @ target.vector - scores).astype(np.float64) if target.avoid else None
    return sights.head.bounds(found, sights.head.match(rows, target.vector), less)


def spans(video: int, on: Curve, target: Aim, localiser: str) -> list[StreamHit]:
    """The spans of one curve.

    How sure they are is told by the clips in them, but for a trained model's: it says of the video how well it answers,
    and that stands beside what it says of other videos.
    """
    got = localise(on, localiser, limit=MAX_SPANS)
    bounds = on.bounds if localiser == LEARNED_LOCALISER else None
    out = []
    for start, end, score, peak in zip(got.start, got.end, got.score, got.peak, strict=True):
        if bounds is not None and target.videos is not None:
            level = target.videos.level(bounds.match)
        else:
            level = target.scale.level(evidence(on.scores_within(start, end)))
        out.append(StreamHit(video, float(start), float(end), float(score), level, float(peak)))
    return out


def _scores(
    clips: Vectors, vector: Vectors, avoid: Sequence[tuple[Vectors, float, Scale]], spread: float
) -> NDArray[np.float32]:
    out = clips @ vector
    for direction, weight, usual in avoid:
        excess = (clips @ direction - usual.centre) / usual.spread - TOLERATED
        out = out - weight * spread * np.maximum(0, excess)
    return np.asarray(out, np.float32)


def _unit(vector: Vectors) -> Vectors | None:
    length = float(np.linalg.norm(vector))
    return (vector / length).astype(np.float32) if length > 1e-6 else None
