"""Fusion: the hits of all streams become candidates, merged if they are the same moment, in one ranking.

A moment of a higher level always goes first: 0.2 is added for strong and 0.1 for fair, more than any fusion gives. So
ranks never contradict levels, weak moments come last, and fusions differ only in the order within a level.
docs/measurements/search-quality.md has the formulas. A new one registers itself with ``@FUSIONS.register("name")``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.moments.arrays import FloatArray
from momentseek.core.registry import Registry
from momentseek.library.video import AnyVideo
from momentseek.search.confidence import LEVELS, combined_level
from momentseek.search.hit import Level, StreamHit, StreamRank

STREAM_WEIGHTS = {"vision": 1.0, "speech": 1.0, "text": 0.8, "described": 0.8, "sound": 1.2, "name": 0.5}
LEVEL_WEIGHTS: Mapping[Level, float] = {"strong": 1.0, "fair": 0.7, "weak": 0.1}
"""Weight of a stream's rank by the level of its hit. Otherwise the first hit of a stream unrelated to the query would
count fully. A weak hit counts little: on real videos it is no better than chance."""
FEW_WORDS_WEIGHT = 0.1
"""Further factor for weak speech: a single word of a query may be said anywhere, and must not decide the ranking."""
SURE_MEANING, UNSURE_MEANING_WEIGHT = 0.42, 0.99
"""Cosine below which speech found by meaning alone ranks after a picture of the same rank, and its factor then."""
MIN_MOMENT_SECONDS = 0.5
"""Shortest moment that is shown, if the video is that long."""
MIN_WORDS_SECONDS = 2.0
"""Shortest moment that is found by words or a sound, if the video is that long: people need this to understand it."""
SAME_MOMENT_SHARE = 0.5
"""Share of the shorter of two spans that must lie in the other for them to be one moment."""
MAX_REPEATED_SHARE = 0.5
"""Largest share of the shorter of two candidates that may lie in the other; above it the worse one is dropped."""
MAX_WORD_CANDIDATES = 100
"""Number of hits of the speech, text, sound and described streams that enter the ranking without a visual hit."""

StreamPlaces = dict[str, dict[int, int]]
"""For each stream: rank among all of its hits → rank among the moments of the answer."""


@dataclass(eq=False)
class Candidate:
    """A moment while it is being ranked; its times come from one stream, never from a union of several."""

    video: int
    start: float
    end: float
    peak: float
    """Time in seconds of the frame to show."""
    ranks: dict[str, StreamRank] = field(default_factory=dict)
    """The streams that found it, each with its rank and score there."""
    levels: dict[str, Level] = field(default_factory=dict)
    """The level in each of these streams."""
    score: float = 0.0
    """The fused score, once it is ranked."""
    first: StreamRank | None = None
    """If a model re-ranked it: its video's rank and fused score before re-ranking."""
    model: str = ""
    """Name of the model that re-ranked it; empty if none did."""
    meant: tuple[float, float, float] | None = None
    """Start and end of the cues that match by meaning, and their cosine; None if none do."""

    @property
    def level(self) -> Level:
        """The level by all streams that found it; captions and unsure speech do not confirm other streams."""
        if len(self.levels) == 1:
            return next(iter(self.levels.values()))
        alone = {"described", "speech"} if self._is_unsure_meaning else {"described"}
        others = [level for stream, level in self.levels.items() if stream not in alone]
        return max(combined_level(others), *(self.levels.get(one, "weak") for one in alone), key=LEVELS.index)

    @property
    def _is_unsure_meaning(self) -> bool:
        """Whether speech found it by meaning alone, with a low cosine."""
        return self.meant is not None and "speech" in self.ranks and self.ranks["speech"].score < SURE_MEANING

    def add_stream(self, stream: str, rank: int, score: float, level: Level) -> None:
        """Record the rank, score and level of a stream; the better of two ranks counts."""
        if stream not in self.ranks or rank < self.ranks[stream].rank:
            self.ranks[stream] = StreamRank(rank, score)
            self.levels[stream] = level

    def stream_weight(self, stream: str) -> float:
        """The weight of a stream's rank: the stream's weight times that of its level."""
        weight = STREAM_WEIGHTS[stream] * LEVEL_WEIGHTS[self.levels[stream]]
        if stream == "speech" and self.levels[stream] == "weak":
            weight *= FEW_WORDS_WEIGHT
        return weight * UNSURE_MEANING_WEIGHT if stream == "speech" and self._is_unsure_meaning else weight


def stream_places(candidates: Iterable[Candidate]) -> StreamPlaces:
    """For each stream, rank among all of its hits → rank among the candidates alone.

    A stream ranks all of its hits, but some are merged, repeat a better one, or are too weak to be shown.

    >>> one, two = Candidate(1, 0, 9, 0.0), Candidate(2, 0, 9, 0.0)
    >>> one.add_stream("vision", 4, 0.3, "fair")
    >>> two.add_stream("vision", 2, 0.4, "fair")
    >>> stream_places([one, two])
    {'vision': {2: 1, 4: 2}}
    """
    ranks: dict[str, set[int]] = {}
    for candidate in candidates:
        for name, one in candidate.ranks.items():
            ranks.setdefault(name, set()).add(one.rank)
    return {name: {rank: place for place, rank in enumerate(sorted(some), 1)} for name, some in ranks.items()}


# times, and how candidates overlap


def fit_spans(start: ArrayLike, end: ArrayLike, duration: float) -> tuple[FloatArray, FloatArray]:
    """Clip spans to their video, and extend those that are too short to watch on both sides.

    This comes before repetitions are dropped. Otherwise two short spans could become the same after extension.

    >>> starts, ends = fit_spans([9.9, 3.0, 2.0], [12.0, 3.0, 4.0], 10.0)
    >>> starts.tolist(), ends.tolist()
    ([9.5, 2.75, 2.0], [10.0, 3.25, 4.0])
    """
    least = min(MIN_MOMENT_SECONDS, duration)
    first, last = (np.clip(np.asarray(side, np.float64), 0.0, duration) for side in (start, end))
    lacking = least - (last - first)
    wide = np.minimum(np.maximum(0.0, first - lacking / 2), duration - least)
    return np.where(lacking > 0, wide, first), np.where(lacking > 0, wide + least, last)


def fit_span(start: float, end: float, duration: float, shortest: float = MIN_MOMENT_SECONDS) -> tuple[float, float]:
    """Fit one span like :func:`fit_spans`, but without arrays, because it is called for every hit of a search.

    >>> fit_span(9.9, 12.0, 10.0), fit_span(3.0, 3.0, 10.0), fit_span(3.0, 3.5, 10.0, 2.0)
    ((9.5, 10.0), (2.75, 3.25), (2.25, 4.25))
    """
    least = min(shortest, duration)
    first, last = min(max(start, 0.0), duration), min(max(end, 0.0), duration)
    lacking = least - (last - first)
    if lacking <= 0:
        return first, last
    wide = min(max(0.0, first - lacking / 2), duration - least)
    return wide, wide + least


def is_same_moment(start: float, end: float, other_start: float, other_end: float) -> bool:
    """Whether two spans of one video are the same moment.

    >>> is_same_moment(10, 12, 8, 20), is_same_moment(0, 10, 9, 30)
    (True, False)
    """
    shorter = min(end - start, other_end - other_start)
    return _shared_seconds(start, end, other_start, other_end) >= SAME_MOMENT_SHARE * shorter


def drop_repeats(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates, best first, without those that repeat a better one of the same video.

    >>> one, two, three = (Candidate(1, *span, 0.0) for span in ((0, 10), (1, 10), (20, 30)))
    >>> [c.start for c in drop_repeats([one, two, three])]
    [0, 20]
    """
    by_video: dict[int, list[Candidate]] = {}
    out = []
    for one in candidates:
        others = by_video.setdefault(one.video, [])
        if not any(_repeats(one, other) for other in others):
            others.append(one)
            out.append(one)
    return out


def drop_copies(
    candidates: Iterable[Candidate], videos: Mapping[int, AnyVideo], one_per_video: bool = False
) -> Iterator[Candidate]:
    """Keep candidates of only one of several files with the same content; with ``one_per_video``, one per video."""
    video_of: dict[str, int] = {}
    seen: set[int] = set()
    for one in candidates:
        video = videos.get(one.video)
        if video is None or video.duration <= 0:
            continue
        if video.hash and video_of.setdefault(video.hash, video.id) != video.id:
            continue
        if one_per_video and video.id in seen:
            continue
        seen.add(video.id)
        yield one


def without_times(
    candidates: Iterable[Candidate], times: Mapping[int, Sequence[tuple[float, float]]]
) -> list[Candidate]:
    """The candidates that overlap none of the times given for their videos."""
    return [c for c in candidates if not any(s < c.end and c.start < e for s, e in times.get(c.video, ()))]


def _repeats(one: Candidate, other: Candidate) -> bool:
    shared = _shared_seconds(one.start, one.end, other.start, other.end)
    return shared > MAX_REPEATED_SHARE * min(one.end - one.start, other.end - other.start)


def _shared_seconds(start: float, end: float, other_start: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(start, other_start))


# from hits of the streams to candidates


def merge_hits(
    seen: Sequence[StreamHit], words: Mapping[str, Sequence[StreamHit]], videos: Mapping[int, AnyVideo]
) -> list[Candidate]:
    """Merge the hits of the vision stream and those found by the streams of words and sounds into candidates.

    Hits on the same moment become one candidate. It has the times of the visual hit if that is at least fair, otherwise
    those of the words or the sound, which have exact times.
    """
    out: list[Candidate] = []
    by_video: dict[int, list[Candidate]] = {}

    def add(hit: StreamHit, shortest: float = MIN_WORDS_SECONDS) -> Candidate:
        start, end = fit_span(hit.start, hit.end, videos[hit.video].duration, shortest)
        one = Candidate(hit.video, start, end, (start + end) / 2 if hit.peak is None else hit.peak)
        by_video.setdefault(hit.video, []).append(one)
        out.append(one)
        return one

    for rank, hit in enumerate(seen, 1):
        if hit.video in videos:  # it may just have been removed
            add(hit, MIN_MOMENT_SECONDS).add_stream("vision", rank, hit.score, hit.level)
    for stream, hits in words.items():
        for rank, hit in enumerate(hits, 1):
            others = by_video.get(hit.video, ())
            if not others and rank > MAX_WORD_CANDIDATES:
                continue
            same = (c for c in others if is_same_moment(hit.start, hit.end, c.start, c.end))
            found = next(same, None)
            if found is None:
                if rank > MAX_WORD_CANDIDATES or hit.video not in videos:
                    continue
                found = add(hit)
            elif list(found.levels.items()) == [("vision", "weak")]:
                duration = videos[hit.video].duration
                found.start, found.end = fit_span(hit.start, hit.end, duration, MIN_WORDS_SECONDS)
                found.peak = min(max(found.peak if hit.peak is None else hit.peak, found.start), found.end)
            found.add_stream(stream, rank, hit.score, hit.level)
            found.meant = found.meant or hit.meant
    return out


# from candidates to one ranking

Fusion = Callable[[Sequence[Candidate], Mapping[str, float]], Sequence[float]]
"""Gives each candidate a number from 0 to less than ``LEVEL_STEP``, higher is better.

The mapping holds, for a stream, which difference between scores is large in this library, if that is known.
"""

FUSIONS: Registry[Fusion] = Registry("fusion")
"""All fusions by the names that ``--fusion`` takes."""
DEFAULT_FUSION = "rrf"
LEVEL_STEP = 0.1
"""Added to the score for each level: nothing for weak, once for fair, twice for strong."""
RRF_K = 60
"""The constant of reciprocal rank fusion, as published."""


def rank_candidates(
    candidates: Sequence[Candidate], fusion: str = DEFAULT_FUSION, units: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Score candidates and sort them, best first; ties by video and time, so that results are deterministic."""
    for one, value in zip(candidates, FUSIONS[fusion](candidates, units or {}), strict=True):
        one.score = LEVEL_STEP * LEVELS.index(one.level) + value
    return sorted(candidates, key=lambda c: (-c.score, c.video, c.start, c.end))


@FUSIONS.register("rrf")
def fuse_ranks(candidates: Sequence[Candidate], units: Mapping[str, float]) -> list[float]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): the sum of weight / (60 + rank) over streams.

    The weight is that of the stream times that of the level. Ranks are used because scores of streams have no common
    unit.

    >>> one = Candidate(1, 0.0, 5.0, 2.0)
    >>> one.add_stream("vision", 1, 0.3, "strong")
    >>> [round(value, 4) for value in fuse_ranks([one], {})]
    [0.0164]
    """
    return [sum(c.stream_weight(name) / (RRF_K + r.rank) for name, r in sorted(c.ranks.items())) for c in candidates]


SCORE_STEP = 0.99 * LEVEL_STEP / sum(STREAM_WEIGHTS.values())
"""Value of the best score of a stream with weight 1, such that all streams together stay below ``LEVEL_STEP``."""


@FUSIONS.register("scores")
def fuse_scores(candidates: Sequence[Candidate], units: Mapping[str, float]) -> list[float]:
    """A weighted sum of the streams' scores, each scaled to the range from 0 to 1.

    Unlike ranks, scores say how much better the first hit is than the second (Bruch, Gai and Ingber, TOIS 2023, compare
    convex combination with reciprocal ranks). With ``s`` a stream's score of a moment and ``b`` its best,

        value = 0.099 · Σ weight · exp(-(b - s) / unit)  /  Σ weight of all streams

    ``unit`` does not depend on the number of moments requested, as the lowest score found would; otherwise a second
    page could contradict the first. For pictures it is 2 spreads of the query's scores over the library's clips; for
    the other streams, whose scores begin at 0, it is half of the best. Within a stream a lower rank never counts more:
    if scores do not fall with the ranks (speech mixes weights of words with cosines of meaning), neighbours are
    replaced by their mean until they do.

    >>> first, second, third = (Candidate(1, start, start + 5.0, start) for start in (0.0, 10.0, 20.0))
    >>> for rank, (one, score) in enumerate([(first, 0.40), (second, 0.39), (third, 0.30)], 1):
    ...     one.add_stream("vision", rank, score, "strong")
    >>> [round(value / SCORE_STEP, 3) for value in fuse_scores([first, second, third], {"vision": 0.1})]
    [1.0, 0.905, 0.368]
    """
    values = [0.0] * len(candidates)
    for stream in STREAM_WEIGHTS:
        found = [i for i, c in enumerate(candidates) if stream in c.ranks]
        found.sort(key=lambda i: candidates[i].ranks[stream].rank)
        scores = falling_fit([candidates[i].ranks[stream].score for i in found])
        for i, score in zip(found, scores, strict=True):
            unit = units.get(stream, abs(scores[0]) / 2) or 1.0
            values[i] += SCORE_STEP * candidates[i].stream_weight(stream) * math.exp((score - scores[0]) / unit)
    return values


def falling_fit(values: Sequence[float]) -> list[float]:
    """The closest non-increasing values by least squares, found by pooling neighbours (Ayer et al. 1955).

    >>> falling_fit([7.0, 1.0, 3.0, 0.5])
    [7.0, 2.0, 2.0, 0.5]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] < mean:
            other, many = pools.pop()
            mean, size = (mean * size + other * many) / (size + many), size + many
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]
