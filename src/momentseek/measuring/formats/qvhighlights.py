"""QVHighlights' truth (windows of one video per query, three annotators' saliency for 2 s clips) and submissions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import offsets_of
from momentseek.core.moments.judgements import Judgements, Saliency
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register

CLIP_SECONDS = 2
ANNOTATORS_PER_CLIP = 3


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read several moments of one video per query, with relevance 1, and three annotators' saliency per 2 s clip."""
    entries = checked.records(document)
    videos = checked.strings(entries, "vid", document)
    windows = checked.lists(entries, "relevant_windows", document)
    times = checked.matrix(checked.flatten(windows), 2, document, "relevant window")
    rated = bool(entries) and checked.has_keys(entries[0], "relevant_clip_ids", "saliency_scores", "duration")
    own = checked.durations_of(((v, e.get("duration")) for v, e in zip(videos, entries, strict=True)), document)
    return Judgements.from_groups(
        checked.ids(entries, "qid", document),
        map(len, windows),
        checked.flatten([v] * len(w) for v, w in zip(videos, windows, strict=True)),
        times[:, 0],
        times[:, 1],
        durations=checked.with_corpus(own, reading),
        queries=checked.texts(entries, document, "query"),
        saliency=_saliency(entries, own, document) if rated else None,
        invalid=reading.invalid,
        source=str(document.path),
    )


def _saliency(entries: list[dict[str, Any]], seconds: dict[str, float], document: Document) -> Saliency:
    rows = checked.lists(entries, "relevant_clip_ids", document)
    ratings = checked.lists(entries, "saliency_scores", document)
    if set(map(type, checked.flatten(rows))) - {int}:
        checked.wrong(
            document, "relevant_clip_ids", next(r for r in rows if set(map(type, r)) - {int}), "whole numbers"
        )
    flat = checked.matrix(checked.flatten(ratings), ANNOTATORS_PER_CLIP, document, "saliency score")
    clips = []
    for entry, clip_ids, rated in zip(entries, rows, ratings, strict=True):
        n, last = _clips(entry, seconds, document), max(clip_ids, default=-1)
        if len(clip_ids) != len(rated):
            raise MomentseekError(f"{document.path}: query {entry['qid']} has unequal clip ids and saliency scores")
        if clip_ids and not 0 <= min(clip_ids) <= last < n:
            raise MomentseekError(
                f"{document.path}: query {entry['qid']} rates clips {min(clip_ids)} to {last}, "
                f"but its video has {math.ceil(n)} clips of {CLIP_SECONDS} s"
            )
        clips.append(max(int(n), last + 1))  # whole clips, as the official measure has, unless the last part is rated
    offsets = offsets_of(clips)
    scores = np.zeros((int(offsets[-1]), ANNOTATORS_PER_CLIP))
    first = np.repeat(offsets[:-1], [len(r) for r in rows])
    scores[first + np.array(checked.flatten(rows), dtype=np.int64)] = flat
    return Saliency(offsets, scores)


def _clips(entry: dict[str, Any], seconds: dict[str, float], document: Document) -> float:
    duration = seconds.get(entry["vid"], float("nan"))
    if not 0 < duration < 1e7:
        checked.wrong(document, f"the duration of query {entry['qid']}", entry.get("duration"), "seconds")
    return duration / CLIP_SECONDS


def write_truth(truth: Judgements, _: Writing) -> bytes:
    """Write the release's form; rated clips are those in the windows, and others with a score above 0."""
    writers.require_ungraded(truth, "qvhighlights")
    writers.require_one_annotator(truth, "qvhighlights")
    seconds = dict(zip(truth.videos, writers.require_durations(truth, "qvhighlights"), strict=True))
    numbers = writers.numeric_ids(truth, "qvhighlights", "qid")
    entries: list[dict[str, Any]] = []
    for i, (video, windows) in enumerate(
        zip(writers.query_videos(truth, "qvhighlights"), writers.groups(truth, writers.spans(truth)), strict=True)
    ):
        if video is None:
            raise MomentseekError(f"qvhighlights has windows for every query; {truth.query_ids[i]} has none")
        entry = {
            "qid": numbers[i],
            "query": writers.texts(truth)[i],
            "duration": writers.whole(seconds[video]),
            "vid": video,
        }
        if truth.saliency is not None:
            entry |= _ratings(truth.saliency, i, windows)
        entries.append({**entry, "relevant_windows": [[writers.whole(s), writers.whole(e)] for s, e in windows]})
    return writers.dump_lines(entries)


def _ratings(saliency: Saliency, query: int, windows: Any) -> dict[str, Any]:
    scores = saliency.scores[saliency.offsets[query] : saliency.offsets[query + 1]]
    rated = np.asarray(scores.any(axis=1))
    for start, end in windows:
        rated[int(start // CLIP_SECONDS) : int(end // CLIP_SECONDS)] = True
    return {
        "relevant_clip_ids": np.flatnonzero(rated).tolist(),
        "saliency_scores": [[writers.whole(x) for x in row] for row in scores[rated].tolist()],
    }


register("qvhighlights", None, read_truth, write_truth)


def claims_submission(document: Document) -> bool:
    """Whether a file has one object per line with predicted windows, saliency scores or both."""
    first = document.first_record
    return checked.has_keys(first, "qid") and ("pred_relevant_windows" in first or "pred_saliency_scores" in first)


def read_submission(document: Document, reading: Reading) -> Runs:
    """Read windows in the file's order (R1 uses the first), and one saliency score per 2 s clip."""
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
    """Write windows in rank order; a query without windows has no ``vid``, because its video is not known."""
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


register("qvhighlights-submission", claims_submission, read_submission, write_submission)
