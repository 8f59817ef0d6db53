"""QVHighlights' files: truth with windows and saliency, and submissions with both."""

from __future__ import annotations

from typing import Any

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document
from momentseek.formats.registry import Format, Reading, Runs, register
from momentseek.formats.values import column, first_record, flatten, has_keys, matrix
from momentseek.moments import Judgements, Run, Saliency
from momentseek.moments.arrays import offsets_of

CLIP_SECONDS = 2
ANNOTATORS = 3


def claims_truth(document: Document) -> bool:
    """One object per line with a query's windows."""
    return has_keys(first_record(document), "qid", "relevant_windows")


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Several moments of one video per query, relevance 1, and three annotators' saliency per 2 s clip."""
    records = document.records
    videos = column(records, "vid", document)
    windows = column(records, "relevant_windows", document)
    times = matrix(flatten(windows), 2, document, "relevant window")
    rated = bool(records) and has_keys(records[0], "relevant_clip_ids", "saliency_scores", "duration")
    return Judgements.from_groups(
        column(records, "qid", document),
        map(len, windows),
        flatten([v] * len(w) for v, w in zip(videos, windows, strict=True)),
        times[:, 0],
        times[:, 1],
        durations={r["vid"]: r["duration"] for r in records if "duration" in r},
        queries=[r.get("query", "") for r in records],
        saliency=_true_saliency(records, document) if rated else None,
        invalid=reading.invalid,
        source=str(document.path),
    )


def _true_saliency(records: list[Any], document: Document) -> Saliency:
    clips = [int(r["duration"] / CLIP_SECONDS) for r in records]
    offsets = offsets_of(clips)
    scores = np.zeros((int(offsets[-1]), ANNOTATORS))
    for record, first, n in zip(records, offsets[:-1].tolist(), clips, strict=True):
        rows = record["relevant_clip_ids"]
        if rows and max(rows) >= n:
            raise MomentseekError(
                f"{document.path}: query {record['qid']} rates clip {max(rows)}, but its video has {n} clips of 2 s"
            )
        if len(rows) != len(record["saliency_scores"]):
            raise MomentseekError(f"{document.path}: query {record['qid']} has unequal clip ids and saliency scores")
        if rows:
            scores[np.array(rows) + first] = record["saliency_scores"]
    return Saliency(offsets, scores)


def claims_submission(document: Document) -> bool:
    """One object per line with predicted windows, saliency scores or both."""
    first = first_record(document)
    return has_keys(first, "qid") and ("pred_relevant_windows" in first or "pred_saliency_scores" in first)


def read_submission(document: Document, reading: Reading) -> Runs:
    """Windows in the file's order (R1 takes the first), saliency one score per 2 s clip."""
    records = document.records
    windows = [r.get("pred_relevant_windows") or [] for r in records]
    rows = [w[:3] if len(w) > 2 else [*w, 0.0] for w in flatten(windows)]
    table = matrix(rows, 3, document, "predicted window")
    saliency = None
    if records and "pred_saliency_scores" in records[0]:
        scores = column(records, "pred_saliency_scores", document)
        flat = np.array(flatten(scores), dtype=np.float64)
        saliency = Saliency(offsets_of(map(len, scores)), flat[:, None])
    videos = [r.get("vid", "") for r in records]
    run = Run.from_groups(
        column(records, "qid", document),
        map(len, windows),
        flatten([v] * len(w) for v, w in zip(videos, windows, strict=True)),
        table[:, 0],
        table[:, 1],
        table[:, 2],
        queries=[r.get("query", "") for r in records],
        saliency=saliency,
        task="SVMR",
        invalid=reading.invalid,
        source=str(document.path),
    )
    return (run,)


register(Format("qvhighlights", "truth", "QVHighlights truth", claims_truth, read_truth=read_truth, suffix=".jsonl"))
register(
    Format(
        "qvhighlights-submission",
        "run",
        "a QVHighlights submission",
        claims_submission,
        read_runs=read_submission,
        suffix=".jsonl",
    )
)
