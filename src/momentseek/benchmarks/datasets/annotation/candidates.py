"""Choose the moments to judge for a query: the nearest by caption, in batches (TVR-Ranking, section 3.2).

Nobody can watch every moment of a collection for every query. Captions represent moments: candidates are the moments
whose captions are most similar to the query, 20 at first. If the last 5 of these turn out to be still relevant, more
relevant moments probably follow, and the next 20 are judged too; two batches suffice (appendix B.3). docs/judging.md
explains how the rule for "still relevant" was found.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike, NDArray

from momentseek.benchmarks.datasets.annotation.labels import read_pairs
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
from momentseek.benchmarks.datasets.pairs import keep_queries
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import count
from momentseek.measuring.formats import read_truth
from momentseek.measuring.formats.checked import column, has_keys, is_number, matrix, records, strings
from momentseek.measuring.formats.document import open_document
from momentseek.recognition.encoders.registry import text_encoder
from momentseek.recognition.encoders.text_cache import encode_cached

BATCH_CANDIDATES = 20
DECIDING_CANDIDATES = 5
STILL_RELEVANT_LEVEL = 2.0
NearestMoments = Callable[[int, IntArray], tuple[IntArray, NDArray[np.float32]]]
"""Returns, for k and the captions' moments, the k nearest moments of every query, best first.

Each moment is given by the row of its nearest caption, together with the similarity.
"""


@dataclass(frozen=True, slots=True)
class AnnotationCandidate:
    """A query–moment pair for annotators to judge."""

    pair_id: str
    query_id: str
    query: str
    video: str
    start: float
    end: float
    score: float
    rank: int
    batch: int
    caption: str
    duration: float | None = None


def rank_candidates(
    queries: Judgements, captions: Judgements, nearest: NearestMoments, k: int
) -> list[list[AnnotationCandidate]]:
    """Find every query's ``k`` nearest moments, best first; the nearest caption of a moment counts.

    Ties go to the moment that comes first. A pair's id is ``QUERY/CAPTION``, from the two ids, whatever the rank.
    """
    rows, scores = (found.tolist() for found in nearest(k, _moment_codes(captions)))
    names = _caption_ids(captions)
    texts, asked = captions.queries or (), queries.queries or ()
    seconds = [None if d != d else d for d in captions.durations.tolist()]
    owner, video = captions.row_query.tolist(), captions.video.tolist()
    start, end = captions.start.tolist(), captions.end.tolist()
    return [
        [
            AnnotationCandidate(
                pair_id=f"{query}/{names[row]}",
                query_id=query,
                query=asked[q],
                video=captions.videos[video[row]],
                start=start[row],
                end=end[row],
                score=round(score, 6),
                rank=rank,
                batch=1,
                caption=texts[owner[row]],
                duration=seconds[video[row]],
            )
            for rank, (row, score) in enumerate(zip(rows[q], scores[q], strict=True), 1)
        ]
        for q, query in enumerate(queries.query_ids)
    ]


def still_relevant(last: ArrayLike, threshold: float = STILL_RELEVANT_LEVEL) -> BoolArray:
    """Whether the mean level of each query's last candidates reaches ``threshold``; NaN means no consensus.

    >>> still_relevant([[2, 2, 1, 3, 2], [4, 0, 0, 1, float("nan")]]).tolist()
    [True, False]
    """
    levels = np.asarray(last, dtype=np.float64)
    known = np.isfinite(levels)
    total = np.where(known, levels, 0).sum(axis=1)
    result: BoolArray = known.any(axis=1) & (total >= threshold * known.sum(axis=1))
    return result


def first_batch(
    lists: Sequence[Sequence[AnnotationCandidate]], size: int = BATCH_CANDIDATES
) -> list[AnnotationCandidate]:
    """Return the candidates that are judged first for every query."""
    return [candidate for candidates in lists for candidate in candidates[:size]]


def second_batch(
    lists: Sequence[Sequence[AnnotationCandidate]],
    levels: Mapping[str, int],
    *,
    size: int = BATCH_CANDIDATES,
    last: int = DECIDING_CANDIDATES,
    threshold: float = STILL_RELEVANT_LEVEL,
) -> tuple[list[AnnotationCandidate], list[Decision]]:
    """Choose more candidates for the queries that need them, and record the reason for every query.

    ``lists`` has two batches per query, ``levels`` the judged pairs; a pair without consensus has no level. Levels
    beyond the first ``size`` raise an error: the first batch was larger, and the second would repeat some of it.
    """
    known = {c.pair_id for candidates in lists for c in candidates}
    if strange := next((pair for pair in levels if pair not in known), None):
        raise MomentseekError(
            f"the judged pair {strange} is not among these queries' candidates; give the same queries, captions, "
            "batch size and encoder as for the first batch"
        )
    for candidates in lists:
        if judged_again := next((c for c in candidates[size:] if c.pair_id in levels), None):
            raise MomentseekError(
                f"the judged pair {judged_again.pair_id} has rank {judged_again.rank}, beyond a first batch of {size}; "
                "give the batch size that the first batch had, and the labels of that batch only"
            )
    more: list[AnnotationCandidate] = []
    decisions = []
    end, none = f"the last {last} are", f"no consensus on any of the last {last}"
    if last == 1:
        end, none = "the last is", "no consensus on the last"
    for candidates in lists:
        if not candidates:
            continue
        query = candidates[0].query_id
        tail = [levels.get(c.pair_id) for c in candidates[max(0, size - last) : size]]
        judged = [level for level in tail if level is not None]
        evidence = {"levels": tail, "mean": sum(judged) / len(judged) if judged else None}
        if not any(c.pair_id in levels for c in candidates[:size]):
            decisions.append(Decision(query, "waiting", "the first batch is not judged", evidence))
        elif not judged:
            decisions.append(Decision(query, "covered", none, evidence))
        elif still_relevant([judged], threshold)[0]:
            decisions.append(Decision(query, "extended", f"{end} still relevant", evidence))
            more += [replace(c, batch=2) for c in candidates[size : 2 * size]]
        else:
            decisions.append(Decision(query, "covered", f"{end} not relevant enough", evidence))
    return more, decisions


def _moment_codes(captions: Judgements) -> IntArray:
    """Number the moments of all rows by first appearance; rows with the same video and times have the same number."""
    numbers: dict[tuple[int, float, float], int] = {}
    moments = zip(captions.video.tolist(), captions.start.tolist(), captions.end.tolist(), strict=True)
    return np.array([numbers.setdefault(moment, len(numbers)) for moment in moments], dtype=np.int64)


def _caption_ids(captions: Judgements) -> list[str]:
    """Return each row's query id, with the number of the moment if the query has several."""
    several = captions.counts > 1
    place = np.arange(len(captions.video)) - captions.offsets[captions.row_query]
    return [
        f"{captions.query_ids[q]}.{p + 1}" if several[q] else captions.query_ids[q]
        for q, p in zip(captions.row_query.tolist(), place.tolist(), strict=True)
    ]


def drop_same_wording(queries: Judgements) -> tuple[Judgements, list[Decision]]:
    """Keep the first query of each wording (ignoring case and punctuation), and record a decision on the others.

    >>> from momentseek import Judgements
    >>> rows = Judgements.from_groups(["a", "b"], [1, 1], ["v", "w"], [0, 0], [5, 5], queries=["Sit!", " sit"])
    >>> kept, decisions = drop_same_wording(rows)
    >>> kept.query_ids, decisions[0].subject, decisions[0].evidence
    (('a',), 'b', {'query': 'a'})
    """
    first: dict[str, int] = {}
    keep = np.zeros(len(queries), dtype=bool)
    decisions = []
    for place, text in enumerate(queries.queries or ()):
        same = first.setdefault(normalise(text), place)
        keep[place] = same == place
        if same != place:
            evidence = {"query": queries.query_ids[same]}
            decisions.append(Decision(queries.query_ids[place], "left out", "same words as another query", evidence))
    return keep_queries(queries, keep), decisions


CANDIDATE_KEYS = ("pair_id", "query_id", "query", "video", "start", "end")


def write_candidates(candidates: Iterable[AnnotationCandidate]) -> bytes:
    """Return the bytes of a file of candidates: JSON Lines, in the given order."""
    return b"".join(
        orjson.dumps({k: v for k, v in asdict(c).items() if v is not None}, option=orjson.OPT_APPEND_NEWLINE)
        for c in candidates
    )


def read_candidates(path: str | os.PathLike[str]) -> list[AnnotationCandidate]:
    """Read a file of candidates, or the moments of any truth file, in the file's order."""
    document = open_document(path)
    if not has_keys(document.first_record, *CANDIDATE_KEYS):
        return _from_truth(read_truth(path, invalid="keep"))
    rows = records(document)
    texts = [strings(rows, key, document) for key in ("pair_id", "query_id", "query", "video")]
    starts, ends = column(rows, "start", document), column(rows, "end", document)
    times = matrix(list(zip(starts, ends, strict=True)), 2, document, "moment")
    found = [
        AnnotationCandidate(
            pair_id=pair,
            query_id=query_id,
            query=query,
            video=video,
            start=start,
            end=end,
            score=float(_number(row, "score")),
            rank=int(_number(row, "rank")),
            batch=int(_number(row, "batch")),
            caption=str(row.get("caption", "")),
            duration=_number(row, "duration") or None,
        )
        for pair, query_id, query, video, (start, end), row in zip(*texts, times.tolist(), rows, strict=True)
    ]
    require_unique_pairs(found, str(path))
    return found


def require_unique_pairs(candidates: Sequence[AnnotationCandidate], where: str) -> None:
    """Raise an error for two pairs with the same id, whose labels could not be distinguished."""
    seen: set[str] = set()
    for c in candidates:
        if c.pair_id in seen:
            raise MomentseekError(f"{where}: pair {c.pair_id} occurs more than once; keep one of them")
        seen.add(c.pair_id)


def build_truth(candidates: Sequence[AnnotationCandidate], levels: Mapping[str, int]) -> Judgements:
    """Convert judged candidates to ground truth, with queries and moments in the candidates' order.

    Candidates without a level (discarded, or never judged) are left out; a query without any candidate left is kept.

    >>> pair = AnnotationCandidate("q1/7", "q1", "a dog runs", "park", 0.0, 5.0, 0.8, 1, 1, "the dog is running")
    >>> build_truth([pair], {"q1/7": 3}).relevance.tolist()
    [3]
    """
    require_unique_pairs(candidates, "candidates")
    known = {c.pair_id for c in candidates}
    if strange := next((pair for pair in levels if pair not in known), None):
        raise MomentseekError(f"the judged pair {strange} is not among the candidates; give the files it came from")
    groups: dict[str, list[AnnotationCandidate]] = {}
    texts: dict[str, str] = {}
    for c in candidates:
        texts.setdefault(c.query_id, c.query)
        groups.setdefault(c.query_id, []).extend([c] if c.pair_id in levels else [])
    flat = [c for group in groups.values() for c in group]
    return Judgements.from_groups(
        tuple(groups),
        map(len, groups.values()),
        [c.video for c in flat],
        [c.start for c in flat],
        [c.end for c in flat],
        [levels[c.pair_id] for c in flat],
        durations={c.video: c.duration for c in flat if c.duration is not None},
        queries=list(texts.values()),
        columns={
            "pair_id": [c.pair_id for c in flat],
            "caption": [c.caption for c in flat],
            "similarity": [c.score for c in flat],
        },
        invalid="keep",
    )


def _from_truth(truth: Judgements) -> list[AnnotationCandidate]:
    place = (i - truth.offsets[q] + 1 for i, q in enumerate(truth.row_query.tolist()))
    ids = truth.columns.get("pair_id")
    captions = truth.columns.get("caption", ("",) * len(truth.video))
    seconds = [None if d != d else d for d in truth.durations.tolist()]
    found = []
    for row, (q, rank) in enumerate(zip(truth.row_query.tolist(), place, strict=True)):
        query, video = truth.query_ids[q], int(truth.video[row])
        pair = str(ids[row]) if ids else f"{query}/{rank}"
        times = float(truth.start[row]), float(truth.end[row])
        text = (truth.text(query) or "", truth.videos[video], *times)
        found.append(AnnotationCandidate(pair, query, *text, 0.0, int(rank), 1, str(captions[row]), seconds[video]))
    require_unique_pairs(found, truth.source)
    return found


def _number(row: dict[str, Any], key: str) -> float:
    value: Any = row.get(key)
    return float(value) if is_number(value) and math.isfinite(value) else 0.0


def build_candidates(
    queries: str,
    captions: str,
    out: str,
    *,
    report: str | None = None,
    labels: str | None = None,
    batch: int = BATCH_CANDIDATES,
    encoder: str = "minilm",
    last: int = DECIDING_CANDIDATES,
    still_relevant: float = STILL_RELEVANT_LEVEL,
    identical: str = "once",
    progress: ShowProgress = no_progress,
) -> BuiltDataset:
    """Choose the candidates of a file's queries among the moments of another file.

    This is the first batch or, given the judged pairs of the first (``labels``), the second. ``identical`` says whether
    queries with the same words are judged ``once`` or ``each``.
    """
    asked, known = (read_truth(path, invalid="keep") for path in (queries, captions))
    for table in (asked, known):
        if not table.queries or not any(table.queries):
            raise MomentseekError(f"{table.source}: its queries have no words, so there is nothing to compare")
    levels = read_pairs(labels) if labels else None
    asked, decisions = drop_same_wording(asked) if identical == "once" else (asked, [])
    model = text_encoder(encoder)
    with progress(f"encoding with {model.name}") as show:
        asked_vectors, known_vectors = (
            encode_cached(model, list(table.queries or ()), progress=show) for table in (asked, known)
        )
    vectors = known_vectors[known.row_query]
    lists = rank_candidates(
        asked,
        known,
        lambda k, moments: top_similar(asked_vectors, vectors, k, groups=moments),
        2 * batch if labels else batch,
    )
    notes = []
    if levels is None:
        chosen = first_batch(lists, batch)
        decisions += [Decision(c[0].query_id, "asked", "first batch", {"candidates": len(c)}) for c in lists if c]
    else:
        chosen, more = second_batch(lists, levels, size=batch, last=last, threshold=still_relevant)
        decisions += more
        judged = max(c.rank for pairs in lists for c in pairs if c.pair_id in levels)
        if judged < min(batch, max(map(len, lists))):
            notes.append(
                f"no pair beyond rank {judged} has a level; if the first batch was smaller than {batch}, give "
                f"its size ({parameter('batch')})"
            )
    require_unique_pairs(chosen, out)
    counts = tally(decisions)
    return BuiltDataset(
        files={out: write_candidates(chosen), **({report: as_json_lines(decisions)} if report else {})},
        summary={
            "queries": len({c.query_id for c in chosen}),
            "pairs": len(chosen),
            "captions": len(known.video),
            "batch": batch,
            "encoder": model.name,
            "decisions": counts,
        },
        text="\n".join(
            f"{count(n, 'query', 'queries')} {outcome}: {reason}"
            for outcome, reasons in counts.items()
            for reason, n in reasons.items()
        ),
        notes=notes,
        about={out: f"{count(len(chosen), 'pair')}, compared by {model.name}"},
    )
