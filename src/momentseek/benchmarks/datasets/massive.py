"""MVMR: give every query of a grounding dataset a pool of many videos to search (sections 4 and 5 of the paper).

A query's pool has its own video, up to k others with a sentence that says the same (similarity at least t+; its moment
becomes another positive), and negatives without any similar sentence (largest similarity below t-). If visual scores
are given, a positive must match the query at least as well as golden pairs do on average, and a negative must match it
worse than text-negative pairs do on average.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.benchmarks.datasets.common import Decision
from momentseek.benchmarks.datasets.sentences import MassiveSource, SimilarityScores, TextSimilarity, video_similarity
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import count
from momentseek.measuring.formats.checked import ids, numbers, optional, records, strings
from momentseek.measuring.formats.document import open_document
from momentseek.recognition.encoders.vector_file import read_npz

Lots = NDArray[np.uint64]


@dataclass(frozen=True)
class MassiveSettings:
    """The settings of a massive dataset (MVMR, section 5); defaults are those for Charades-STA and ActivityNet."""

    pool: int = 50
    """Number of videos that are searched for a query, including its own."""
    positives: int = 4
    """Maximum number of other videos that also answer the query (the paper counts its own too: k = 5)."""
    text_positive: float = 0.9
    text_negative: float = 0.5
    candidates: int = 20
    """Maximum number of similar videos that are considered as positives."""
    seed: int = 0
    keep_undistracted: bool = False
    """Whether to keep queries whose pool has only videos that answer them."""

    def __post_init__(self) -> None:
        if self.pool < 2:
            raise MomentseekError(
                f"a pool of {self.pool} leaves nothing to search; choose a {parameter('pool')} of 2 or more"
            )
        if self.positives < 0 or self.candidates < 0:
            raise MomentseekError("numbers of positives and candidates must not be negative")
        if not self.text_negative <= self.text_positive:
            raise MomentseekError(
                f"{parameter('text_negative')} ({self.text_negative:g}) is above {parameter('text_positive')} "
                f"({self.text_positive:g}), so a "
                "video could be both; choose it lower"
            )


def draw_lots(names: Sequence[str], seed: int) -> Lots:
    """Draw a random 64-bit number per name (of videos or queries) from the seed."""
    return np.array([_number(f"{seed}\0{name}") for name in names], dtype=np.uint64)


def query_lots(lots: Lots, query: str) -> Lots:
    """Return the random numbers for one query (or another purpose), by its name.

    >>> lots = draw_lots(["a", "b", "c"], seed=0)
    >>> bool((query_lots(lots, "q1") == query_lots(lots, "q1")).all()), bool((query_lots(lots, "q2") == lots).any())
    (True, False)
    """
    return _mix(lots ^ np.uint64(_number(query)))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mix(x: Lots) -> Lots:
    """SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014): every bit of x affects every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


VisualScore = Callable[[str, Sequence[str]], FloatArray]
"""Returns one score per video for a query id and videos; NaN if unknown."""


def read_visual_scores(path: str | os.PathLike[str]) -> VisualScore:
    """Read visual scores of queries and videos from a file.

    It is an ``.npz`` of ``queries`` (n ids), ``videos`` (m names) and ``scores`` (n × m), or JSON Lines of
    ``{"query_id", "video", "score"}``.
    """
    return _read_matrix(path) if Path(path).suffix == ".npz" else _read_lines(path)


def _read_matrix(path: str | os.PathLike[str]) -> VisualScore:
    queries, videos, scores = read_npz(path, "queries", "videos", "scores")
    queries, videos = queries.astype(str), videos.astype(str)
    if scores.shape != (queries.size, videos.size) or scores.dtype.kind not in "fiu":
        raise MomentseekError(
            f"{path}: scores has shape {scores.shape}; expected {queries.size} queries × {videos.size} videos"
        )
    column = {video: at for at, video in enumerate(videos.tolist())}
    row = {query: at for at, query in enumerate(queries.tolist())}
    table = np.column_stack([scores.astype(np.float64), np.full(len(scores), np.nan)])

    def score(query: str, names: Sequence[str]) -> FloatArray:
        if query not in row:
            return np.full(len(names), np.nan)
        found: FloatArray = table[row[query], [column.get(name, -1) for name in names]]
        return found

    return score


def _read_lines(path: str | os.PathLike[str]) -> VisualScore:
    document = open_document(path)
    entries = records(document)
    table: dict[str, dict[str, float]] = {}
    scores = numbers(optional(entries, "score"), document, "score").tolist()
    for query, video, value in zip(
        ids(entries, "query_id", document), strings(entries, "video", document), scores, strict=True
    ):
        table.setdefault(str(query), {})[video] = value

    def score(query: str, names: Sequence[str]) -> FloatArray:
        known = table.get(query, {})
        return np.array([known.get(name, np.nan) for name in names], dtype=np.float64)

    return score


@dataclass(frozen=True, slots=True)
class QueryPool:
    """The pool of one query: videos (positions in the truth's ``videos``), and each positive's source query."""

    query: int
    positives: tuple[int, ...]
    sources: tuple[int, ...]
    similarity: tuple[float, ...]
    negatives: tuple[int, ...]


@dataclass(frozen=True)
class VisualFilter:
    """Visual scores, and the mean scores of golden and negative pairs that pools are filtered by."""

    score: VisualScore
    golden: float
    negative: float


@dataclass(frozen=True)
class MassiveDataset:
    """A massive dataset: the pools of the kept queries, and the decision about every query."""

    data: MassiveSource
    settings: MassiveSettings
    pools: tuple[QueryPool, ...]
    decisions: tuple[Decision, ...]
    visual: VisualFilter | None = None


def build_massive(
    data: MassiveSource,
    similarity: TextSimilarity,
    settings: MassiveSettings | None = None,
    visual: VisualScore | None = None,
) -> MassiveDataset:
    """Draw every query's pool; queries whose pool cannot be filled, or has no negative, are dropped."""
    settings = settings or MassiveSettings()
    require_videos(data, settings)
    filters = _build_visual_filter(data, similarity, settings, visual) if visual else None
    lots = draw_lots(data.truth.videos, settings.seed)
    pools: list[QueryPool] = []
    decisions: list[Decision] = []
    for query, sentences, row in _rows(data, similarity):
        pool, decision = _decide(data, settings, filters, lots, query, sentences, row)
        decisions.append(decision)
        if decision.outcome == "kept":
            pools.append(pool)
    return MassiveDataset(data, settings, tuple(pools), tuple(decisions), filters)


def require_videos(data: MassiveSource, settings: MassiveSettings) -> None:
    """Raise an error for pools that are larger than the collection."""
    videos = len(data.truth.videos)
    if videos < settings.pool:
        raise MomentseekError(
            f"{data.truth.source}: has {count(videos, 'video')}, fewer than a pool of {settings.pool}; "
            f"choose a smaller {parameter('pool')} or give more annotations"
        )


def as_truth(result: MassiveDataset) -> Judgements:
    """Return the kept queries as ground truth: own moments first, then the positives'; pools are in the same order."""
    truth = result.data.truth
    assert truth.queries is not None
    rows: list[int] = []
    counts: list[int] = []
    sentences: list[str] = []
    for pool in result.pools:
        of = [pool.query] * int(truth.counts[pool.query]) + list(pool.sources)
        rows += range(int(truth.offsets[pool.query]), int(truth.offsets[pool.query + 1]))
        rows += (int(truth.offsets[source]) for source in pool.sources)
        sentences += (truth.queries[q] for q in of)
        counts.append(len(of))
    members = [[int(result.data.own[p.query]), *p.positives, *p.negatives] for p in result.pools]
    names = truth.videos
    return Judgements.from_groups(
        [truth.query_ids[p.query] for p in result.pools],
        counts,
        [names[v] for v in truth.video[rows].tolist()],
        truth.start[rows],
        truth.end[rows],
        durations=dict(zip(names, truth.durations.tolist(), strict=True)),
        queries=[truth.queries[p.query] for p in result.pools],
        columns={"sentence": sentences},
        pools=(map(len, members), [names[v] for pool in members for v in pool]),
        invalid="keep",
        source=truth.source,
    )


def _rows(data: MassiveSource, similarity: TextSimilarity) -> Iterator[tuple[int, SimilarityScores, SimilarityScores]]:
    for queries, sentences, videos in video_similarity(data, similarity):
        yield from zip(queries.tolist(), sentences, videos, strict=True)


def _sides(
    data: MassiveSource, settings: MassiveSettings, query: int, videos: SimilarityScores
) -> tuple[BoolArray, BoolArray]:
    other = np.arange(len(videos)) != data.own[query]
    return other & (videos >= settings.text_positive), other & (videos < settings.text_negative)


def _build_visual_filter(
    data: MassiveSource, similarity: TextSimilarity, settings: MassiveSettings, score: VisualScore
) -> VisualFilter:
    names = data.truth.videos
    golden: list[float] = []
    total = known_pairs = 0.0
    for query, _, videos in _rows(data, similarity):
        name = data.truth.query_ids[query]
        golden += score(name, [names[data.own[query]]]).tolist()
        _, different = _sides(data, settings, query, videos)
        known = score(name, [names[v] for v in np.flatnonzero(different).tolist()])
        total += float(np.nansum(known))
        known_pairs += float(np.isfinite(known).sum())
    if not np.isfinite(golden).any() or not known_pairs:
        raise MomentseekError(
            f"the visual scores ({parameter('features')}) cover no query with its own video, or none with a "
            "negative; check their ids"
        )
    return VisualFilter(score, float(np.nanmean(golden)), total / known_pairs)


def _decide(
    data: MassiveSource,
    settings: MassiveSettings,
    visual: VisualFilter | None,
    lots: Lots,
    query: int,
    sentences: SimilarityScores,
    videos: SimilarityScores,
) -> tuple[QueryPool, Decision]:
    name = data.truth.query_ids[query]
    similar, different = _sides(data, settings, query, videos)
    order = np.argsort(query_lots(lots, data.names[query]), kind="stable")
    candidates = order[similar[order]]
    negatives = order[different[order]]
    looked_at = candidates[: settings.candidates]
    if visual:
        looked_at = looked_at[_visual_scores(visual, data, name, looked_at) >= visual.golden]
        negatives = negatives[_visual_scores(visual, data, name, negatives) < visual.negative]
    positives = looked_at[: min(settings.positives, settings.pool - 1)]
    needed = settings.pool - 1 - len(positives)
    sources = [_most_similar(data, sentences, v) for v in positives.tolist()]
    pool = QueryPool(
        query,
        tuple(positives.tolist()),
        tuple(sources),
        tuple(float(sentences[s]) for s in sources),
        tuple(negatives[:needed].tolist()),
    )
    evidence = {
        "candidates": len(candidates),
        "positives": len(positives),
        "negatives_available": len(negatives),
        "negatives_needed": needed,
    }
    if len(negatives) < needed:
        return pool, Decision(name, "dropped", "too few negatives for the pool", evidence)
    if not needed and not settings.keep_undistracted:
        return pool, Decision(name, "dropped", "no distractor in the pool", evidence)
    reason = "own moment and others" if len(positives) else "own moment only"
    return pool, Decision(name, "kept", reason, evidence)


def _visual_scores(visual: VisualFilter, data: MassiveSource, name: str, videos: IntArray) -> FloatArray:
    return visual.score(name, [data.truth.videos[v] for v in videos.tolist()])


def _most_similar(data: MassiveSource, sentences: SimilarityScores, video: int) -> int:
    """Return the query of the video that made it a positive; the first one of equals."""
    own = data.by_video[data.bounds[video] : data.bounds[video + 1]]
    return int(own[np.argmax(sentences[own])])
