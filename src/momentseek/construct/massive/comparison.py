"""Compares our pools with a published file's: how many positives, which of them, and what our rules say of theirs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.construct.massive.construction import MassiveDataset, as_truth
from momentseek.construct.massive.scores import MassiveSource, TextSimilarity, video_similarity
from momentseek.errors import MomentseekError
from momentseek.moments import Judgements

QueryKey = tuple[str, str, int]
"""Own video, sentence, and which of the video's equal sentences: ids change when queries are left out."""


@dataclass(frozen=True)
class PoolSides:
    """The further positives and the negatives of one query's pool, by name."""

    positives: frozenset[str]
    negatives: frozenset[str]


@dataclass(frozen=True)
class PoolComparison:
    """How far our pools and published ones agree; shares are over the queries that both files have."""

    both: int
    only_ours: int
    only_theirs: int
    our_positives: Mapping[int, int]
    their_positives: Mapping[int, int]
    """Number of queries by their number of further positives."""
    positives_overlap: float
    """Mean Jaccard index of the further positives, over queries where either file has any."""
    negatives_overlap: float
    """Mean Jaccard index of the negatives."""
    positives_reach: float
    """Share of their further positives whose similarity reaches our t+."""
    negatives_below: float
    """Share of their negatives whose similarity stays below our t-."""


def read_sides(truth: Judgements) -> dict[QueryKey, PoolSides]:
    """Read each query's positives and negatives from a truth with pools."""
    if truth.pools is None or truth.queries is None:
        raise MomentseekError(f"{truth.source}: has no pools to compare with; give an MVMR file")
    seen: Counter[tuple[str, str]] = Counter()
    found: dict[QueryKey, PoolSides] = {}
    names = [strip_extension(name) for name in truth.videos]
    for i, text in enumerate(truth.queries):
        moments = truth.video[truth.offsets[i] : truth.offsets[i + 1]].tolist()
        pool = truth.pools.video[truth.pools.offsets[i] : truth.pools.offsets[i + 1]].tolist()
        if not moments:
            continue
        own = names[moments[0]]
        positives = frozenset(names[v] for v in moments) - {own}
        negatives = frozenset(names[v] for v in pool) - positives - {own}
        found[own, text.strip(), seen[own, text.strip()]] = PoolSides(positives, negatives)
        seen[own, text.strip()] += 1
    return found


def strip_extension(video: str) -> str:
    """Remove the file extension from a video's name; published files may or may not have it.

    >>> strip_extension("s30-d52.avi"), strip_extension("v_bXdq2zI1Ms0")
    ('s30-d52', 'v_bXdq2zI1Ms0')
    """
    return re.sub(r"\.(avi|mkv|mov|mp4|webm)$", "", video)


def compare_pools(result: MassiveDataset, reference: Judgements, similarity: TextSimilarity) -> PoolComparison:
    """Compare our pools with a published file of the same dataset."""
    ours, theirs = read_sides(as_truth(result)), read_sides(reference)
    both = [key for key in ours if key in theirs]
    if not both:
        raise MomentseekError(f"{reference.source}: shares no query with {result.data.truth.source}; is it its MVMR?")
    reach, below = _by_our_rules(result, theirs, similarity)
    return PoolComparison(
        both=len(both),
        only_ours=len(ours) - len(both),
        only_theirs=len(theirs) - len(both),
        our_positives=_distribution([ours[k] for k in both]),
        their_positives=_distribution([theirs[k] for k in both]),
        positives_overlap=_mean([jaccard(ours[k].positives, theirs[k].positives) for k in both]),
        negatives_overlap=_mean([jaccard(ours[k].negatives, theirs[k].negatives) for k in both]),
        positives_reach=reach,
        negatives_below=below,
    )


def compare_draws(one: MassiveDataset, other: MassiveDataset) -> tuple[float, float]:
    """Mean Jaccard index of positives and of negatives between two draws: the overlap that chance alone allows."""
    a, b = read_sides(as_truth(one)), read_sides(as_truth(other))
    both = [key for key in a if key in b]
    return (
        _mean([jaccard(a[k].positives, b[k].positives) for k in both]),
        _mean([jaccard(a[k].negatives, b[k].negatives) for k in both]),
    )


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """The Jaccard index of two sets (shared over all); NaN if both are empty.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    return len(a & b) / len(a | b) if a | b else float("nan")


def _by_our_rules(
    result: MassiveDataset, theirs: Mapping[QueryKey, PoolSides], similarity: TextSimilarity
) -> tuple[float, float]:
    data = result.data
    code = {strip_extension(name): place for place, name in enumerate(data.truth.videos)}
    keys = _keys(data)
    positives: list[float] = []
    negatives: list[float] = []
    for queries, _, videos in video_similarity(data, similarity):
        for query, row in zip(queries.tolist(), videos, strict=True):
            sides = theirs.get(keys[query])
            if sides:
                positives += row[[code[v] for v in sides.positives if v in code]].tolist()
                negatives += row[[code[v] for v in sides.negatives if v in code]].tolist()
    return (
        _mean((np.array(positives) >= result.settings.text_positive).tolist()),
        _mean((np.array(negatives) < result.settings.text_negative).tolist()),
    )


def _keys(data: MassiveSource) -> list[QueryKey]:
    seen: Counter[tuple[str, str]] = Counter()
    keys = []
    for own, text in zip(data.own.tolist(), data.text.tolist(), strict=True):
        name = strip_extension(data.truth.videos[own]), data.texts[text].strip()
        keys.append((*name, seen[name]))
        seen[name] += 1
    return keys


def _distribution(sides: Sequence[PoolSides]) -> dict[int, int]:
    return dict(sorted(Counter(len(s.positives) for s in sides).items()))


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if v == v]
    return sum(known) / len(known) if known else float("nan")
