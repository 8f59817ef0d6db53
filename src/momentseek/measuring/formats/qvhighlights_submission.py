"""QVHighlights' submissions: predicted windows, saliency scores, or both."""

from __future__ import annotations

from typing import Any

from momentseek.core.moments.arrays import offsets_of
from momentseek.core.moments.judgements import Saliency
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register


def claims_submission(document: Document) -> bool:
    """One object per line with predicted windows, saliency scores or both."""
    first = checked.first_record(document)
    return checked.has_keys(first, "qid") and ("pred_relevant_windows" in first or "pred_saliency_scores" in first)


def read_submission(document: Document, reading: Reading) -> Runs:
    """Windows in the file's order (R1 takes the first), saliency one score per 2 s clip."""
    entries = checked.records(document)
    windows = checked.check_types(
        [e.get("pred_relevant_windows") or [] for e in entries], {list}, document, "pred_relevant_windows", "a list"
    )
    rows = checked.check_types(
        checked.flatten(windows), {list}, document, "pred_relevant_windows", "lists of [start, end, score]"
    )
    if 2 in set(map(len, rows)):
        rows = [[*r, 0.0] if len(r) == 2 else r for r in rows]
    table = checked.matrix(rows, 3, document, "predicted window")
    saliency = None
    if checked.has_keys(next(iter(entries), None), "pred_saliency_scores"):
        scores = checked.lists(entries, "pred_saliency_scores", document)
        flat = checked.numbers(checked.flatten(scores), document, "saliency score")
        saliency = Saliency(offsets_of(map(len, scores)), flat[:, None])
    run = Run.from_groups(
        checked.ids(entries, "qid", document),
        map(len, windows),
        checked.flatten([v] * len(w) for v, w in zip(checked.texts(entries, document, "vid"), windows, strict=True)),
        table[:, 0],
        table[:, 1],
        table[:, 2],
        queries=checked.texts(entries, document, "query"),
        saliency=saliency,
        task="SVMR",
        invalid=reading.invalid,
        source=str(document.path),
    )
    return (run,)


def write_submission(runs: Runs, _: Writing) -> bytes:
    """Windows in rank order; a query without windows has no ``vid``, because its video is not known."""
    run = writers.single(runs, "qvhighlights-submission")
    rows = [[*span, score] for span, score in zip(writers.spans(run), run.score.tolist(), strict=True)]
    entries: list[dict[str, Any]] = []
    for i, (number, video, windows) in enumerate(
        zip(
            writers.numeric_ids(run, "qvhighlights-submission", "qid"),
            writers.query_videos(run, "qvhighlights-submission"),
            writers.groups(run, rows),
            strict=True,
        )
    ):
        entry: dict[str, Any] = {"qid": number, "query": writers.texts(run)[i]}
        if video is not None:
            entry["vid"] = video
        entry["pred_relevant_windows"] = list(windows)
        if run.saliency is not None:
            first, last = run.saliency.offsets[i : i + 2]
            entry["pred_saliency_scores"] = run.saliency.scores[first:last, 0].tolist()
        entries.append(entry)
    return writers.dump_lines(entries)


register(
    "qvhighlights-submission",
    "run",
    "a QVHighlights submission",
    claims_submission,
    read_submission,
    write_submission,
    suffix=".jsonl",
    notes="The first window is the prediction for R1; mAP sorts by score. Saliency travels with it.",
)
