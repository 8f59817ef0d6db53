"""ActivityNet Captions' truth, the variant used by Charades-CD and ActivityNet-CD, and ActivityNet's results files.

Results are ``{"version", "results": {video: [{"sentence", "timestamp", "score"}]}}``.
"""

from __future__ import annotations

from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register
from momentseek.measuring.formats.tacos import is_tacos

PER_SENTENCE = ("framestamps", "encoded_sentences")
PER_VIDEO = ("decode_fps", "video_fps")
"""Additional keys of the -CD files, which are kept when converting."""


def claims_activitynet(document: Document) -> bool:
    """Whether a file is ``{video: {duration, timestamps, sentences}}`` in seconds (TALL's TACoS is in frames)."""
    return (
        writers.looks_like_captions(document)
        and "duration" in checked.first_value(document)
        and "pos_moments" not in checked.first_value(document)
        and not is_tacos(document)
    )


def read_activitynet(document: Document, reading: Reading) -> Judgements:
    """Read one moment per sentence; the id ``VIDEO:i`` is sentence i of the video, from 0."""
    captions = writers.read_captions(document)
    return _truth(captions, "duration", {}, document, reading)


def write_activitynet(truth: Judgements, _: Writing) -> bytes:
    """Write one JSON object, with videos in order of first appearance."""
    seconds = dict(zip(truth.videos, writers.require_durations(truth, "activitynet"), strict=True))
    return writers.dump(
        {
            v.video: {"duration": seconds[v.video], "timestamps": v.times, "sentences": v.sentences}
            for v in writers.by_video(truth, "activitynet")
        }
    )


def claims_cd(document: Document) -> bool:
    """Whether a file is ActivityNet Captions with ``video_duration``, as Charades-CD is."""
    return writers.looks_like_captions(document) and "video_duration" in checked.first_value(document)


def read_cd(document: Document, reading: Reading) -> Judgements:
    """Read the truth of a Charades-CD or ActivityNet-CD file, with its frame numbers and encoded sentences."""
    captions = writers.read_captions(document)
    entries = list(captions.entries.values())
    extra: dict[str, list[Any]] = {}
    for key in PER_SENTENCE:
        if all(key in e for e in entries):
            extra[key] = captions.per_sentence(key, document)
    for key in PER_VIDEO:
        if all(key in e for e in entries):
            extra[key] = checked.flatten([e[key]] * n for e, n in zip(entries, captions.counts, strict=True))
    return _truth(captions, "video_duration", extra, document, reading)


def write_cd(truth: Judgements, _: Writing) -> bytes:
    """Write the keys that the truth has, in the order of the published files."""
    seconds = dict(zip(truth.videos, writers.require_durations(truth, "charades-cd"), strict=True))
    result: dict[str, Any] = {}
    for v in writers.by_video(truth, "charades-cd"):
        listed = {k: [truth.columns[k][p] for p in v.positions] for k in PER_SENTENCE if k in truth.columns}
        single = {k: truth.columns[k][v.positions[0]] for k in PER_VIDEO if k in truth.columns}
        entry = {**listed, **single, "sentences": v.sentences, "timestamps": v.times}
        order = ("framestamps", "decode_fps", "encoded_sentences", "sentences", "video_fps", "timestamps")
        result[v.video] = {k: entry[k] for k in order if k in entry} | {"video_duration": seconds[v.video]}
    return writers.dump(result)


def _truth(
    captions: writers.Captions, key: str, extra: dict[str, list[Any]], document: Document, reading: Reading
) -> Judgements:
    return Judgements.from_groups(
        captions.ids,
        [1] * len(captions.videos),
        captions.videos,
        captions.times[:, 0],
        captions.times[:, 1],
        durations=checked.with_corpus(
            checked.durations_of(((v, e.get(key)) for v, e in captions.entries.items()), document), reading
        ),
        queries=captions.sentences,
        columns=extra,
        invalid=reading.invalid,
        source=str(document.path),
    )


register("activitynet", claims_activitynet, read_activitynet, write_activitynet)
register("charades-cd", claims_cd, read_cd, write_cd)


def claims_results(document: Document) -> bool:
    """Whether a file is an object whose ``results`` are lists of predictions by video."""
    first = document.first_record
    if not checked.has_keys(first, "results") or not isinstance(first["results"], dict):
        return False
    some = next(iter(first["results"].values()), None)
    return isinstance(some, list) and (not some or checked.has_keys(some[0], "timestamp"))


def read_results(document: Document, reading: Reading) -> Runs:
    """Read one prediction per sentence: entry i of a video answers its sentence i, so the id is ``VIDEO:i``."""
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
    """Write each query's only prediction into its video's list; ids are implied by the position in that list."""
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
