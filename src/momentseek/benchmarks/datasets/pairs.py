"""Merge annotation files into one table of query–moment pairs, in which each video has one duration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, FloatArray, encode_names, offsets_of
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats.checked import number_by_video


def merge_truths(truths: Sequence[Judgements], durations: Mapping[str, float] | None = None) -> Judgements:
    """Merge the pairs of several files; ``durations`` (video → seconds) replace the files' own.

    ActivityNet's val_1 and val_2 describe the same videos in different words: their pairs are pooled under one video.
    Query ids are kept if no two files share one; otherwise they become ``VIDEO:i``, counted over all files.

    >>> one = Judgements.from_groups(["a:0"], [1], ["a"], [0], [5], durations={"a": 9.0}, queries=["sits"])
    >>> two = Judgements.from_groups(["a:0"], [1], ["a"], [2], [6], durations={"a": 9.0}, queries=["rises"])
    >>> merge_truths([one, two]).query_ids
    ('a:0', 'a:1')
    """
    for truth in truths:
        _require_pairs(truth)
    seconds = _durations(truths, durations)
    names = [truth.videos[code] for truth in truths for code in truth.video.tolist()]
    ids = [query for truth in truths for query in truth.query_ids]
    videos, codes = encode_names(names)
    shared = set.intersection(*(set(t.columns) for t in truths))
    return Judgements(
        query_ids=tuple(ids if len(set(ids)) == len(ids) else number_by_video(names)),
        offsets=np.arange(len(names) + 1),
        videos=videos,
        video=codes,
        start=np.concatenate([t.start for t in truths]),
        end=np.concatenate([t.end for t in truths]),
        relevance=np.ones(len(names), dtype=np.int8),
        durations=np.array([seconds[v] for v in videos]),
        queries=tuple(q for t in truths for q in (t.queries or [""] * len(t))),
        columns={name: sum((t.columns[name] for t in truths), ()) for name in sorted(shared)},
        findings=tuple(f for t in truths for f in t.findings),
        source=", ".join(t.source for t in truths),
    )


def count_repeated_pairs(pairs: Judgements) -> int:
    """Count the pairs that repeat another one's video, times and words; a file given twice has many."""
    keys = zip(pairs.video.tolist(), pairs.start.tolist(), pairs.end.tolist(), pairs.queries or (), strict=True)
    return sum(n - 1 for n in Counter(keys).values())


def keep_queries(truth: Judgements, keep: BoolArray) -> Judgements:
    """Keep the queries for which ``keep`` is true, with their moments; the table keeps all its videos."""
    places, rows = np.flatnonzero(keep).tolist(), np.flatnonzero(keep[truth.row_query])
    return replace(
        truth,
        query_ids=tuple(truth.query_ids[i] for i in places),
        offsets=offsets_of(truth.counts[keep].tolist()),
        video=truth.video[rows],
        start=truth.start[rows],
        end=truth.end[rows],
        relevance=truth.relevance[rows],
        queries=None if truth.queries is None else tuple(truth.queries[i] for i in places),
        fields={name: tuple(labels[i] for i in places) for name, labels in truth.fields.items()},
        columns={name: tuple(values[r] for r in rows.tolist()) for name, values in truth.columns.items()},
        agreement=None if truth.agreement is None else truth.agreement[keep],
        saliency=None,
        pools=None,
    )


def select_pairs(pairs: Judgements, keep: BoolArray) -> Judgements:
    """Select the pairs for which ``keep`` is true, in the same order, and their videos."""
    kept = keep_queries(pairs, keep)
    codes, video = np.unique(kept.video, return_inverse=True)
    videos = tuple(pairs.videos[c] for c in codes.tolist())
    return replace(kept, videos=videos, video=video.astype(np.int32), durations=pairs.durations[codes], fields={})


def swap_reversed(pairs: Judgements) -> Judgements:
    """Exchange start and end of the moments that end before they start.

    >>> wrong = Judgements.from_groups(["q"], [1], ["a"], [9], [2], durations={"a": 10.0}, invalid="keep")
    >>> swap_reversed(wrong).start.tolist(), swap_reversed(wrong).end.tolist()
    ([2.0], [9.0])
    """
    return replace(pairs, start=np.minimum(pairs.start, pairs.end), end=np.maximum(pairs.start, pairs.end))


def locations(pairs: Judgements, clip: bool = False) -> FloatArray:
    """Return ``(start, end)`` of every moment as fractions of its video; ``clip`` limits both to [0, 1].

    >>> locations(Judgements.from_groups(["q"], [1], ["a"], [2], [9], durations={"a": 8.0})).tolist()
    [[0.25, 1.125]]
    """
    shares: FloatArray = np.column_stack([pairs.start, pairs.end]) / pairs.durations[pairs.video][:, None]
    return np.clip(shares, 0, 1) if clip else shares


def require_one_annotator(truth: Judgements) -> None:
    """Raise an error for truths whose hits depend on agreement between annotators, such as DiDeMo's."""
    if truth.agreement is not None and (truth.agreement > 1).any():
        raise MomentseekError(
            f"{truth.source}: a hit there needs {int(truth.agreement.max())} annotators to agree, so a query has no "
            "moment of its own; give annotations with one opinion per query"
        )


def _require_pairs(truth: Judgements) -> None:
    for query, count in zip(truth.query_ids, truth.counts.tolist(), strict=True):
        if count != 1:
            raise MomentseekError(
                f"{truth.source}: query {query} has {count or 'no'} moments; every query needs exactly one"
            )
    if (truth.relevance != 1).any():
        raise MomentseekError(
            f"{truth.source}: has relevance levels; every query needs exactly one moment of relevance 1"
        )


def _durations(truths: Sequence[Judgements], given: Mapping[str, float] | None) -> dict[str, float]:
    seconds: dict[str, float] = {}
    where: dict[str, str] = {}
    for truth in truths:
        for video, own in zip(truth.videos, truth.durations.tolist(), strict=True):
            length = own if given is None else given.get(video, math.nan)
            if not (length > 0 and math.isfinite(length)):
                raise MomentseekError(
                    f"{truth.source}: the duration of video {video} is {'unknown' if math.isnan(length) else length}; "
                    f"give a list of videos with durations ({parameter('durations')})"
                )
            if seconds.setdefault(video, length) != length:
                raise MomentseekError(
                    f"{truth.source}: video {video} lasts {length:g} s, but {seconds[video]:g} s in {where[video]}; "
                    f"say which with a list of durations ({parameter('durations')})"
                )
            where.setdefault(video, truth.source)
    return seconds
