"""ActivityNet Captions' truth, and the form Charades-CD and ActivityNet-CD give it."""

from __future__ import annotations

from typing import Any

from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, register
from momentseek.measuring.formats.tacos import is_tacos

PER_SENTENCE = ("framestamps", "encoded_sentences")
PER_VIDEO = ("decode_fps", "video_fps")
"""What the -CD files have besides; it travels along."""


def claims_activitynet(document: Document) -> bool:
    """``{video: {duration, timestamps, sentences}}`` in seconds; TALL's TACoS has this shape with frames."""
    return (
        writers.looks_like_captions(document)
        and "duration" in checked.first_value(document)
        and "pos_moments" not in checked.first_value(document)
        and not is_tacos(document)
    )


def read_activitynet(document: Document, reading: Reading) -> Judgements:
    """One moment per sentence; ``VIDEO:i`` is the video's sentence number i."""
    captions = writers.read_captions(document)
    return _truth(captions, "duration", {}, document, reading)


def write_activitynet(truth: Judgements, _: Writing) -> bytes:
    """One JSON object, videos in order of first appearance."""
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
    """Keys in the published files' order, as far as the truth has them."""
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
