"""What is seen: the query's vector against the vectors of all clips, then spans on the curves of the best videos."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, Positions
from momentseek.library.video import Video
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import Boundaries
from momentseek.search.confidence import SCENE_CLIPS, TOLERATED_SPREADS, Scale, evidence, odds_level
from momentseek.search.hit import Level, StreamHit
from momentseek.search.localise.height import Layout, level_of, stretches
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, MAX_CLIPS, Background, Curve, localise
from momentseek.search.query import Part
from momentseek.search.state import Encode, Evidence, LibraryState
from momentseek.search.stream_index import SampledIndex, StreamIndex, VideoRows, row_products
from momentseek.search.streams.moment_map import MapQuery, build_map_query, score_moments
from momentseek.search.streams.span_search import SpanBudget

MAX_VIDEOS = 100
"""Best videos on whose curves spans are sought."""
MIN_VIDEOS = 8
"""Videos on which spans are sought in any case."""
BLOCK_SHARES = (1.0, 3.0)
"""How much each of two encoders counts, the quick one first (docs/searching.md)."""
MAX_LAYOUTS = 20_000
"""Videos whose clips' layouts are kept for further searches."""
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

    def signs(self, rows: Vectors | None) -> Vectors | None:
        """How surely clips show what the query names, given their vectors; None where that is not known."""
        return None if self.evidence is None or rows is None else self.evidence(rows)

    def clip_values(self, scores: NDArray[np.float32], signs: Vectors | None) -> FloatArray:
        """By what clips are compared with those of other videos: log odds where there are some, or scores."""
        if not self.by_odds or signs is None:
            return scores.astype(np.float64)
        return self.scale.log_odds(scores, *signs.T)

    def level(self, scores: NDArray[np.float32], signs: Vectors | None) -> Level:
        """How sure it is that the clips of a span show what is looked for."""
        if signs is None:
            return self.scale.level(evidence(scores))
        if self.by_odds:
            return odds_level(float(self.clip_values(scores, signs).max()))
        return self.scale.labelled_level(scores, signs if signs.ndim == 1 else signs[:, 0])

    def level_on(self, curve: Curve, start: float, end: float) -> Level:
        """How sure it is that a span of a video shows what is looked for."""
        inside = curve.inside(start, end)
        return self.level(curve.scores[inside], self.signs(None if curve.features is None else curve.features[inside]))

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
    products = block_products(unweighted, index)
    blocks = block_queries(unweighted, index, products)
    vector = balance(unweighted, index, blocks)
    usual = joined_products(vector, index, blocks, products)
    spread = Scale.of(usual).spread
    avoided = []
    for part, avoided_row in zip(avoid, rows[len(seen) :], strict=True):
        row = balance(avoided_row, index)
        rest = row - (row @ vector) * vector
        direction = _unit_vector(rest) if np.linalg.norm(rest) > MIN_AVOIDED_LENGTH else None
        if direction is None:
            raise MomentseekError(f"the query looks for and avoids the same: {part.text}; take one of them out")
        avoided.append((direction, part.weight, Scale.of(row_products(index.sample, direction))))
    if avoided:
        usual = _clip_scores(index.sample, vector, avoided, spread)
    query = VisionQuery(
        vector,
        tuple(avoided),
        spread,
        Scale.of(usual, index.clips),
        Background.of(usual),
        evidence=named,
        blocks=blocks,
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


def block_products(vector: Vectors, index: SampledIndex) -> list[NDArray[np.float32]]:
    """The products of each of two encoders' columns of a query with the sample; empty where one made the vectors."""
    if not index.blocks:
        return []
    parts = zip(np.split(vector, index.block_edges), index.sample_blocks, strict=True)
    return [row_products(sample, part) for part, (sample, _) in parts]


def block_queries(
    vector: Vectors, index: SampledIndex, products: Sequence[NDArray[np.float32]] | None = None
) -> tuple[BlockQuery, ...]:
    """What each of two encoders is asked; empty where one encoder made the vectors."""
    if not index.blocks:
        return ()
    products = block_products(vector, index) if products is None else products
    parts = zip(index.blocks, np.split(vector, index.block_edges), index.sample_blocks, products, strict=True)
    return tuple(
        BlockQuery(name, part, Scale.of(scores[seen]) if seen.any() and part.any() else None)
        for (name, _), part, (_, seen), scores in parts
    )


def joined_products(
    vector: Vectors, index: SampledIndex, blocks: Sequence[BlockQuery], products: Sequence[NDArray[np.float32]]
) -> NDArray[np.float32]:
    """The products of a balanced vector with the sample: a sum of those of its blocks, which are known."""
    if not blocks:
        return row_products(index.sample, vector)
    factors = [part @ one.vector for part, one in zip(np.split(vector, index.block_edges), blocks, strict=True)]
    first, second = (factor * scores for factor, scores in zip(factors, products, strict=True))
    return np.asarray(first + second, np.float32)


def balance(vector: Vectors, index: SampledIndex, blocks: Sequence[BlockQuery] | None = None) -> Vectors:
    """A query's vector such that each of two encoders speaks by how far a clip stands out for it.

    Scores of two encoders scatter differently. So each block of columns is divided by the spread of its scores on the
    library's clips: the inner product with a clip is then the sum of both z-scores, up to a constant.
    """
    blocks = block_queries(vector, index) if blocks is None else blocks
    if not blocks:
        return vector
    weighted = [
        one.vector * np.float32(0.0 if one.scale is None else share / one.scale.spread)
        for one, share in zip(blocks, BLOCK_SHARES, strict=True)
    ]
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

    def spans(self, state: LibraryState, videos: Sequence[int]) -> list[list[StreamHit]]:
        """The spans that the localiser proposes on each of some videos, best first."""
        found: dict[int, list[StreamHit]] = {}
        for block, scores in score_videos(state.vision, self.query, list(state.videos(videos))):
            found |= self.block_spans(state, block, scores)
        return [found.get(id, []) for id in videos]

    def block_spans(
        self, state: LibraryState, block: VideoRows, scores: NDArray[np.float32]
    ) -> dict[int, list[StreamHit]]:
        """The spans on the videos of a block whose clips have been scored."""
        known = state.videos(block.ids)
        chosen = [known[id] for id in block.ids]
        spans = propose_spans(state.vision, self.query, self.localiser, chosen, block, scores)
        return span_hits(self.query, block, scores, spans)


class ClipSearch(VisionSearch):
    """Search videos by their best clips, with the spans that a localiser proposes on their curves."""

    def __init__(self, query: VisionQuery, localiser: str) -> None:
        super().__init__(replace(query, moments=None), localiser)  # they are not asked for, and many
        self._scored: dict[int, tuple[VideoRows, NDArray[np.float32]]] = {}
        """Videos whose best clips are known, with the block in which they were scored."""
        self._found: dict[int, list[StreamHit]] = {}

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
        found: dict[int, float] = {}
        for block, scores in score_videos(state.vision, self.query, list(state.videos(videos))):
            best = np.maximum.reduceat(scores, block.offsets[:-1])
            found |= zip(block.ids, best.tolist(), strict=True)
            if self.localiser == DEFAULT_LOCALISER:  # others take long, and are asked for few videos at a time
                self._scored |= dict.fromkeys(block.ids, (block, scores))
        return found

    def spans(self, state: LibraryState, videos: Sequence[int]) -> list[list[StreamHit]]:
        """The spans on each of some videos, best first; by the default localiser, on all videos of a block at once."""
        for id in videos:
            if id in self._scored and id not in self._found:
                block, scores = self._scored[id]
                self._found |= {one: [] for one in block.ids} | self.block_spans(state, block, scores)
        if not self._found.keys() >= set(videos):
            return super().spans(state, videos)
        return [self._found[id] for id in videos]


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
    scores = query.scores(rows)
    return Curve(
        scores,
        clip_edges(index, video, len(rows)),
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


def score_videos(
    index: StreamIndex, query: VisionQuery, videos: Sequence[int]
) -> Iterator[tuple[VideoRows, NDArray[np.float32]]]:
    """The vectors and scores of the clips of videos, many at a time; without videos whose vectors are damaged."""
    for block in index.read(videos):
        with np.errstate(invalid="ignore", over="ignore"):
            scores = query.scores(block.rows)
        whole = np.logical_and.reduceat(np.isfinite(scores), block.offsets[:-1])
        if whole.all():
            yield block, scores
            continue
        index.damaged_videos.update(id for id, good in zip(block.ids, whole, strict=True) if not good)
        yield from score_videos(index, query, [id for id, good in zip(block.ids, whole, strict=True) if good])


class BlockSpans(NamedTuple):
    """Spans on the videos of a block, those of a video together and in its localiser's order."""

    video: Positions
    """Places of their videos in the block."""
    start: FloatArray
    end: FloatArray
    peak: FloatArray
    first: Positions
    """Places of their first clips in the block …"""
    last: Positions
    """… and of those after their last ones."""

    @classmethod
    def join(cls, parts: Sequence[BlockSpans]) -> BlockSpans:
        """The spans of several lists, in the order of their videos."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))


def propose_spans(
    index: StreamIndex,
    query: VisionQuery,
    localiser: str,
    videos: Sequence[Video],
    block: VideoRows,
    scores: NDArray[np.float32],
) -> BlockSpans:
    """The spans on the videos of a block: by the default localiser at once, by others and on long videos one by one."""
    at_once = (np.diff(block.offsets) <= MAX_CLIPS) & (localiser == DEFAULT_LOCALISER)
    parts = [_default_spans(index, query, videos, block, scores, at_once)] if at_once.any() else []
    for at in np.flatnonzero(~at_once).tolist():
        curve = build_curve(index, query, videos[at])
        if curve is not None:
            spans = localise(curve, localiser)
            inside = [np.flatnonzero(curve.inside(*ends)) for ends in zip(spans.start, spans.end, strict=True)]
            first, last = np.array([(some[0], some[-1] + 1) for some in inside]).T + block.offsets[at]
            parts.append(BlockSpans(np.full(len(spans), at), spans.start, spans.end, spans.peak, first, last))
    return BlockSpans.join(parts)


def _default_spans(
    index: StreamIndex,
    query: VisionQuery,
    videos: Sequence[Video],
    block: VideoRows,
    scores: NDArray[np.float32],
    chosen: NDArray[np.bool_],
) -> BlockSpans:
    """What ``localise`` finds by the default localiser on the chosen videos of a block, for all of them together."""
    places, sizes = np.flatnonzero(chosen), np.diff(block.offsets)
    offsets = np.cumsum([0, *sizes[places].tolist()])
    curves = scores[np.repeat(chosen, sizes)]
    layouts = [clip_layout(index, videos[at], block, at) for at in places.tolist()]
    found = stretches(curves, offsets, [layout.edges for layout in layouts], *level_of(query.background))
    nth = np.repeat(np.arange(len(places)), found.counts)
    clip, edge = offsets[nth], offsets[nth] + nth  # a video has one edge more than clips
    times, middles = (np.concatenate(column) for column in list(zip(*layouts, strict=True))[:2])
    start, end = times[edge + found.firsts], times[edge + found.lasts]
    peak = np.clip(middles[clip + found.peaks], start, end)
    best = falling(curves[clip + found.peaks].astype(np.float64), nth)
    order = np.lexsort((end, start, -best, nth))
    video, first = places[nth], block.offsets[places[nth]]
    firsts, lasts = first + found.firsts, first + found.lasts
    return BlockSpans(video[order], start[order], end[order], peak[order], firsts[order], lasts[order])


def span_hits(
    query: VisionQuery, block: VideoRows, scores: NDArray[np.float32], spans: BlockSpans
) -> dict[int, list[StreamHit]]:
    """The hits of spans by video. How sure they are is judged by the clips in them.

    Which video comes first, which span of a video, and where it begins and ends are three questions. A localiser
    answers the last two, by scores that only its own curve gives a meaning to; videos are compared by their best clip.
    So the first span has the value of the video's best clip, each other one that of the best clip in it, or its
    predecessor's if that is less.
    """
    signs = query.signs(block.rows)
    values = query.clip_values(scores, signs)
    bounds = np.stack([spans.first, spans.last], axis=1).ravel()
    best = np.maximum.reduceat(np.append(values, -np.inf), bounds)[::2]
    begins = np.diff(spans.video, prepend=-1) > 0
    best[begins] = np.maximum.reduceat(values, block.offsets[:-1])[spans.video[begins]]
    out: dict[int, list[StreamHit]] = {}
    numbers = zip(*(column.tolist() for column in (*spans, falling(best, spans.video))), strict=True)
    for video, start, end, peak, first, last, score in numbers:
        if query.by_odds:
            level = odds_level(score)
        else:
            level = query.level(scores[first:last], None if signs is None else signs[first:last])
        id = block.ids[video]
        out.setdefault(id, []).append(StreamHit(id, start, end, score, level, peak))
    return out


def falling(values: FloatArray, groups: Positions) -> FloatArray:
    """Each value, or the least before it in its group; ``groups`` ascend.

    >>> falling(np.array([0.5, 0.3, 0.4, 0.9]), np.array([0, 0, 0, 2])).tolist()
    [0.5, 0.3, 0.3, 0.9]
    """
    begin = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(begin, append=len(groups))
    row = np.repeat(np.arange(len(begin)), sizes)
    column = np.arange(len(groups)) - begin[row]
    table = np.full((len(begin), sizes.max(initial=0)), np.inf)
    table[row, column] = values
    result: FloatArray = np.minimum.accumulate(table, axis=1)[row, column]
    return result


def clip_layout(index: StreamIndex, video: Video, block: VideoRows, at: int) -> Layout:
    """The layout of the clips of a video, the ``at``-th of a block; made when it is first searched."""
    if video.id not in index.layouts:
        if len(index.layouts) >= MAX_LAYOUTS:
            index.layouts.clear()
        rows = block.rows[block.offsets[at] : block.offsets[at + 1]]
        shots = np.asarray(video.shots, np.float64)
        curve = Curve(np.zeros(len(rows), np.float32), clip_edges(index, video, len(rows)), rows, shots)
        index.layouts[video.id] = Layout.of(curve)
    return index.layouts[video.id]


def clip_edges(index: StreamIndex, video: Video, clips: int) -> FloatArray:
    """Where the clips of a video begin and end, in seconds."""
    edges: FloatArray = np.arange(clips + 1, dtype=np.float64) * index.clip_seconds
    if video.duration > edges[-2]:
        edges[-1] = video.duration
    return edges


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
