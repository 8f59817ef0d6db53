"""Training lists without annotators: the moments whose captions are most similar to the query.

TVR-Ranking (section 3.3) takes for every training query the N moments of the largest :math:`sim(q, m.c)`, with
N = 1, 20 and 40, and removes the queries that also occur in validation or test.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.construct.decisions import Decision, tally
from momentseek.construct.pseudo_training.collection import CaptionedMoments, hours
from momentseek.construct.similarity import top_similar
from momentseek.construct.text import normalise
from momentseek.encoders import TextEncoder, encode_cached
from momentseek.errors import MomentseekError
from momentseek.formats.writing import write_id
from momentseek.moments.arrays import IntArray
from momentseek.progress import ShowCount

SIMILARITY_DIGITS = 4
"""Decimal digits of the similarity, as in the published files."""


@dataclass(frozen=True)
class PseudoTraining:
    """Pseudo training lists: for each kept query (a row) the most similar moments (by place), best first."""

    collection: CaptionedMoments
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    moments: IntArray
    similarity: NDArray[np.float32]
    decisions: tuple[Decision, ...]


def find_pseudo_training(
    collection: CaptionedMoments,
    encoder: TextEncoder,
    n: int,
    *,
    queries: Mapping[str, str] | None = None,
    exclude: Iterable[str] = (),
    progress: ShowCount | None = None,
) -> PseudoTraining:
    """Find the ``n`` most similar moments of every query, leaving out queries whose text is in ``exclude``.

    ``queries`` (id → text) replaces the collection's queries by other words, such as imprecise ones; queries that it
    lacks are left out. A moment (video, start and end) with several captions is listed once, with the most similar.
    Moments of equal similarity (their captions are equal) are in the files' order, so a query's own moment may come
    after another with the same caption. ``progress`` is called with the numbers of texts encoded and to encode.
    """
    if n < 1:
        raise MomentseekError(f"a query needs at least 1 moment, not {n}; choose another `n`")
    banned = set(map(normalise, exclude)) - {""}
    chosen, dropped = _choose_queries(collection, queries, banned)
    if not chosen:
        raise MomentseekError("no query is left to train on; check `exclude` and `queries`")
    captions = [m.caption for m in collection.moments]
    vectors = encode_cached(encoder, [*chosen.values(), *captions], progress=progress)
    best, similarity = top_similar(vectors[: len(chosen)], vectors[len(chosen) :], n, groups=collection.moment)
    kept = (
        Decision(query, "kept", "most similar captions", _evidence(collection, query, own, score))
        for query, own, score in zip(chosen, best.tolist(), similarity, strict=True)
    )
    return PseudoTraining(collection, tuple(chosen), tuple(chosen.values()), best, similarity, (*kept, *dropped))


def as_json(training: PseudoTraining, n: int) -> bytes:
    """The first ``n`` moments of each query as TVR-Ranking's file: one JSON list, without relevance.

    A pair has the same ``pair_id`` in the lists of every N: it counts (query, rank) at the longest list.
    """
    wrong = np.flatnonzero(~np.isfinite(training.similarity[:, :n]).all(axis=1))
    if len(wrong):
        raise MomentseekError(
            f"query {training.query_ids[wrong[0]]} has a similarity that is not a finite number; check the encoder"
        )
    depth = training.moments.shape[1]
    moments = [
        json.dumps(
            {"video_name": m.video, "timestamp": [m.start, m.end], "duration": m.duration, "caption": m.caption}
        )[1:-1]
        for m in training.collection.moments
    ]
    entries = []
    for row, (query, text) in enumerate(zip(training.query_ids, training.queries, strict=True)):
        pairs = ", ".join(
            f'{{"pair_id": {row * depth + rank}, {moments[place]}, "similarity": {score!r}}}'
            for rank, (place, score) in enumerate(
                zip(training.moments[row, :n].tolist(), _round_similarity(training.similarity[row, :n]), strict=True)
            )
        )
        head = f'"query_id": {json.dumps(write_id(query))}, "query": {json.dumps(text)}'
        entries.append(f'{{{head}, "relevant_moment": [{pairs}]}}'.encode())
    return b"[" + b", ".join(entries) + b"]"


def _choose_queries(
    collection: CaptionedMoments, queries: Mapping[str, str] | None, banned: set[str]
) -> tuple[dict[str, str], list[Decision]]:
    chosen: dict[str, str] = {}
    dropped: list[Decision] = []
    for query, own in collection.queries.items():
        text = own if queries is None else queries.get(query)
        if text is None:
            dropped.append(Decision(query, "dropped", "no version in --queries", {"query": own}))
        elif not text.strip():
            dropped.append(Decision(query, "dropped", "no words"))
        elif normalise(text) in banned:
            dropped.append(Decision(query, "dropped", "occurs in --exclude", {"query": text}))
        else:
            chosen[query] = text
    return chosen, dropped


def _evidence(
    collection: CaptionedMoments, query: str, best: Sequence[int], similarity: NDArray[np.float32]
) -> dict[str, object]:
    own = {int(collection.moment[place]) for place in collection.own[query]}
    rank = next((at for at, place in enumerate(best, 1) if int(collection.moment[place]) in own), None)
    first, *_, last = (*_round_similarity(similarity[:1]), *_round_similarity(similarity[-1:]))
    return {"own_rank": rank, "first": first, "last": last}


def _round_similarity(similarity: NDArray[np.float32]) -> list[float]:
    return [round(score, SIMILARITY_DIGITS) for score in similarity.tolist()]


def summary(training: PseudoTraining, lengths: Sequence[int]) -> dict[str, Any]:
    """Counts in the terms of TVR-Ranking's Table 1: for each N distinct moments, videos, hours and similarities."""
    return {
        "queries": len(training.query_ids),
        "moments_to_choose_from": training.collection.size,
        "own_moment_first": _own_first(training),
        "decisions": tally(training.decisions),
        "lists": {str(n): _list(training, n) for n in lengths},
    }


def _list(training: PseudoTraining, n: int) -> dict[str, Any]:
    used = np.unique(training.moments[:, :n]).tolist()
    last = training.similarity[:, :n][:, -1]
    return {
        "pairs": int(training.moments[:, :n].size),
        "moments": len(np.unique(training.collection.moment[used])),
        "videos": len({training.collection.moments[p].video for p in used}),
        "hours": round(hours(training.collection, used), 2),
        "similarity": round(float(training.similarity[:, :n].mean(dtype=np.float64)), 4),
        "last_similarity": round(float(last.mean(dtype=np.float64)), 4),
    }


def _own_first(training: PseudoTraining) -> float:
    own, moment = training.collection.own, training.collection.moment
    first = sum(
        bool((moment[list(own[query])] == moment[place]).any())
        for query, place in zip(training.query_ids, training.moments[:, 0].tolist(), strict=True)
    )
    return round(first / len(training.query_ids), 4)
