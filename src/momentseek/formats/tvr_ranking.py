"""TVR-Ranking's files: graded truth (list and flat forms), predictions (dict, indexed), video_corpus."""

from __future__ import annotations

from typing import Any

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document
from momentseek.formats.registry import Format, Reading, Runs, register
from momentseek.formats.tvr import read_indexed
from momentseek.formats.values import column, first_record, flatten, has_keys, matrix
from momentseek.moments import Corpus, Judgements, Run

CARRIED = ("pair_id", "caption", "similarity")


def claims_truth(document: Document) -> bool:
    """A list of queries, each with its ``relevant_moment`` list."""
    return has_keys(first_record(document), "query_id", "relevant_moment")


def read_truth(document: Document, reading: Reading) -> Judgements:
    """The current form. Training lists have no relevance: every moment counts as 1."""
    records = document.records
    lists = column(records, "relevant_moment", document)
    return _truth(
        column(records, "query_id", document), [r.get("query", "") for r in records], lists, document, reading
    )


def claims_flat(document: Document) -> bool:
    """The 2024-04 form: one query–moment pair per line."""
    return has_keys(first_record(document), "query_id", "video_name", "timestamp", "pair_id")


def read_flat(document: Document, reading: Reading) -> Judgements:
    """Pairs are grouped by query, in order of first appearance."""
    groups: dict[Any, list[Any]] = {}
    texts: dict[Any, str] = {}
    for record in document.records:
        if not has_keys(record, "query_id", "video_name", "timestamp"):
            raise MomentseekError(f"{document.path}: a pair needs query_id, video_name and timestamp")
        groups.setdefault(record["query_id"], []).append(record)
        texts.setdefault(record["query_id"], record.get("query", ""))
    return _truth(list(groups), list(texts.values()), list(groups.values()), document, reading)


def _truth(
    ids: list[Any], texts: list[str], lists: list[list[Any]], document: Document, reading: Reading
) -> Judgements:
    moments = flatten(lists)
    times = matrix(column(moments, "timestamp", document), 2, document, "timestamp")
    videos = column(moments, "video_name", document)
    graded = bool(moments) and "relevance" in moments[0]
    durations = {m["video_name"]: m["duration"] for m in moments if "duration" in m}
    return Judgements.from_groups(
        ids,
        map(len, lists),
        videos,
        times[:, 0],
        times[:, 1],
        column(moments, "relevance", document) if graded else None,
        durations=durations or (reading.corpus.durations if reading.corpus else None),
        queries=texts,
        columns={name: [m.get(name) for m in moments] for name in CARRIED if moments and name in moments[0]},
        invalid=reading.invalid,
        source=str(document.path),
    )


def claims_predictions(document: Document) -> bool:
    """``{query_id: [{video_name, timestamp, …}]}``: TVR-Ranking's evaluator input and SPR's output."""
    first = first_record(document)
    if not isinstance(first, dict) or isinstance(document.json, list) or not first:
        return False
    some: Any = next((v for v in first.values() if v != []), [])
    return isinstance(some, list) and (not some or has_keys(some[0], "video_name", "timestamp"))


def read_predictions(document: Document, reading: Reading) -> Runs:
    """Rank is the list's order; ``model_scores`` are kept, SPR's ``moment_rank`` becomes minus itself."""
    lists = list(document.json.values())
    moments = flatten(lists)
    times = matrix(column(moments, "timestamp", document), 2, document, "timestamp")
    score = None
    if moments and "model_scores" in moments[0]:
        score = column(moments, "model_scores", document)
    elif moments and "moment_rank" in moments[0]:
        score = [-rank for rank in column(moments, "moment_rank", document)]
    run = Run.from_groups(
        list(document.json),
        map(len, lists),
        column(moments, "video_name", document),
        times[:, 0],
        times[:, 1],
        score,
        invalid=reading.invalid,
        source=str(document.path),
    )
    return (run,)


def claims_indexed(document: Document) -> bool:
    """The authors' prediction files: ``[{query_id, query, predictions: [[video index, start, end, score]]}]``."""
    return has_keys(first_record(document), "query_id", "predictions")


def read_indexed_predictions(document: Document, reading: Reading) -> Runs:
    """Needs the file that numbers the videos."""
    if reading.corpus is None or not reading.corpus.names:
        raise MomentseekError(
            f"{document.path}: its predictions name videos by index; give the file that numbers them "
            "(--videos video_name_duration_id.json)"
        )
    return (read_indexed(document.records, reading.corpus, document, reading, id_key="query_id"),)


def claims_corpus(document: Document) -> bool:
    """``{video: duration}`` or ``{video: [duration, id]}``."""
    first = first_record(document)
    if not isinstance(first, dict) or not first:
        return False
    value = next(iter(first.values()))
    return isinstance(value, int | float) or (
        isinstance(value, list) and len(value) == 2 and isinstance(value[0], int | float)
    )


def read_corpus(document: Document) -> Corpus:
    """Both published forms."""
    entries = {n: v if isinstance(v, list) else [v] for n, v in document.json.items()}
    numbers = {v[1]: n for n, v in entries.items() if len(v) > 1}
    return Corpus({n: float(v[0]) for n, v in entries.items()}, numbers, str(document.path))


register(Format("tvr-ranking", "truth", "TVR-Ranking judgements", claims_truth, read_truth=read_truth))
register(
    Format(
        "tvr-ranking-flat", "truth", "TVR-Ranking's older pair list", claims_flat, read_truth=read_flat, suffix=".jsonl"
    )
)
register(
    Format(
        "tvr-ranking-predictions",
        "run",
        "TVR-Ranking or SPR predictions",
        claims_predictions,
        read_runs=read_predictions,
    )
)
register(
    Format(
        "tvr-ranking-indexed", "run", "predictions by video index", claims_indexed, read_runs=read_indexed_predictions
    )
)
register(Format("video-corpus", "corpus", "a video corpus", claims_corpus, read_corpus=read_corpus))
