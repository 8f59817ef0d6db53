"""Ego4D's natural-language queries: annotations (nlq_val.json) and the challenge's prediction files.

A query's id is ``ANNOTATION_i``: the annotation's uid and the query's position in it, as the challenge numbers them.
Times are seconds of the clip, and the clip (clip_uid) is the video that is searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register

CHALLENGE = "ego4d_nlq_challenge"


def claims_truth(document: Document) -> bool:
    """Whether a file is an object whose ``videos`` have clips."""
    first = document.first_record
    videos = first.get("videos") if isinstance(first, dict) else None
    return isinstance(videos, list) and bool(videos) and checked.has_keys(videos[0], "video_uid", "clips")


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read one moment per query; the few queries of the release without text are left out, as is usual."""
    rows = [row for row in _queries(document) if row[2].get("query")]
    entries = [entry for _, _, entry in rows]
    if entries and not checked.has_keys(entries[0], "clip_start_sec", "clip_end_sec"):
        raise MomentseekError(
            f"{document.path}: its queries have no times, as those of the test split; give nlq_train.json or "
            "nlq_val.json"
        )
    lengths = ((clip["clip_uid"], _clip_seconds(clip)) for _, clip, _ in rows)
    return Judgements.from_groups(
        [name for name, _, _ in rows],
        [1] * len(rows),
        checked.strings([clip for _, clip, _ in rows], "clip_uid", document),
        checked.numbers(checked.column(entries, "clip_start_sec", document), document, "clip_start_sec"),
        checked.numbers(checked.column(entries, "clip_end_sec", document), document, "clip_end_sec"),
        durations=checked.with_corpus(checked.durations_of(lengths, document), reading),
        queries=[text.strip() for text in checked.strings(entries, "query", document)],
        fields={"template": [str(entry.get("template") or "") for entry in entries]},
        invalid=reading.invalid,
        source=str(document.path),
    )


def _queries(document: Document) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each query's id, its clip and its entry."""
    for video in checked.lists([checked.mapping(document)], "videos", document)[0]:
        for clip in checked.lists([video], "clips", document)[0]:
            for annotation in checked.lists([clip], "annotations", document)[0]:
                uid = checked.strings([annotation], "annotation_uid", document)[0]
                entries = checked.lists([annotation], "language_queries", document)[0]
                for i, entry in enumerate(
                    checked.check_types(entries, {dict}, document, "language_queries", "objects")
                ):
                    yield f"{uid}_{i}", clip, entry


def _clip_seconds(clip: dict[str, Any]) -> float | None:
    """Return the clip's length from its times in the video, or else from its own times."""
    for start, end in (("video_start_sec", "video_end_sec"), ("clip_start_sec", "clip_end_sec")):
        if checked.is_number(clip.get(start)) and checked.is_number(clip.get(end)):
            return float(clip[end] - clip[start])
    return None


def claims_results(document: Document) -> bool:
    """Whether a file is an object whose results name an annotation, a query and predicted times."""
    first = document.first_record
    results = first.get("results") if isinstance(first, dict) else None
    keys = ("annotation_uid", "query_idx", "predicted_times")
    return isinstance(results, list) and bool(results) and checked.has_keys(results[0], *keys)


def read_results(document: Document, reading: Reading) -> Runs:
    """Read windows in the file's order, ``[start, end]`` or ``[start, end, score]``."""
    entries = checked.lists([checked.mapping(document)], "results", document)[0]
    checked.check_types(entries, {dict}, document, "results", "objects")
    windows = checked.lists(entries, "predicted_times", document)
    rows = checked.check_types(checked.flatten(windows), {list}, document, "predicted_times", "[start, end]")
    widths = set(map(len, rows))
    width = 3 if widths == {3} else 2
    table = checked.matrix(rows, width, document, "predicted time")
    uids = checked.strings(entries, "annotation_uid", document)
    places = checked.check_types(
        checked.column(entries, "query_idx", document), {int}, document, "query_idx", "a number"
    )
    clips = checked.strings(entries, "clip_uid", document)
    run = Run.from_groups(
        [f"{uid}_{i}" for uid, i in zip(uids, places, strict=True)],
        map(len, windows),
        checked.flatten([clip] * len(some) for clip, some in zip(clips, windows, strict=True)),
        table[:, 0],
        table[:, 1],
        table[:, 2] if width == 3 else None,
        task="SVMR",
        invalid=reading.invalid,
        source=str(document.path),
    )
    return (run,)


def write_results(runs: Runs, _: Writing) -> bytes:
    """Write a file for the challenge: windows in rank order, without scores, which it does not accept."""
    run = writers.single(runs, "ego4d-nlq-predictions")
    results = []
    for query, clip, windows in zip(
        run.query_ids,
        writers.query_videos(run, "ego4d-nlq-predictions"),
        writers.groups(run, writers.spans(run)),
        strict=True,
    ):
        uid, sign, place = query.rpartition("_")
        if not sign or not uid or not place.isdigit():
            raise MomentseekError(
                f"ego4d-nlq-predictions names queries ANNOTATION_i, but {run.source} has query {query!r}; convert the "
                "run of an Ego4D truth"
            )
        if clip is None:
            raise MomentseekError(f"ego4d-nlq-predictions has times for every query; {query} of {run.source} has none")
        entry = {"clip_uid": clip, "annotation_uid": uid, "query_idx": int(place), "predicted_times": list(windows)}
        results.append(entry)
    return writers.dump({"version": "1.0", "challenge": CHALLENGE, "results": results})


register("ego4d-nlq", claims_truth, read_truth)
register("ego4d-nlq-predictions", claims_results, read_results, write_results)
