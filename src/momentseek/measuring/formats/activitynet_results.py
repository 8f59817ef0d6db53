"""ActivityNet's results files: ``{"version", "results": {video: [{"sentence", "timestamp", "score"}]}}``."""

from __future__ import annotations

from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register


def claims_results(document: Document) -> bool:
    """An object whose ``results`` are lists of predictions by video."""
    first = document.first_record
    if not checked.has_keys(first, "results") or not isinstance(first["results"], dict):
        return False
    some = next(iter(first["results"].values()), None)
    return isinstance(some, list) and (not some or checked.has_keys(some[0], "timestamp"))


def read_results(document: Document, reading: Reading) -> Runs:
    """One prediction per sentence: a video's entry i answers its sentence i, so the id is ``VIDEO:i``."""
    results = checked.mapping(document).get("results")
    if not isinstance(results, dict):
        checked.wrong(document, "results", results, "{video: [predictions]}")
    per_video: list[list[Any]] = checked.check_types(list(results.values()), {list}, document, "results", "a list")
    entries = checked.check_types(checked.flatten(per_video), {dict}, document, "results", "objects with a timestamp")
    times = checked.matrix(checked.column(entries, "timestamp", document), 2, document, "timestamp")
    document.reject_repeats("timestamp", len(entries))
    scored = checked.has_keys(next(iter(entries), None), "score")
    run = Run.from_groups(
        checked.flatten([f"{video}:{i}" for i in range(len(some))] for video, some in results.items()),
        [1] * len(entries),
        checked.flatten([video] * len(some) for video, some in results.items()),
        times[:, 0],
        times[:, 1],
        checked.numbers(checked.column(entries, "score", document), document, "score") if scored else None,
        queries=checked.texts(entries, document, "sentence"),
        task="SVMR",
        invalid=reading.invalid,
        source=str(document.path),
    )
    return (run,)


def write_results(runs: Runs, _: Writing) -> bytes:
    """Each query's only prediction, in its video's list; the query's place in that list stands for its id."""
    run = writers.single(runs, "activitynet-results")
    results: dict[str, list[dict[str, Any]]] = {}
    scores, texts_ = writers.groups(run, run.score.tolist()), writers.texts(run)
    for i, (query, video, some) in enumerate(
        zip(
            run.query_ids,
            writers.query_videos(run, "activitynet-results"),
            writers.groups(run, writers.spans(run)),
            strict=True,
        )
    ):
        if video is None or len(some) != 1:
            raise MomentseekError(
                f"activitynet-results has exactly one prediction per query, but {run.source} has "
                f"{len(some) or 'none'} for query {query}"
            )
        entry = {"sentence": texts_[i], "timestamp": some[0], "score": scores[i][0]}
        results.setdefault(video, []).append(entry)
    return writers.dump({"version": "VERSION 1.0", "results": results, "external_data": {"used": False, "details": ""}})


register("activitynet-results", claims_results, read_results, write_results)
