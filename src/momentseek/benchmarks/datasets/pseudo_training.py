"""Training lists without annotators: the moments whose captions are most similar to the query.

For every training query, TVR-Ranking (section 3.3) uses the N moments with the largest :math:`sim(q, m.c)`, with
N = 1, 20 and 40, and removes the queries that also occur in validation or test.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.benchmarks.datasets.common import (
    BuiltDataset,
    Decision,
    ShowProgress,
    as_json_lines,
    no_progress,
    normalise,
    tally,
    top_similar,
)
from momentseek.benchmarks.datasets.pairs import keep_queries, require_one_annotator
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.table import Policy
from momentseek.core.progress import ShowCount
from momentseek.core.reports import count, text_table
from momentseek.measuring.formats import read_corpus
from momentseek.measuring.formats.checked import has_keys, ids, records, strings
from momentseek.measuring.formats.document import open_document
from momentseek.measuring.formats.files import read_truth
from momentseek.measuring.formats.writers import require_durations, row_videos, spans, write_id
from momentseek.recognition.encoders.protocol import TextEncoder
from momentseek.recognition.encoders.registry import text_encoder
from momentseek.recognition.encoders.text_cache import encode_cached


@dataclass(frozen=True, slots=True)
class CaptionedMoment:
    """A moment and the caption that describes it."""

    video: str
    start: float
    end: float
    duration: float
    """Length of the whole video, in seconds."""
    caption: str


@dataclass(frozen=True)
class CaptionedMoments:
    """Queries with their texts, and all captioned moments that may answer them, in the order of the files."""

    queries: Mapping[str, str]
    moments: Sequence[CaptionedMoment]
    own: Mapping[str, tuple[int, ...]]
    """Positions in ``moments`` of the moments that each query was written for, by query id."""

    @cached_property
    def moment(self) -> IntArray:
        """The number of each captioned moment's (video, start, end): one moment may have several captions."""
        numbers: dict[tuple[str, float, float], int] = {}
        return np.array([numbers.setdefault((m.video, m.start, m.end), len(numbers)) for m in self.moments], np.int64)

    @property
    def size(self) -> int:
        """Number of different moments, by video, start and end."""
        return int(self.moment.max(initial=-1)) + 1


def collect_moments(truths: Sequence[Judgements]) -> CaptionedMoments:
    """Collect the queries and captioned moments of several truths.

    A moment's caption is the file's own (TVR-Ranking's files have them), else the query written for it. The same
    moment with the same caption counts once; a moment without a caption is left out.

    >>> truth = Judgements.from_groups(
    ...     ["1", "2"], [1, 1], ["a", "b"], [0, 4], [5, 9], durations={"a": 20, "b": 30}, queries=["runs", "sits"])
    >>> collection = collect_moments([truth])
    >>> collection.moments[1], collection.own["2"]
    (CaptionedMoment(video='b', start=4.0, end=9.0, duration=30.0, caption='sits'), (1,))
    """
    queries: dict[str, str] = {}
    places: dict[CaptionedMoment, int] = {}
    own: dict[str, tuple[int, ...]] = {}
    for truth in truths:
        if truth.queries is None:
            raise MomentseekError(f"{truth.source}: has no words to compare; give annotations with sentences")
        require_one_annotator(truth)
        seconds = require_durations(truth, "tvr-ranking")
        captions = _captions(truth)
        rows = list(zip(row_videos(truth), spans(truth), truth.video.tolist(), captions, strict=True))
        for query, text in zip(truth.query_ids, truth.queries, strict=True):
            if query in queries:
                raise MomentseekError(f"{truth.source}: query {query} is in another file too; give each file once")
            queries[query] = text
            found = [
                CaptionedMoment(v, s, e, seconds[c], words)
                for v, (s, e), c, words in rows[truth.rows(query)]
                if words.strip()
            ]
            own[query] = tuple(places.setdefault(moment, len(places)) for moment in found)
    if not places:
        raise MomentseekError(f"{truths[0].source}: no moment has a caption; give annotations with sentences")
    return CaptionedMoments(queries, tuple(places), own)


def _captions(truth: Judgements) -> list[str]:
    assert truth.queries is not None
    texts = [truth.queries[q] for q in truth.row_query.tolist()]
    given = truth.columns.get("caption", [None] * len(texts))
    return [c if isinstance(c, str) else text for c, text in zip(given, texts, strict=True)]


def hours(collection: CaptionedMoments, places: Iterable[int]) -> float:
    """Return the total length of some moments in hours (Table 1's M.Dur), each counted once."""
    spans = {(m.video, m.start, m.end) for m in (collection.moments[p] for p in places)}
    return math.fsum(sorted(end - start for _, start, end in spans)) / 3600


SIMILARITY_DIGITS = 4
"""Decimal digits of the similarity, as in the published files."""


@dataclass(frozen=True)
class PseudoTraining:
    """Pseudo training lists: for each kept query (a row) the most similar moments (by position), best first."""

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
        raise MomentseekError(f"a query needs at least 1 moment, not {n}; choose another {parameter('n')}")
    banned = set(map(normalise, exclude)) - {""}
    chosen, dropped = _choose_queries(collection, queries, banned)
    if not chosen:
        raise MomentseekError(f"no query is left to train on; check {parameter('exclude')} and {parameter('queries')}")
    captions = [m.caption for m in collection.moments]
    vectors = encode_cached(encoder, [*chosen.values(), *captions], progress=progress)
    best, similarity = top_similar(vectors[: len(chosen)], vectors[len(chosen) :], n, groups=collection.moment)
    kept = (
        Decision(query, "kept", "most similar captions", _evidence(collection, query, own, score))
        for query, own, score in zip(chosen, best.tolist(), similarity, strict=True)
    )
    return PseudoTraining(collection, tuple(chosen), tuple(chosen.values()), best, similarity, (*kept, *dropped))


def training_json(training: PseudoTraining, n: int) -> bytes:
    """Return the first ``n`` moments of each query as TVR-Ranking's file: one JSON list, without relevance.

    A pair has the same ``pair_id`` in the lists of every N, because ids number the pairs of the longest lists.
    """
    wrong = np.flatnonzero(~np.isfinite(training.similarity[:, :n]).all(axis=1))
    if len(wrong):
        raise MomentseekError(
            f"query {training.query_ids[wrong[0]]} has a similarity that is not a finite number; check the encoder"
        )
    depth = training.moments.shape[1]
    entries = []
    for row, (query, text) in enumerate(zip(training.query_ids, training.queries, strict=True)):
        scores = _round_similarity(training.similarity[row, :n])
        found = [training.collection.moments[place] for place in training.moments[row, :n].tolist()]
        pairs = [
            {
                "pair_id": row * depth + rank,
                "video_name": m.video,
                "timestamp": [m.start, m.end],
                "duration": m.duration,
                "caption": m.caption,
                "similarity": score,
            }
            for rank, (m, score) in enumerate(zip(found, scores, strict=True))
        ]
        entries.append({"query_id": write_id(query), "query": text, "relevant_moment": pairs})
    return json.dumps(entries).encode()


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


def training_summary(training: PseudoTraining, lengths: Sequence[int]) -> dict[str, Any]:
    """Return counts as in TVR-Ranking's Table 1: for each N, distinct moments, videos, hours and similarities."""
    first = sum(d.evidence.get("own_rank") == 1 for d in training.decisions)
    return {
        "queries": len(training.query_ids),
        "moments_to_choose_from": training.collection.size,
        "own_moment_first": round(first / len(training.query_ids), 4),
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


QUERY_KEYS = (("query_id", "query"), ("desc_id", "desc"), ("qid", "query"))
"""Names of a query's id and text in files, including files without moments, such as TVR's public test split."""


def read_query_texts(path: str | os.PathLike[str]) -> list[str]:
    """Read the texts of all queries of a file."""
    return list(read_queries_by_id(path).values())


def read_queries_by_id(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the text of every query id of a file, whether or not the file has moments."""
    document = open_document(path)
    first = document.first_record
    for key, words in QUERY_KEYS:
        if has_keys(first, key, words):
            entries: list[Any] = records(document)
            names = map(str, ids(entries, key, document))
            return dict(zip(names, strings(entries, words, document), strict=True))
    truth = read_truth(path, invalid="keep")
    if truth.queries is None:
        raise MomentseekError(f"{path}: has no texts of queries; give a file with sentences")
    return dict(zip(truth.query_ids, truth.queries, strict=True))


def select_queries(truth: Judgements, where: str) -> Judgements:
    """Select the queries that have a label, given as ``FIELD=VALUE``.

    >>> truth = Judgements.from_groups(["1", "2"], [1, 1], ["a", "b"], [0, 4], [5, 9], fields={"type": ["v", "t"]})
    >>> select_queries(truth, "type=v").query_ids
    ('1',)
    """
    field, mark, value = where.partition("=")
    if not mark or field not in truth.fields:
        known = ", ".join(truth.fields) or "none"
        raise MomentseekError(
            f"{truth.source}: no label fits {where!r} ({parameter('where')}); its queries have: {known}"
        )
    keep = np.array([label == value for label in truth.fields[field]])
    if not keep.any():
        some = ", ".join(sorted(set(truth.fields[field]))[:5])
        raise MomentseekError(f"{truth.source}: no query has {where}; there are {some}")
    return keep_queries(truth, keep)


def build_pseudo_training(
    annotations: Sequence[str],
    out: str,
    lengths: Sequence[int],
    *,
    exclude: Sequence[str] = (),
    queries: str | None = None,
    where: str | None = None,
    encoder: str = "minilm",
    videos: str | None = None,
    invalid: Policy | None = None,
    report: str | None = None,
    progress: ShowProgress = no_progress,
) -> BuiltDataset:
    """Build training lists of several lengths from annotation files.

    ``queries`` names a file with other words for the same query ids, ``where`` a label that queries must have.
    """
    corpus = read_corpus(videos) if videos else None
    truths = [read_truth(path, corpus=corpus, invalid=invalid or "error") for path in annotations]
    collection = collect_moments([select_queries(truth, where) for truth in truths] if where else truths)
    model = text_encoder(encoder)
    with progress(f"encoding with {model.name}") as show:
        training = find_pseudo_training(
            collection,
            model,
            max(lengths),
            queries=read_queries_by_id(queries) if queries else None,
            exclude=[text for path in exclude for text in read_query_texts(path)],
            progress=show,
        )
    files: dict[str | os.PathLike[str], bytes] = {Path(out) / list_file(n): training_json(training, n) for n in lengths}
    if report:
        files[Path(report)] = as_json_lines(training.decisions)
    notes = [f"{truth.source}: {finding}" for truth in truths for finding in truth.findings]
    if collection.size < max(lengths):
        there = "is" if collection.size == 1 else "are"
        notes.append(f"there {there} only {count(collection.size, 'moment')}, so no query has more")
    found = training_summary(training, lengths)
    for reason, n in found["decisions"].get("dropped", {}).items():
        notes.append(f"left out: {count(n, 'query', 'queries')}, {reason}")
    notes.append(
        f"{count(found['queries'], 'query', 'queries')}, {count(found['moments_to_choose_from'], 'moment')} to choose "
        f"from; the own moment is first for {found['own_moment_first']:.1%}"
    )
    return BuiltDataset(files=files, summary=found, text=_summary_text(found), notes=notes)


def list_file(n: int) -> str:
    """Return TVR-Ranking's name of the file with N moments per query."""
    return f"train_top{n:02d}.json"


def _summary_text(found: dict[str, Any]) -> str:
    rows = [
        [
            list_file(int(n)),
            f"{entry['pairs']:,}",
            f"{entry['moments']:,}",
            f"{entry['videos']:,}",
            f"{entry['hours']:,.2f}",
            f"{entry['similarity']:.4f}",
            f"{entry['last_similarity']:.4f}",
        ]
        for n, entry in found["lists"].items()
    ]
    return text_table(["file", "pairs", "moments", "videos", "hours", "mean sim.", "last sim."], rows)
