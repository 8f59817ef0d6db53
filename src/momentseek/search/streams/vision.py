"""The vision stream: compares the query's vector with those of all clips, then finds spans on the best videos."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, Positions
from momentseek.library.video import AnyVideo, VideoCard
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import Boundaries
from momentseek.recognition.exported.span_head import SpanCurves, SpanHead, SpanQuery
from momentseek.search.confidence import SCENE_CLIPS, TOLERATED_SPREADS, Scale, evidence, odds_level
from momentseek.search.hit import Level, StreamHit
from momentseek.search.localise.height import Layout, build_layouts, level_of, stretches
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, MAX_CLIPS, Background, Curve, localise
from momentseek.search.query import Part
from momentseek.search.state import Encode, Evidence, LibraryState
from momentseek.search.stream_index import SampledIndex, StreamIndex, VideoRows, row_products
from momentseek.search.streams.moment_map import MapQuery, build_map_query, score_moments
from momentseek.search.streams.span_search import SpanBudget

ScoredBlock = tuple[VideoRows, NDArray[np.float32]]
"""The vectors of the clips of videos, and their scores."""
MAX_VIDEOS = 100
"""Largest number of videos on which spans are sought."""
MIN_VIDEOS = 8
"""Smallest number of videos on which spans are sought."""
BLOCK_SHARES = (1.0, 3.0)
"""Weights of two encoders, the quick one first (docs/measurements/search-quality.md)."""
MAX_LAYOUTS = 20_000
"""Largest number of cached layouts."""
MIN_AVOIDED_LENGTH = 0.1
"""Smallest length of the vector of a thing to avoid, after the query's own direction is removed from it."""


@dataclass(frozen=True, eq=False)
class BlockQuery:
    """The query of one of two encoders: its columns of the vector, and the usual scores in the library."""

    name: str
    vector: Vectors
    scale: Scale | None
    """None if the encoder has not encoded any clip, or knows nothing of the query."""


@dataclass(frozen=True, eq=False)
class VisionQuery:
    """A query to the vision stream as vectors, with the usual scores in the library.

    A clip ``v`` scores ``v·q - Σ w s max(0, (v·a - m) / s_a - 1)``: the cosine with the query minus a penalty for each
    thing to avoid. The penalty is its weight times the number of spreads by which the clip shows more of it than usual
    (one is tolerated), in units of the spread ``s`` of ``v·q``. Only what a thing to avoid adds to the query counts:
    ``dog -puppy`` must not penalise dogs.
    """

    vector: Vectors
    """The vector to look for."""
    avoid: tuple[tuple[Vectors, float, Scale], ...]
    """What is to be avoided: the vector, the weight and the usual scores of each thing."""
    spread: float
    """Spread of the library's scores without the penalties."""
    scale: Scale
    """Usual scores of the library's clips, by which a hit's level is judged."""
    background: Background
    """Usual scores of the library's clips, in the form that localisers use."""
    spans: Vectors | None = None
    """The query's vector for a trained model's boundary head."""
    videos: Scale | None = None
    """Usual scores of whole videos by the trained model."""
    moments: MapQuery | None = None
    """The query for a map model, which keeps vectors of moments."""
    curves: SpanQuery | None = None
    """The query for a trained model that scores spans by three curves."""
    evidence: Evidence | None = None
    """Gives the probability that clips show what the query names, if the encoder has labels."""

    blocks: tuple[BlockQuery, ...] = ()
    """The queries of two encoders, if two made the vectors."""

    def encoder_scores(self, curve: Curve, start: float, end: float) -> dict[str, float]:
        """How far the best clip of a span stands out in the library by each of two encoders, in spreads."""
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
        """Whether hits are judged by the odds of two encoders; the second must have encoded clips of the library."""
        return self.evidence is not None and len(self.blocks) > 1 and self.blocks[1].scale is not None

    def signs(self, rows: Vectors | None) -> Vectors | None:
        """The evidence of clips, given their vectors; None if it is not known."""
        return None if self.evidence is None or rows is None else self.evidence(rows)

    def clip_values(self, scores: NDArray[np.float32], signs: Vectors | None) -> FloatArray:
        """The values by which clips of different videos are compared: log odds if available, otherwise scores."""
        if not self.by_odds or signs is None:
            return scores.astype(np.float64)
        return self.scale.log_odds(scores, *signs.T)

    def level(self, scores: NDArray[np.float32], signs: Vectors | None) -> Level:
        """The level of a span, given the scores and the evidence of its clips."""
        if signs is None:
            return self.scale.level(evidence(scores))
        if self.by_odds:
            return odds_level(float(self.clip_values(scores, signs).max()))
        return self.scale.labelled_level(scores, signs if signs.ndim == 1 else signs[:, 0])

    def level_on(self, curve: Curve, start: float, end: float) -> Level:
        """The level of a span on a curve."""
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
    """Encode what a query looks for and what it avoids.

    ``encode_spans`` is a trained model's encoder for spans; ``named`` gives the evidence of clips by labels.
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
    scale = Scale.of(usual, index.clips)
    spread = scale.spread
    avoided = []
    for part, avoided_row in zip(avoid, rows[len(seen) :], strict=True):
        row = balance(avoided_row, index)
        rest = row - (row @ vector) * vector
        direction = _unit_vector(rest) if np.linalg.norm(rest) > MIN_AVOIDED_LENGTH else None
        if direction is None:
            raise MomentseekError(f"the query looks for and avoids the same: {part.text}; remove one of them")
        avoided.append((direction, part.weight, Scale.of(row_products(index.sample, direction))))
    if avoided:
        usual = _clip_scores(index.sample, vector, avoided, spread)
        scale = Scale.of(usual, index.clips)
    query = VisionQuery(
        vector,
        tuple(avoided),
        spread,
        scale,
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
        windows = -(-index.clips // index.head.window)
        if isinstance(index.head, SpanHead):
            curves = index.head.query(spans)
            highest = curves.best(*_join_rows(index.sample_videos))
            scale = Scale.of(highest[np.isfinite(highest)], SCENE_CLIPS * windows)
            return replace(query, curves=curves, videos=scale)
        matches = [index.head.match(rows, vector) for rows in index.sample_videos]
        return replace(query, spans=spans, videos=Scale.of(matches, SCENE_CLIPS * windows))
    return query


def _join_rows(videos: Sequence[Vectors]) -> tuple[Vectors, Positions]:
    """Concatenate tables of rows, and return their offsets."""
    return np.concatenate(videos), np.cumsum([0, *map(len, videos)])


def vector_of_parts(weights: Vectors, rows: Vectors, edges: Sequence[int] = ()) -> Vectors:
    """The vector of a query, given a weight and a vector for each of its parts.

    It has length 1 in each of the blocks of columns between ``edges``.
    """
    found = [_unit_vector(part) for part in np.split(weights @ rows, edges)]
    if all(part is None for part in found):
        raise MomentseekError("the parts of the query cancel each other out; ask for one of them")
    empty = (np.zeros(len(part), np.float32) for part in np.split(rows[0], edges))
    return np.concatenate([zero if part is None else part for part, zero in zip(found, empty, strict=True)])


def block_products(vector: Vectors, index: SampledIndex) -> list[NDArray[np.float32]]:
    """The products of a query with the sample, for each of two encoders; empty if one encoder made the vectors."""
    if not index.blocks:
        return []
    parts = zip(np.split(vector, index.block_edges), index.sample_blocks, strict=True)
    return [row_products(sample, part) for part, (sample, _) in parts]


def block_queries(
    vector: Vectors, index: SampledIndex, products: Sequence[NDArray[np.float32]] | None = None
) -> tuple[BlockQuery, ...]:
    """The queries of two encoders; empty if one encoder made the vectors."""
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
    """The products of a balanced vector with the sample, as the sum of the known products of its blocks."""
    if not blocks:
        return row_products(index.sample, vector)
    factors = [part @ one.vector for part, one in zip(np.split(vector, index.block_edges), blocks, strict=True)]
    first, second = (factor * scores for factor, scores in zip(factors, products, strict=True))
    return np.asarray(first + second, np.float32)


def balance(vector: Vectors, index: SampledIndex, blocks: Sequence[BlockQuery] | None = None) -> Vectors:
    """Scale a query's vector such that each of two encoders counts by how far a clip stands out.

    Scores of two encoders have different spreads. So each block of columns is divided by the spread of its scores on
    the library's clips. The inner product with a clip is then a weighted sum of both z-scores, up to a constant.
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
    """A query for a unit vector, which may be that of a text or of a picture."""
    vector = balance(vector, index)
    usual = row_products(index.sample, vector)
    scale = Scale.of(usual, index.clips)
    return VisionQuery(vector, (), scale.spread, scale, Background.of(usual))


class VisionSearch(ABC):
    """A search of videos for one query: the vectors to scan for, the scores of videos, and their spans."""

    def __init__(self, query: VisionQuery, localiser: str) -> None:
        self.query, self.localiser = query, localiser

    @property
    @abstractmethod
    def probes(self) -> Vectors:
        """The vectors to scan for, a row for each scan."""

    @abstractmethod
    def scan_depth(self, depth: int) -> int:
        """Number of videos that each scan lists if spans are wanted on ``depth`` of them."""

    @abstractmethod
    def budget(self, page: int) -> SpanBudget:
        """The budget that decides when there are enough spans for a page of this size."""

    @abstractmethod
    def video_scores(self, state: LibraryState, videos: Sequence[int]) -> dict[int, float]:
        """The scores of videos; those without vectors, or with damaged ones, are missing."""

    def spans(self, state: LibraryState, videos: Sequence[int]) -> list[list[StreamHit]]:
        """The spans that the localiser proposes on each video, best first."""
        found: dict[int, list[StreamHit]] = {}
        known = state.video_cards(videos)  # those that were just removed are missing
        for block, scores in self.score_clips(state, list(known)):
            chosen = [known[id] for id in block.ids]
            spans = propose_spans(state.vision, self.query, self.localiser, chosen, block, scores)
            found |= span_hits(self.query, block, scores, spans)
        return [found.get(id, []) for id in videos]

    def score_clips(self, state: LibraryState, videos: Sequence[int]) -> Iterator[ScoredBlock]:
        """Videos in blocks, with the scores of their clips."""
        return score_videos(state.vision, self.query, videos)


class ClipSearch(VisionSearch):
    """Searches videos by their best clips, with the spans that a localiser proposes on their curves."""

    def __init__(self, query: VisionQuery, localiser: str) -> None:
        super().__init__(replace(query, moments=None), localiser)  # not needed, and large
        self._scored: list[ScoredBlock] = []

    @property
    def probes(self) -> Vectors:
        """The query's vector."""
        return self.query.vector[None]

    def scan_depth(self, depth: int) -> int:
        """Number of videos to scan: more if the query avoids something, because that is decided clip by clip."""
        return depth * (4 if self.query.avoid else 1)

    def budget(self, page: int) -> SpanBudget:
        """A budget that ends with a page of weak spans."""
        return PageBudget(self.query.scale, page)

    def video_scores(self, state: LibraryState, videos: Sequence[int]) -> dict[int, float]:
        """The score of each video's best clip."""
        found: dict[int, float] = {}
        for block, scores in score_videos(state.vision, self.query, videos):
            best = np.maximum.reduceat(scores, block.offsets[:-1])
            found |= zip(block.ids, best.tolist(), strict=True)
            if self.localiser == DEFAULT_LOCALISER:  # others are slow, and get few videos at a time
                self._scored.append((block, scores))
        return found

    def score_clips(self, state: LibraryState, videos: Sequence[int]) -> Iterator[ScoredBlock]:
        """Videos in blocks, with the scores of their clips, which are cached for the default localiser."""
        cached = [some for scored in self._scored if (some := part_of_block(*scored, set(videos)))[0].ids]
        whole = sum(len(block.ids) for block, _ in cached) == len(videos)
        return iter(cached) if whole else super().score_clips(state, videos)


class PageBudget:
    """A budget for all videos with a clip that stands out, and for others until a page of weak spans is full."""

    def __init__(self, scale: Scale, page: int) -> None:
        self._scale, self._page = scale, page
        self._videos = self._weak = 0

    def allows(self, score: float) -> bool:
        """Whether to seek spans on the next video, whose best clip has this score."""
        # once scores are weak, all later ones are, and a page of them is enough
        return self._videos < MIN_VIDEOS or self._weak < self._page or self._scale.level(score) != "weak"

    def spend(self, found: Sequence[StreamHit]) -> None:
        """Take note of what was found on it."""
        self._videos += 1
        self._weak += sum(hit.level == "weak" for hit in found)


def build_curve(index: StreamIndex, query: VisionQuery, video: AnyVideo) -> Curve | None:
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
) -> Boundaries | SpanCurves | None:
    """Scores of starts and ends by a trained model's head; None if no such model made the library's vectors."""
    if query.curves is not None:
        reach = query.curves.reach[0]
        avoided = reach * (rows @ query.vector - scores).astype(np.float64) if query.avoid else None
        return SpanCurves.of(query.curves.curves(rows), query.curves, avoided)
    if index.head is None or isinstance(index.head, SpanHead) or query.spans is None:
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


def score_videos(index: StreamIndex, query: VisionQuery, videos: Sequence[int]) -> Iterator[ScoredBlock]:
    """The vectors and scores of the clips of videos, in large blocks; videos with damaged vectors are left out."""
    for block in index.read(videos):
        with np.errstate(invalid="ignore", over="ignore"):
            scores = query.scores(block.rows)
        whole = np.logical_and.reduceat(np.isfinite(scores), block.offsets[:-1])
        if whole.all():
            yield block, scores
            continue
        index.damaged_videos.update(id for id, good in zip(block.ids, whole, strict=True) if not good)
        yield from score_videos(index, query, [id for id, good in zip(block.ids, whole, strict=True) if good])


def part_of_block(block: VideoRows, scores: NDArray[np.float32], videos: Container[int]) -> ScoredBlock:
    """Those of a block's videos that are among some, with the scores of their clips."""
    chosen = np.array([id in videos for id in block.ids], bool)
    if chosen.all():
        return block, scores
    sizes = np.diff(block.offsets)
    rows = np.repeat(chosen, sizes)
    offsets = np.cumsum([0, *sizes[chosen].tolist()])
    return VideoRows([id for id in block.ids if id in videos], offsets, block.rows[rows]), scores[rows]


class BlockSpans(NamedTuple):
    """Spans on the videos of a block, grouped by video, in the localiser's order."""

    video: Positions
    """Position of the video of each span in the block."""
    start: FloatArray
    end: FloatArray
    peak: FloatArray
    first: Positions
    """Position of its first clip in the block …"""
    last: Positions
    """… and of the clip after its last one."""

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
    videos: Sequence[VideoCard],
    block: VideoRows,
    scores: NDArray[np.float32],
) -> BlockSpans:
    """Propose spans on the videos of a block: with the default localiser all at once, otherwise one by one.

    Videos that are too long for one call of a localiser are also processed one by one.
    """
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
    videos: Sequence[VideoCard],
    block: VideoRows,
    scores: NDArray[np.float32],
    chosen: NDArray[np.bool_],
) -> BlockSpans:
    """Equal to ``localise`` with the default localiser on the chosen videos of a block, for all of them at once."""
    places, sizes = np.flatnonzero(chosen), np.diff(block.offsets)
    offsets = np.cumsum([0, *sizes[places].tolist()])
    curves = scores[np.repeat(chosen, sizes)]
    layouts = clip_layouts(index, videos, block, places.tolist())
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
    """Turn spans into hits, by video; their level is judged by the clips in them.

    The order of videos, the order of spans in a video, and their starts and ends are separate questions. A localiser
    answers the last two, with scores that are only comparable within one curve; videos are compared by their best clip.
    So the first span gets the value of the video's best clip, and each other span that of its own best clip, or that of
    the span before if it is lower.
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
    """The running minimum of values in each group; ``groups`` ascend.

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


def clip_layouts(
    index: StreamIndex, videos: Sequence[VideoCard], block: VideoRows, places: Sequence[int]
) -> list[Layout]:
    """The layouts of some videos, given their positions in a block; cached after the first search."""
    known = index.layouts
    if len(known) + len(places) > MAX_LAYOUTS:
        known.clear()
    if new := [at for at in places if block.ids[at] not in known]:
        sizes = np.diff(block.offsets)[new]
        chosen = np.isin(np.arange(len(block.ids)), new)
        rows = block.rows if chosen.all() else block.rows[np.repeat(chosen, np.diff(block.offsets))]
        found = build_layouts(
            rows,
            np.cumsum([0, *sizes.tolist()]),
            [videos[at].duration for at in new],
            [videos[at].shots for at in new],
            index.clip_seconds,
        )
        known.update(zip([block.ids[at] for at in new], found, strict=True))
    return [known[block.ids[at]] for at in places]


def clip_edges(index: StreamIndex, video: AnyVideo, clips: int) -> FloatArray:
    """The boundaries of a video's clips, in seconds."""
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
