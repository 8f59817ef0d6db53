"""MVMR's truth: a query's own moment, further positives in other videos, and the pool of videos to search."""

from __future__ import annotations

from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, register
from momentseek.measuring.formats.tacos import FPS, are_tacos_names, frame_durations, frame_rates, to_frames


def claims_truth(document: Document) -> bool:
    """Whether a file has captions with ``pos_moments`` and ``retrieval_pool``."""
    first = checked.first_value(document)
    return writers.looks_like_captions(document) and "pos_moments" in first and "retrieval_pool" in first


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read each query's own moment first, then the positives, all of relevance 1 and each with its video.

    TACoS' file is in frames, own moments and positives alike. (The public evaluator converts only the own ones, so
    hardly any other positive can be hit.)
    """
    captions = writers.read_captions(document)
    positives = checked.check_types(
        captions.per_sentence("pos_moments", document), {list}, document, "pos_moments", "a list"
    )
    pools = checked.check_types(
        captions.per_sentence("retrieval_pool", document), {list}, document, "retrieval_pool", "a list"
    )
    pool_videos = checked.check_types(checked.flatten(pools), {str}, document, "retrieval_pool", "video names")
    rows: list[tuple[str, str, Any]] = []
    for video, sentence, span, others in zip(
        captions.videos, captions.sentences, captions.times.tolist(), positives, strict=True
    ):
        rows.append((video, sentence, span))
        for other in others:
            if not (isinstance(other, list) and len(other) == 3 and isinstance(other[0], str)):
                checked.wrong(document, "a positive", other, "[video, sentence, [start, end]]")
            rows.append((other[0], other[1], other[2]))
    videos = [video for video, _, _ in rows]
    times = checked.matrix([span for _, _, span in rows], 2, document, "moment")
    if all("fps" in entry for entry in captions.entries.values()):
        fps = frame_rates(captions.entries, document)
        times = times / np.array([fps.get(v, FPS) for v in videos])[:, None]
        own = frame_durations(captions.entries, fps, document)
    else:
        own = checked.durations_of(((v, e.get("duration")) for v, e in captions.entries.items()), document)
    return Judgements.from_groups(
        captions.ids,
        [1 + len(p) for p in positives],
        videos,
        times[:, 0],
        times[:, 1],
        durations=checked.with_corpus(own, reading),
        queries=captions.sentences,
        columns={"sentence": [sentence for _, sentence, _ in rows]},
        pools=(map(len, pools), pool_videos),
        invalid=reading.invalid,
        source=str(document.path),
    )


def write_truth(truth: Judgements, _: Writing) -> bytes:
    """Write a truth as an MVMR file: in frames for TACoS' videos, as published, and in seconds for all others."""
    writers.require_ungraded(truth, "mvmr")
    writers.require_one_annotator(truth, "mvmr")
    if truth.pools is None:
        raise MomentseekError(f"mvmr says which videos each query is searched in, and {truth.source} does not")
    seconds = dict(zip(truth.videos, writers.require_durations(truth, "mvmr"), strict=True))
    framed = are_tacos_names(truth.videos)
    sentences = truth.columns.get("sentence") or tuple(writers.texts(truth)[q] for q in truth.row_query.tolist())
    rows = list(zip(writers.row_videos(truth), sentences, writers.spans(truth), strict=True))
    bounds = truth.pools.offsets.tolist()
    pool = [truth.videos[code] for code in truth.pools.video.tolist()]
    result: dict[str, dict[str, Any]] = {}
    for i, (query, text, moments) in enumerate(
        zip(truth.query_ids, writers.texts(truth), writers.groups(truth, rows), strict=True)
    ):
        if not moments:
            raise MomentseekError(f"mvmr has a moment for every query, but {truth.source} has none for {query}")
        (video, _, span), *others = moments
        entry = result.setdefault(video, _entry(seconds[video], framed))
        entry["timestamps"].append(_times(span, framed))
        entry["sentences"].append(text)
        entry["pos_moments"].append([[v, s, _times(t, framed)] for v, s, t in others])
        entry["retrieval_pool"].append(pool[bounds[i] : bounds[i + 1]])
    return writers.dump(result)


def _entry(seconds: float, framed: bool) -> dict[str, Any]:
    times: dict[str, Any] = {"timestamps": [], "sentences": []}
    own = {**times, "fps": FPS, "num_frames": round(seconds * FPS)} if framed else {"duration": seconds, **times}
    return {**own, "pos_moments": [], "retrieval_pool": []}


def _times(span: list[float], framed: bool) -> list[float]:
    return [to_frames(t, "mvmr") for t in span] if framed else span


register("mvmr", claims_truth, read_truth, write_truth)
