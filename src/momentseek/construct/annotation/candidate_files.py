"""Files of candidates: our own predictions format, with each pair's id, rank, batch and caption added.

Such a file is a run, and can be scored and converted like any other. Truths of other formats can serve as candidates
too; their pairs have their own ids (TVR-Ranking) or ``QUERY/place``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from momentseek.construct.annotation.candidates import AnnotationCandidate
from momentseek.errors import MomentseekError
from momentseek.formats import read_truth
from momentseek.formats.document import open_document
from momentseek.formats.values import column, first_record, has_keys, is_number, matrix, records, strings
from momentseek.moments import Judgements

CANDIDATE_KEYS = ("pair_id", "query_id", "query", "video", "start", "end")


def write_candidates(candidates: Iterable[AnnotationCandidate]) -> bytes:
    """The bytes of a file of candidates: JSON Lines, in the given order."""
    return b"".join(
        orjson.dumps({k: v for k, v in asdict(c).items() if v is not None}, option=orjson.OPT_APPEND_NEWLINE)
        for c in candidates
    )


def read_candidates(path: str | os.PathLike[str]) -> list[AnnotationCandidate]:
    """Read a file of candidates, or the moments of any truth file, in the file's order."""
    document = open_document(path)
    if not has_keys(first_record(document), *CANDIDATE_KEYS):
        return _from_truth(read_truth(path, invalid="keep"))
    rows = records(document)
    texts = [strings(rows, key, document) for key in ("pair_id", "query_id", "query", "video")]
    starts, ends = column(rows, "start", document), column(rows, "end", document)
    times = matrix(list(zip(starts, ends, strict=True)), 2, document, "moment")
    found = [
        AnnotationCandidate(
            pair,
            query_id,
            query,
            video,
            start,
            end,
            float(_number(row, "score")),
            int(_number(row, "rank")),
            int(_number(row, "batch")),
            str(row.get("caption", "")),
            _number(row, "duration") or None,
        )
        for pair, query_id, query, video, (start, end), row in zip(*texts, times.tolist(), rows, strict=True)
    ]
    require_unique_pairs(found, str(path))
    return found


def require_unique_pairs(candidates: Sequence[AnnotationCandidate], where: str) -> None:
    """Refuse two pairs with the same id, whose labels could not be told apart."""
    seen: set[str] = set()
    for c in candidates:
        if c.pair_id in seen:
            raise MomentseekError(f"{where}: pair {c.pair_id} occurs more than once; keep one of them")
        seen.add(c.pair_id)


def build_truth(candidates: Sequence[AnnotationCandidate], levels: Mapping[str, int]) -> Judgements:
    """Make judged candidates ground truth, with queries and moments in the candidates' order.

    Candidates without a level (discarded, or never judged) are left out; a query that loses all keeps its place.

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
