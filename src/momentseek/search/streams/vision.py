"""What is seen: the query's vector against the vectors of all clips, then spans on the curves of the best videos."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.library.video import Video
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import Boundaries
from momentseek.search.confidence import SCENE_CLIPS, TOLERATED_SPREADS, Scale, evidence, odds_level
from momentseek.search.hit import Level, StreamHit
from momentseek.search.localise.localiser import LEARNED_LOCALISER, Background, Curve, Proposals, localise
from momentseek.search.query import Part
from momentseek.search.state import Encode, Evidence, LibraryState
from momentseek.search.stream_index import SampledIndex, StreamIndex, row_products
from momentseek.search.streams.moment_map import MapQuery, build_map_query, score_moments
from momentseek.search.streams.span_search import SpanBudget

MAX_VIDEOS = 100
"""Best videos on whose curves spans are sought."""
MIN_VIDEOS = 8
"""Videos on which spans are sought in any case."""
BLOCK_SHARES = (1.0, 3.0)
"""How much each of two encoders counts, the quick one first (docs/searching.md)."""
MIN_AVOIDED_LENGTH = 0.1
"""Length below which nothing is left of a thing to avoid once what is looked for is taken out of it."""


@dataclass(frozen=True, eq=False)
class BlockQuery:
    """What one of two encoders is asked: its columns of the query, and what is usual for them in the library."""

    name: str
    vector: Vectors
    scale: Scale | None
    """None if the encoder has not looked at any clip, or has nothing to say of the query."""


@dataclass(frozen=True, eq=False)
class VisionQuery:
    """What to look for as vectors, and what is usual for it in the library.

    A clip ``v`` scores ``v·q - Σ w s max(0, (v·a - m) / s_a - 1)``: the cosine with what is looked for, less, for
    each thing to avoid, its weight times the spreads by which the clip shows more of it than usual (one is
    tolerated), in units of the spread ``s`` of ``v·q``. Of a thing to avoid only what it adds to the query counts:
    ``dog -puppy`` must not punish dogs.
    """

    vector: Vectors
    """What is looked for."""
    avoid: tuple[tuple[Vectors, float, Scale], ...]
    """What is to be avoided: the vector, the weight and the usual scores of each thing."""
    spread: float
    """Spread of the library's scores without what is to be avoided."""
    scale: Scale
    """Usual scores of the library's clips, by which a hit's level is judged."""
    background: Background
    """Usual scores of the library's clips, in the form that localisers take."""
    spans: Vectors | None = None
    """The query as a trained model's boundary head finds spans by it."""
    videos: Scale | None = None
    """Usual scores of whole videos by the trained model."""
    moments: MapQuery | None = None
    """The query to a trained model that keeps vectors of moments."""
    evidence: Evidence | None = None
    """How surely clips show what the query names, where the encoder knows it by name."""

    blocks: tuple[BlockQuery, ...] = ()
    """What each of two encoders is asked, where two made the vectors."""

    def encoder_scores(self, curve: Curve, start: float, end: float) -> dict[str, float]:
        """How far each of two encoders says that the best clip of a span stands out in the library, in spreads."""
        if not self.blocks or curve.features is None:
            return {}
        inside = curve.inside(start, end)
        row = curve.features[inside][np.argmax(curve.scores[inside])]
        parts = np.split(row, np.cumsum([len(one.vector) for one in self.blocks])[:-1].tolist())
        return {
            one.name: one.scale.z(float(part @ one.vector))
            for one, part in zip(self.blocks, parts, strict=True)
            if one.scale is not None and part.any()
        }

    @property
    def by_odds(self) -> bool:
        """Whether hits are judged by the odds that two encoders give: the second has looked at clips of the library."""
        return self.evidence is not None and len(self.blocks) > 1 and self.blocks[1].scale is not None

    def clip_values(self, curve: Curve) -> FloatArray:
        """By what the clips of a video are compared with those of others: log odds where there are some, or scores."""
        if not self.by_odds or self.evidence is None or curve.features is None:
            return curve.scores.astype(np.float64)
        return self.scale.log_odds(curve.scores, *self.evidence(curve.features).T)

    def level(self, curve: Curve, start: float, end: float) -> Level:
        """How sure it is that a span of a video shows what is looked for."""
        inside = curve.inside(start, end)
        if self.by_odds:
            return odds_level(float(self.clip_values(curve)[inside].max()))
        if self.evidence is None or curve.features is None:
            return self.scale.level(evidence(curve.scores_within(start, end)))
        found = self.evidence(curve.features[inside])
        return self.scale.labelled_level(curve.scores[inside], found if found.ndim == 1 else found[:, 0])

    def scores(self, clips: Vectors) -> NDArray[np.float32]:
        """The score of each clip, given the clips' vectors."""
        return _clip_scores(clips, self.vector, self.avoid, self.spread)


def build_vision_query(
    index: SampledIndex,
    seen: Sequence[Part],
    avoid: Sequence[Part],
    encode: Encode,
    encode_spans: Encode | None = None,
    named: Evidence | None = None,
) -> VisionQuery:
    """Encode what a query looks for and what it avoids; ``encode_spans`` is a trained model's encoder for spans, and
    ``named`` tells how surely clips show what the query names.
    """
    if not len(index.sample):
        raise MomentseekError("all of the library's vectors are damaged; run momentseek verify")
    weights = np.array([part.weight for part in seen], np.float32)
    rows = encode([part.text for part in (*seen, *avoid)])
    unweighted = vector_of_parts(weights, rows[: len(seen)], index.block_edges)
    vector = balance(unweighted, index)
    spread = Scale.of(row_products(index.sample, vector)).spread
    avoided = []
    for part, avoided_row in zip(avoid, rows[len(seen) :], strict=True):
        row = balance(avoided_row, index)
        rest = row - (row @ vector) * vector
        direction = _unit_vector(rest) if np.linalg.norm(rest) > MIN_AVOIDED_LENGTH else None
        if direction is None:
            raise MomentseekError(f"the query looks for and avoids the same: {part.text}; take one of them out")
        avoided.append((direction, part.weight, Scale.of(row_products(index.sample, direction))))
    usual = _clip_scores(index.sample, vector, avoided, spread)
    query = VisionQuery(
        vector,
        tuple(avoided),
        spread,
        Scale.of(usual, index.clips),
        Background.of(usual),
        evidence=named,
        blocks=block_queries(unweighted, index),
    )
    if encode_spans is not None and index.moments is not None:
        rows = encode_spans([part.text for part in (*seen, *avoid)])
        against = [(row, part.weight) for row, part in zip(rows[len(seen) :], avoid, strict=True)]
        return replace(query, moments=build_map_query(index, weights, rows[: len(seen)], against))
    if encode_spans is not None and index.head is not None:
        spans = weights @ encode_spans([part.text for part in seen]) / np.abs(weights).sum()
        matches = [index.head.match(rows, vector) for rows in index.sample_videos]
        windows = -(-index.clips // index.head.window)
        return replace(query, spans=spans, videos=Scale.of(matches, SCENE_CLIPS * windows))
    return query


def vector_of_parts(weights: Vectors, rows: Vectors, edges: Sequence[int] = ()) -> Vectors:
    """The vector of what is looked for, given a weight and a vector for each part of it.

    It has length 1 in each of the blocks of columns between ``edges``.
    """
    found = [_unit_vector(part) for part in np.split(weights @ rows, edges)]
    if all(part is None for part in found):
        raise MomentseekError("the parts of the query cancel each other out; ask for one of them")
    empty = (np.zeros(len(part), np.float32) for part in np.split(rows[0], edges))
    return np.concatenate([zero if part is None else part for part, zero in zip(found, empty, strict=True)])


def block_queries(vector: Vectors, index: SampledIndex) -> tuple[BlockQuery, ...]:
    """What each of two encoders is asked; empty where one encoder made the vectors."""
    if not index.blocks:
        return ()
    parts = zip(index.blocks, np.split(vector, index.block_edges), index.sample_blocks, strict=True)
    return tuple(
        BlockQuery(name, part, Scale.of(row_products(sample, part)) if len(sample) and part.any() else None)
        for (name, _), part, sample in parts
    )


def balance(vector: Vectors, index: SampledIndex) -> Vectors:
    """A query's vector such that each of two encoders speaks by how far a clip stands out for it.

    Scores of two encoders scatter differently. So each block of columns is divided by the spread of its scores on the
    library's clips: the inner product with a clip is then the sum of both z-scores, up to a constant.
    """
    blocks = block_queries(vector, index)
    if not blocks:
        return vector
    weights = [0.0 if one.scale is None else share / one.scale.spread for one, share in zip(blocks, BLOCK_SHARES)]  # noqa: B905
    weighted = [one.vector * np.float32(weight) for one, weight in zip(blocks, weights, strict=True)]
    return vector_of_parts(np.ones(1, np.float32), np.concatenate(weighted)[None])


def query_of_vector(index: SampledIndex, vector: Vectors) -> VisionQuery:
    """A query that looks for what a unit vector stands for, be it of a text or of a picture."""
    vector = balance(vector, index)
    usual = row_products(index.sample, vector)
    scale = Scale.of(usual, index.clips)
    return VisionQuery(vector, (), Scale.of(usual).spread, scale, Background.of(usual))


class VisionSearch(ABC):
    """How videos are searched for one query: what scans look for, what a video scores, and the spans on it."""

    def __init__(self, query: VisionQuery, localiser: str) -> None:
        self.query, self.localiser = query, localiser
        self.curves: dict[int, Curve] = {}
        """The curves of the videos that were searched, by id."""

    @property
    @abstractmethod
    def probes(self) -> Vectors:
        """What is scanned for: a row for each scan."""

    @abstractmethod
    def scan_depth(self, depth: int) -> int:
        """Number of videos that each scan lists if spans are wanted on ``depth`` of them."""

    @abstractmethod
    def budget(self, page: int) -> SpanBudget:
        """Decides when there are enough spans for a page of this size."""

    @abstractmethod
    def video_scores(self, state: LibraryState, videos: Sequence[int]) -> dict[int, float]:
        """The scores of videos; those without vectors, or with damaged ones, are missing."""

    def spans(self, state: LibraryState, video: int) -> list[StreamHit]:
        """The spans that the localiser proposes on a video."""
        curve = self.curve(state, video)
        return [] if curve is None else hits_on_curve(video, curve, self.query, self.localiser)

    def curve(self, state: LibraryState, video: int) -> Curve | None:
        """The curve of a video, built once; None if it has no undamaged vectors."""
        if video not in self.curves:
            known = state.videos([video])
            curve = build_curve(state.vision, self.query, known[video]) if known else None
            if curve is None:
                return None
            self.curves[video] = curve
        return self.curves[video]


class ClipSearch(VisionSearch):
    """Search videos by their best clips, with the spans that a localiser proposes on their curves."""

    def __init__(self, query: VisionQuery, localiser: str) -> None:
        super().__init__(replace(query, moments=None), localiser)  # they are not asked for, and many

    @property
    def probes(self) -> Vectors:
        """What is looked for."""
        return self.query.vector[None]

    def scan_depth(self, depth: int) -> int:
        """More videos if something is to be avoided, which is known only clip by clip."""
        return depth * (4 if self.query.avoid else 1)

    def budget(self, page: int) -> SpanBudget:
        """A page of weak spans is enough."""
        return PageBudget(self.query.scale, page)

    def video_scores(self, state: LibraryState, videos: Sequence[int]) -> dict[int, float]:
        """The score of each video's best clip."""
        state.videos(videos)
        curves = {id: self.curve(state, id) for id in videos}
        return {id: float(curve.scores.max()) for id, curve in curves.items() if curve is not None}


class PageBudget:
    """Spans are sought on every video with a clip that stands out; on others, while a page of weak ones is not full."""

    def __init__(self, scale: Scale, page: int) -> None:
        self._scale, self._page = scale, page
        self._videos = self._weak = 0

    def allows(self, score: float) -> bool:
        """Whether spans are sought on the next video, whose best clip has this score."""
        # from here on all is weak: what fills a page is enough
        return self._videos < MIN_VIDEOS or self._weak < self._page or self._scale.level(score) != "weak"

    def spend(self, found: Sequence[StreamHit]) -> None:
        """Take note of what was found on it."""
        self._videos += 1
        self._weak += sum(hit.level == "weak" for hit in found)


def build_curve(index: StreamIndex, query: VisionQuery, video: Video) -> Curve | None:
    """The query's score on each clip of a video; None if the video has no undamaged vectors in this stream."""
    rows = index.rows(video.id)
    if rows is None or not len(rows):
        return None
    if not np.isfinite(rows).all():
        index.damaged_videos.add(video.id)
        return None
    edges = np.arange(len(rows) + 1, dtype=np.float64) * index.clip_seconds
    if video.duration > edges[-2]:
        edges[-1] = video.duration
    scores = query.scores(rows)
    return Curve(
        scores,
        edges,
        rows,
        np.asarray(video.shots, np.float64),
        query.background,
        _boundaries(index, query, video.id, rows, scores),
        None if query.moments is None else score_moments(index, query.moments, video),
    )


def _boundaries(
    index: StreamIndex, query: VisionQuery, video: int, rows: Vectors, scores: NDArray[np.float32]
) -> Boundaries | None:
    """Where moments start and end by a trained model's head; None where none made the library's vectors."""
    if index.head is None or query.spans is None:
        return None
    span_rows = index.span_rows(video)
    if span_rows is None:
        return None
    curve = span_rows @ query.spans
    if len(curve) != len(rows) or not np.isfinite(curve).all():
        index.damaged_videos.add(video)
        return None
    less = (rows @ query.vector - scores).astype(np.float64) if query.avoid else None
    return index.head.bounds(curve, index.head.match(rows, query.vector), less)


def hits_on_curve(video: int, curve: Curve, query: VisionQuery, localiser: str) -> list[StreamHit]:
    """The spans that a localiser proposes on one curve, as hits.

    How sure they are is judged by the clips in them, except for a boundary head's: the model says how well the video as
    a whole answers, and that is compared with other videos.
    """
    spans = localise(curve, localiser)
    bounds = curve.bounds if localiser == LEARNED_LOCALISER else None
    scores = spans.score if bounds is not None else rank_scores(curve, spans, query.clip_values(curve))
    out = []
    for start, end, score, peak in zip(spans.start, spans.end, scores, spans.peak, strict=True):
        if bounds is not None and query.videos is not None:
            level = query.videos.level(bounds.match)
        else:
            level = odds_level(score) if query.by_odds else query.level(curve, start, end)
        out.append(StreamHit(video, float(start), float(end), float(score), level, float(peak)))
    return out


def rank_scores(curve: Curve, spans: Proposals, values: FloatArray) -> FloatArray:
    """By what spans of one video, in their localiser's order, are ranked among those of other videos.

    Which video comes first, which span of a video, and where it begins and ends are three questions. A localiser
    answers the last two, by scores that only its own curve gives a meaning to; videos are compared by their best clip.
    So the first span has the value of the video's best clip, each other one that of the best clip in it, or its
    predecessor's if that is less.

    >>> curve = Curve.regular([0.5, 0.1, 0.3, 0.4], seconds=1.5)
    >>> spans = Proposals.from_columns([0, 3, 4.5], [1.5, 4.5, 6], [3, 2, 1], [1, 4, 5])
    >>> rank_scores(curve, spans, curve.scores.astype(float)).round(2).tolist()
    [0.5, 0.3, 0.3]
    """
    best = [values[curve.inside(start, end)].max() for start, end in zip(spans.start, spans.end, strict=True)]
    best[:1] = [values.max()]
    result: FloatArray = np.minimum.accumulate(np.asarray(best, np.float64))
    return result


def _clip_scores(
    clips: Vectors, vector: Vectors, avoid: Sequence[tuple[Vectors, float, Scale]], spread: float
) -> NDArray[np.float32]:
    out = row_products(clips, vector)
    for direction, weight, usual in avoid:
        excess = (row_products(clips, direction) - usual.centre) / usual.spread - TOLERATED_SPREADS
        out = out - weight * spread * np.maximum(0, excess)
    return np.asarray(out, np.float32)


def _unit_vector(vector: Vectors) -> Vectors | None:
    length = float(np.linalg.norm(vector))
    return (vector / length).astype(np.float32) if length > 1e-6 else None
