"""TVR's submissions: one object with VCMR, SVMR and VR lists of predictions that name videos by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Corpus
from momentseek.core.moments.run import TASKS, Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register

INDEX_KEYS = ("video2idx", "vid2idx")
"""Key of the video indices in TVR's submissions, and in SQuiDNet's."""


def claims_submission(document: Document) -> bool:
    """Whether a file is one object with ``video2idx`` (or SQuiDNet's ``vid2idx``) and a list of at least one task."""
    first = document.first_record
    return isinstance(first, dict) and any(k in first for k in INDEX_KEYS) and any(t in first for t in TASKS)


def read_submission(document: Document, reading: Reading) -> Runs:
    """Read one run per task, in the official order; TVR-Ranking's oldest files have query_id instead of desc_id."""
    submission = checked.mapping(document)
    index = next((submission[k] for k in INDEX_KEYS if k in submission), None)
    if not isinstance(index, dict) or set(map(type, index.values())) - {int}:
        checked.wrong(document, "video2idx", index, "{video: index}")
    corpus = Corpus(dict.fromkeys(index, float("nan")), checked.by_index(index.items(), document), str(document.path))
    return tuple(read_indexed(submission[t], corpus, document, reading, task=t) for t in TASKS if t in submission)


def read_indexed(entries: Any, corpus: Corpus, document: Document, reading: Reading, *, task: str = "VCMR") -> Run:
    """Read lists of ``[video index, start, end, score?]`` per query, as TVR's and TVR-Ranking's models write them."""
    if not isinstance(entries, list) or set(map(type, entries)) - {dict}:
        checked.wrong(document, f"the {task} list", entries, "a list of queries with their predictions")
    per_query = checked.lists(entries, "predictions", document)
    rows = checked.check_types(
        checked.flatten(per_query), {list}, document, "predictions", "lists of [video index, start, end, score]"
    )
    widths = set(map(len, rows)) or {4}
    if min(widths) < 3:
        short = next(r for r in rows if len(r) < 3)
        checked.wrong(document, f"a {task} prediction", short, "[video index, start, end, score]")
    if len(widths) > 1:
        widths, rows = {3}, [r[:3] for r in rows]
    width = widths.pop()
    table = checked.matrix(rows, width, document, f"{task} prediction")
    return Run.from_groups(
        checked.ids(
            entries, "desc_id" if checked.has_keys(next(iter(entries), None), "desc_id") else "query_id", document
        ),
        map(len, per_query),
        _names(table[:, 0], corpus, document),
        table[:, 1],
        table[:, 2],
        table[:, 3] if width > 3 else None,
        queries=checked.texts(entries, document, "desc", "query"),
        task=task,
        invalid=reading.invalid,
        source=str(document.path),
    )


def _names(numbers: np.ndarray[Any, np.dtype[np.float64]], corpus: Corpus, document: Document) -> list[str]:
    distinct, codes = np.unique(numbers, return_inverse=True)
    fraction = distinct[~np.isfinite(distinct) | (np.floor(distinct) != distinct)]
    if len(fraction):
        checked.wrong(document, "a video index", float(fraction[0]), "a whole number")
    names = [corpus.name_of(int(n)) for n in distinct]
    return list(map(names.__getitem__, codes.tolist()))


def write_submission(runs: Runs, writing: Writing) -> bytes:
    """Write the runs under their tasks, byte for byte like TVR's own tools (json.dump, one line)."""
    index = video_index(runs, writing)
    submission: dict[str, Any] = {"video2idx": index}
    for task in TASKS:
        chosen = [r for r in runs if r.task == task]
        if len(chosen) > 1:
            raise MomentseekError(f"tvr-submission has one {task} list, but {len(chosen)} runs are of that task")
        for run in chosen:
            submission[task] = indexed_entries(
                run, index, writers.numeric_ids(run, "tvr-submission", "desc_id"), ("desc_id", "desc"), "tvr-submission"
            )
    return writers.dump(submission)


def indexed_entries(
    run: Run, index: dict[str, int], query_ids: list[Any], keys: tuple[str, str], format: str
) -> list[dict[str, Any]]:
    """Return the predictions of a run with video indices, as ``read_indexed`` reads them."""
    writers.finite_scores(run, format)
    numbers = map(index.__getitem__, writers.row_videos(run))
    rows = [
        [n, s, e, x]
        for n, s, e, x in zip(numbers, run.start.tolist(), run.end.tolist(), run.score.tolist(), strict=True)
    ]
    return [
        {keys[0]: query, keys[1]: text, "predictions": predictions}
        for query, text, predictions in zip(query_ids, writers.texts(run), writers.groups(run, rows), strict=True)
    ]


def video_index(runs: Runs, writing: Writing) -> dict[str, int]:
    """Return the corpus' numbers for its videos; without them, number the sorted names."""
    used = {video for run in runs for video in run.videos}
    if writing.corpus is None or not writing.corpus.names:
        return {video: position for position, video in enumerate(sorted(used))}
    writing.corpus.require(used, runs[0].source)
    return {video: number for number, video in writing.corpus.names.items()}


register("tvr-submission", claims_submission, read_submission, write_submission)
