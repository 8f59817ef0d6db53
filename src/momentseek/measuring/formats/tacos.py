"""TACoS' truth in its two versions, 2D-TAN's and TALL's; both measure time in frames.

The versions differ in their annotations, not only in form, so scores on the two cannot be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, explain, register

FPS = 29.4
"""Frames per second of every TACoS video; TALL's files do not state it."""
VIDEO_NAME = re.compile(r"s\d+-d\d+(\.avi)?")
MIN_PLAUSIBLE_FRAMES = 1_410
"""A duration below this is in seconds: TACoS' videos have 1,420 to 41,224 frames, which is 48 to 1,402 s."""


def are_tacos_names(videos: Iterable[str]) -> bool:
    """Whether all videos have TACoS' names, such as ``s30-d52.avi``."""
    return all(map(VIDEO_NAME.fullmatch, videos))


def is_tacos(document: Document) -> bool:
    """Whether a file is either version, by its keys or by its videos' names and a duration in frames."""
    return claims_2d_tan(document) or (
        _has_talls_shape(document) and any(map(_is_frames, _durations(checked.mapping(document))))
    )


def claims_2d_tan(document: Document) -> bool:
    """Whether a file is ``{video: {timestamps, sentences, fps, num_frames}}``."""
    first = checked.first_value(document)
    return (
        writers.looks_like_captions(document)
        and checked.has_keys(first, "fps", "num_frames")
        and "pos_moments" not in first
    )


def claims_tall(document: Document) -> bool:
    """Whether a file is like ActivityNet Captions, but with TACoS' videos and times in whole frames."""
    return (
        _has_talls_shape(document)
        and all(map(_is_frames, _durations(checked.mapping(document))))
        and all(map(_is_whole, _times(checked.mapping(document))))
    )


def _has_talls_shape(document: Document) -> bool:
    first = checked.first_value(document)
    return (
        writers.looks_like_captions(document)
        and "duration" in first
        and "fps" not in first
        and "pos_moments" not in first
        and are_tacos_names(checked.mapping(document))
    )


def _durations(entries: Mapping[str, Any]) -> list[Any]:
    return [entry.get("duration") if isinstance(entry, dict) else None for entry in entries.values()]


def _times(entries: Mapping[str, Any]) -> list[Any]:
    listed = [entry.get("timestamps") if isinstance(entry, dict) else None for entry in entries.values()]
    pairs = checked.flatten(some for some in listed if isinstance(some, list))
    return checked.flatten(pair for pair in pairs if isinstance(pair, list))


def _is_whole(value: Any) -> bool:
    return checked.is_number(value) and (isinstance(value, int) or value.is_integer())


def _is_frames(value: Any) -> bool:
    return _is_whole(value) and value >= MIN_PLAUSIBLE_FRAMES


def _mixes_frames_and_seconds(document: Document) -> bool:
    return is_tacos(document) and not claims_2d_tan(document) and not claims_tall(document)


def read_tacos(document: Document, reading: Reading) -> Judgements:
    """Read TACoS and convert its times from frames to seconds."""
    captions = writers.read_captions(document)
    fps = frame_rates(captions.entries, document)
    rate = np.array(checked.flatten([fps[v]] * n for v, n in zip(captions.entries, captions.counts, strict=True)))
    return Judgements.from_groups(
        captions.ids,
        [1] * len(captions.videos),
        captions.videos,
        captions.times[:, 0] / rate,
        captions.times[:, 1] / rate,
        durations=checked.with_corpus(frame_durations(captions.entries, fps, document), reading),
        queries=captions.sentences,
        invalid=reading.invalid,
        source=str(document.path),
    )


def frame_rates(entries: Mapping[str, Any], document: Document) -> dict[str, float]:
    """Return the frames per second of each video."""
    rates = {video: entry.get("fps", FPS) for video, entry in entries.items()}
    for video, rate in rates.items():
        if not checked.is_number(rate) or not rate > 0:
            checked.wrong(document, f"the fps of video {video}", rate, "a positive number")
    return rates


def frame_durations(entries: Mapping[str, Any], fps: Mapping[str, float], document: Document) -> dict[str, float]:
    """Return the seconds of each video, from ``num_frames`` or TALL's ``duration``, which is also in frames."""
    frames = checked.durations_of(((v, e.get("num_frames", e.get("duration"))) for v, e in entries.items()), document)
    return {video: n / fps[video] for video, n in frames.items()}


def to_frames(seconds: float, format: str) -> int:
    """Convert a time to its frame number; the time must be that of a frame.

    >>> to_frames(141 / 29.4, "tacos")
    141
    """
    frames = seconds * FPS
    if abs(frames - round(frames)) > 1e-3:
        raise MomentseekError(f"{format} counts time in frames of 1/{FPS} s, and {seconds:g} s is not on one")
    return round(frames)


def write_2d_tan(truth: Judgements, _: Writing) -> bytes:
    """Write judgements in 2D-TAN's form of TACoS."""
    return writers.dump(_frames(truth, "tacos", lambda frames: {"fps": FPS, "num_frames": frames}))


def write_tall(truth: Judgements, _: Writing) -> bytes:
    """Write TALL's form, which differs from ActivityNet's only by TACoS' video names and lengths."""
    if not are_tacos_names(truth.videos):
        raise MomentseekError(
            f"tacos-tall is recognised by names such as s30-d52.avi, and {truth.source} has others; write tacos instead"
        )
    return writers.dump(_frames(truth, "tacos-tall", lambda frames: {"duration": float(frames)}))


def _frames(truth: Judgements, format: str, length: Any) -> dict[str, Any]:
    seconds = dict(zip(truth.videos, writers.require_durations(truth, format), strict=True))
    result = {}
    for v in writers.by_video(truth, format):
        times = [[to_frames(s, format), to_frames(e, format)] for s, e in v.times]
        keys = length(round(seconds[v.video] * FPS))
        result[v.video] = {"timestamps": times, "sentences": v.sentences, **keys}
        if format == "tacos-tall":
            result[v.video] = {**keys, "timestamps": times, "sentences": v.sentences}
    return result


register("tacos", claims_2d_tan, read_tacos, write_2d_tan)
register("tacos-tall", claims_tall, read_tacos, write_tall)
explain(
    _mixes_frames_and_seconds,
    "it has TACoS' videos, but some of its numbers look like frames and others do not, so its times may be either "
    "frames or seconds",
)
