"""QVHighlights' submissions: predicted windows, saliency scores, or both."""

from __future__ import annotations

from typing import Any

from momentseek.core.moments.arrays import offsets_of
from momentseek.core.moments.judgements import Saliency
from momentseek.core.moments.run import Run
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import FileFormat, Reading, Runs, Writing, register
from momentseek.measuring.formats.values import (
    check_types,
    first_record,
    flatten,
    has_keys,
    ids,
    lists,
    matrix,
    numbers,
    records,
    texts,
)
from momentseek.measuring.formats.writing import dump_lines, groups, numeric_ids, query_videos, single, spans
from momentseek.measuring.formats.writing import texts as words


def claims_submission(document: Document) -> bool:
    """One object per line with predicted windows, saliency scores or both."""
    first = first_record(document)
    return has_keys(first, "qid") and ("pred_relevant_windows" in first or "pred_saliency_scores" in first)


def read_submission(document: Document, reading: Reading) -> Runs:
    """Windows in the file's order (R1 takes the first), saliency one score per 2 s clip."""
    entries = records(document)
    windows = check_types(
        [e.get("pred_relevant_windows") or [] for e in entries], {list}, document, "pred_relevant_windows", "a list"
    )
    rows = check_types(flatten(windows), {list}, document, "pred_relevant_windows", "lists of [start, end, score]")
    if 2 in set(map(len, rows)):
        rows = [[*r, 0.0] if len(r) == 2 else r for r in rows]
    table = matrix(rows, 3, document, "predicted window")
    saliency = None
    if has_keys(next(iter(entries), None), "pred_saliency_scores"):
        scores = lists(entries, "pred_saliency_scores", document)
        flat = numbers(flatten(scores), document, "saliency score")
        saliency = Saliency(offsets_of(map(len, scores)), flat[:, None])
    run = Run.from_groups(
        ids(entries, "qid", document),
        map(len, windows),
        flatten([v] * len(w) for v, w in zip(texts(entries, document, "vid"), windows, strict=True)),
        table[:, 0],
        table[:, 1],
        table[:, 2],
        queries=texts(entries, document, "query"),
        saliency=saliency,
        task="SVMR",
        invalid=reading.invalid,
        source=str(document.path),
    )
    return (run,)


def write_submission(runs: Runs, _: Writing) -> bytes:
    """Windows in rank order; a query without windows has no ``vid``, because its video is not known."""
    run = single(runs, "qvhighlights-submission")
    rows = [[*span, score] for span, score in zip(spans(run), run.score.tolist(), strict=True)]
    entries: list[dict[str, Any]] = []
    for i, (number, video, windows) in enumerate(
        zip(
            numeric_ids(run, "qvhighlights-submission", "qid"),
            query_videos(run, "qvhighlights-submission"),
            groups(run, rows),
            strict=True,
        )
    ):
        entry: dict[str, Any] = {"qid": number, "query": words(run)[i]}
        if video is not None:
            entry["vid"] = video
        entry["pred_relevant_windows"] = list(windows)
        if run.saliency is not None:
            first, last = run.saliency.offsets[i : i + 2]
            entry["pred_saliency_scores"] = run.saliency.scores[first:last, 0].tolist()
        entries.append(entry)
    return dump_lines(entries)


register(
    FileFormat(
        "qvhighlights-submission",
        "run",
        "a QVHighlights submission",
        claims_submission,
        read=read_submission,
        write=write_submission,
        suffix=".jsonl",
        notes="The first window is the prediction for R1; mAP sorts by score. Saliency travels with it.",
    )
)
