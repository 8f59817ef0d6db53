"""Predictions for TVR-Ranking: its evaluator's dict, SPR's dict, and the authors' lists by video index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register
from momentseek.measuring.formats.tvr_submission import indexed_entries, read_indexed, video_index

Ranked = tuple[list[str], list[int], Sequence[str], FloatArray, FloatArray | None]
"""Query ids, the number of moments of each, and the videos, times (moments, 2) and scores of all moments."""


def claims_predictions(document: Document) -> bool:
    """Whether a file is ``{query_id: [{video_name, timestamp, model_scores}]}``, as TVR-Ranking's evaluator wants."""
    first = _first_moment(document)
    return first == {} or (checked.has_keys(first, "video_name", "timestamp") and "moment_rank" not in first)


def claims_spr(document: Document) -> bool:
    """Whether a file has TVR-Ranking predictions with ``moment_rank`` instead of a score."""
    return checked.has_keys(_first_moment(document), "video_name", "timestamp", "moment_rank")


def _first_moment(document: Document) -> Any:
    """Return the first prediction; ``{}`` if every list is empty, None if the file has another structure."""
    if not document.is_json or not isinstance(document.outline, dict) or not document.outline:
        return None
    some: Any = next((v for v in document.outline.values() if v != []), [{}])
    return some[0] if isinstance(some, list) else None


def read_predictions(document: Document, reading: Reading) -> Runs:
    """Read predictions ranked in the order of the list, or by SPR's ``moment_rank``; the score is then −rank."""
    query_ids, counts, videos, times, score = _from_columns(document) or _from_records(document)
    given = (query_ids, counts, videos, times[:, 0], times[:, 1], score)
    return (Run.from_groups(*given, invalid=reading.invalid, source=str(document.path)),)


def _from_records(document: Document) -> Ranked:
    by_query = checked.mapping(document)
    per_query = checked.check_types(list(by_query.values()), {list}, document, "predictions", "a list")
    moments = checked.flatten(per_query)
    times = checked.matrix(checked.column(moments, "timestamp", document), 2, document, "timestamp")
    document.reject_repeats("timestamp", len(moments))
    counts, score = [len(some) for some in per_query], None
    if checked.has_keys(next(iter(moments), None), "model_scores"):
        score = checked.numbers(checked.column(moments, "model_scores", document), document, "model_scores")
    elif checked.has_keys(next(iter(moments), None), "moment_rank"):
        rank = checked.numbers(checked.column(moments, "moment_rank", document), document, "moment_rank")
        query = np.repeat(np.arange(len(per_query)), counts)
        order = np.lexsort((rank, query))  # stable: equal ranks keep the order of the list
        moments, times, score = [moments[i] for i in order.tolist()], times[order], -rank[order]
    return list(by_query), counts, checked.strings(moments, "video_name", document), times, score


def _from_columns(document: Document) -> Ranked | None:
    """Read the same from a file that consists of lists of uniform records; None for any other file."""
    lists = document.record_lists
    if lists is None or not isinstance(lists.rest, dict):
        return None
    counts, videos = lists.sizes(list(lists.rest.values())), lists.texts("video_name")
    times, score = lists.numbers("timestamp", 2), lists.numbers("model_scores")
    if counts is None or videos is None or times is None or (score is None) != ("model_scores" not in lists.columns):
        return None
    if score is None and "moment_rank" in lists.columns:
        return None  # whose order is not that of the lists
    return list(lists.rest), counts, videos, times, score


def write_predictions(runs: Runs, _: Writing) -> bytes:
    """Write a run as TVR-Ranking's evaluator reads it."""
    run = writers.single(runs, "tvr-ranking-predictions")
    rows = [
        {"video_name": video, "timestamp": span, "model_scores": score}
        for video, span, score in zip(writers.row_videos(run), writers.spans(run), run.score.tolist(), strict=True)
    ]
    return writers.dump(dict(zip(run.query_ids, map(list, writers.groups(run, rows)), strict=True)))


def write_spr(runs: Runs, _: Writing) -> bytes:
    """Write a run as SPR does, with ranks from 1."""
    run = writers.single(runs, "spr")
    videos, times = writers.groups(run, writers.row_videos(run)), writers.groups(run, writers.spans(run))
    return writers.dump(
        {
            query: [
                {"timestamp": span, "video_name": video, "moment_rank": rank}
                for rank, (span, video) in enumerate(zip(some_times, some_videos, strict=True), 1)
            ]
            for query, some_times, some_videos in zip(run.query_ids, times, videos, strict=True)
        }
    )


def read_indexed_predictions(document: Document, reading: Reading) -> Runs:
    """Read the authors' form; this needs the file that numbers the videos."""
    if reading.corpus is None or not reading.corpus.names:
        raise MomentseekError(
            f"{document.path}: its predictions name videos by index; give the file that numbers them "
            f"({parameter('videos', 'video_name_duration_id.json')})"
        )
    return (read_indexed(document.records, reading.corpus, document, reading),)


def write_indexed(runs: Runs, writing: Writing) -> bytes:
    """Write the authors' form; this needs the file that numbers the videos."""
    run = writers.single(runs, "tvr-ranking-indexed")
    if writing.corpus is None or not writing.corpus.names:
        raise MomentseekError(
            "tvr-ranking-indexed names videos by index; give the file that numbers them "
            f"({parameter('videos', 'video_name_duration_id.json')})"
        )
    query_ids = [writers.write_id(q) for q in run.query_ids]
    return writers.dump(
        indexed_entries(run, video_index(runs, writing), query_ids, ("query_id", "query"), "tvr-ranking-indexed")
    )


register("tvr-ranking-predictions", claims_predictions, read_predictions, write_predictions)
register("spr", claims_spr, read_predictions, write_spr)
register("tvr-ranking-indexed", None, read_indexed_predictions, write_indexed)
