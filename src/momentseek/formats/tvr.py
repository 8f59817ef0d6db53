"""TVR's files: truth (JSON Lines), submissions with VCMR, SVMR and VR lists, and durations with indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document
from momentseek.formats.registry import Format, Reading, Runs, register
from momentseek.formats.values import column, first_record, flatten, has_keys, matrix
from momentseek.moments import Corpus, Judgements, Run

TASKS = ("VCMR", "SVMR", "VR")
DIDEMO_ANNOTATORS = 4
"""With this many time spans or more, TVR's evaluator asks a prediction to match two of them."""


def claims_truth(document: Document) -> bool:
    """One object per line with a description, its video and its times."""
    return has_keys(first_record(document), "desc_id", "vid_name", "ts")


def read_truth(document: Document, reading: Reading) -> Judgements:
    """One moment per query with relevance 1; DiDeMo-style entries have one per annotator."""
    records = document.records
    videos = column(records, "vid_name", document)
    spans = [ts if ts and isinstance(ts[0], list) else [ts] for ts in column(records, "ts", document)]
    counts = [len(s) for s in spans]
    times = matrix(flatten(spans), 2, document, "time span")
    durations = {r["vid_name"]: r["duration"] for r in records if r.get("duration") is not None}
    if not durations and reading.corpus:
        durations = dict(reading.corpus.durations)
    return Judgements.from_groups(
        column(records, "desc_id", document),
        counts,
        flatten([v] * n for v, n in zip(videos, counts, strict=True)),
        times[:, 0],
        times[:, 1],
        durations=durations,
        queries=[r.get("desc", "") for r in records],
        fields={"type": [r["type"] for r in records]} if all("type" in r for r in records) else {},
        agreement=[2 if n >= DIDEMO_ANNOTATORS else 1 for n in counts] if max(counts, default=1) > 1 else None,
        invalid=reading.invalid,
        source=str(document.path),
    )


def claims_submission(document: Document) -> bool:
    """One object with ``video2idx`` (or SQuiDNet's ``vid2idx``) and at least one task's list."""
    first = first_record(document)
    return (has_keys(first, "video2idx") or has_keys(first, "vid2idx")) and any(t in first for t in TASKS)


def read_submission(document: Document, reading: Reading) -> Runs:
    """One Run per task list, in the official order."""
    submission = document.json
    index = submission.get("video2idx") or submission["vid2idx"]
    names = {number: name for name, number in index.items()}
    corpus = Corpus(dict.fromkeys(index, float("nan")), names, str(document.path))
    return tuple(
        read_indexed(submission[task], corpus, document, reading, task=task, id_key="desc_id")
        for task in TASKS
        if task in submission
    )


def read_indexed(
    entries: list[Any], corpus: Corpus, document: Document, reading: Reading, *, task: str = "VCMR", id_key: str
) -> Run:
    """Lists of ``[video index, start, end, score?]`` per query, as TVR's and TVR-Ranking's models write them."""
    lists = column(entries, "predictions", document)
    rows = flatten(lists)
    width = max((len(r) for r in rows), default=4)
    if width < 3:
        raise MomentseekError(f"{document.path}: a {task} prediction needs [video index, start, end, score]")
    if any(len(r) != width for r in rows):
        width, rows = 3, [r[:3] for r in rows]
    table = matrix(rows, width, document, f"{task} prediction")
    numbers = table[:, 0].astype(np.int64).tolist()
    name = {number: corpus.name_of(number) for number in set(numbers)}
    return Run.from_groups(
        column(entries, id_key, document),
        map(len, lists),
        [name[n] for n in numbers],
        table[:, 1],
        table[:, 2],
        table[:, 3] if width > 3 else None,
        queries=[e.get("desc", e.get("query", "")) for e in entries],
        task=task,
        invalid=reading.invalid,
        source=str(document.path),
    )


def claims_durations(document: Document) -> bool:
    """``{split: {video: [duration, index]}}``."""
    first = first_record(document)
    if not isinstance(first, dict) or not first:
        return False
    split = next(iter(first.values()))
    return isinstance(split, dict) and bool(split) and _is_pair(next(iter(split.values())))


def read_durations(document: Document) -> Corpus:
    """All splits together; their indices do not collide."""
    entries = {name: pair for split in document.json.values() for name, pair in split.items()}
    return Corpus({n: p[0] for n, p in entries.items()}, {p[1]: n for n, p in entries.items()}, str(document.path))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(x, int | float) for x in value)


register(Format("tvr", "truth", "TVR truth", claims_truth, read_truth=read_truth, suffix=".jsonl"))
register(Format("tvr-submission", "run", "a TVR submission", claims_submission, read_runs=read_submission))
register(Format("tvr-durations", "corpus", "TVR's durations", claims_durations, read_corpus=read_durations))
