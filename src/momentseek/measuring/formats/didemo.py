"""DiDeMo's truth: several annotators' choices of 5-second segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, register

SEGMENT_SECONDS = 5.0
MIN_AGREEING_ANNOTATORS = 2
"""TVR's evaluator counts a prediction as correct if it matches two of the (at least four) annotators."""


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read one row per annotator; a segment pair ``[a, b]`` includes both ends: 5a to 5(b + 1) seconds."""
    entries = checked.records(document)
    videos = checked.strings(entries, "video", document)
    times = checked.lists(entries, "times", document)
    counts = list(map(len, times))
    segments = checked.matrix(checked.flatten(times), 2, document, "segment pair")
    if (np.floor(segments) != segments).any():
        checked.wrong(
            document, "a segment pair", segments[(np.floor(segments) != segments).any(axis=1)][0].tolist(), "segments"
        )
    lengths = checked.numbers(checked.column(entries, "num_segments", document), document, "num_segments")
    own = checked.durations_of(zip(videos, (SEGMENT_SECONDS * lengths).tolist(), strict=True), document)
    return Judgements.from_groups(
        checked.ids(entries, "annotation_id", document),
        counts,
        checked.flatten([v] * n for v, n in zip(videos, counts, strict=True)),
        SEGMENT_SECONDS * segments[:, 0],
        SEGMENT_SECONDS * (segments[:, 1] + 1),
        durations=checked.with_corpus(own, reading),
        queries=checked.texts(entries, document, "description"),
        agreement=[min(MIN_AGREEING_ANNOTATORS, max(n, 1)) for n in counts],
        invalid=reading.invalid,
        source=str(document.path),
    )


def write_truth(truth: Judgements, _: Writing) -> bytes:
    """Write judgements as DiDeMo; times must be multiples of 5 s."""
    writers.require_ungraded(truth, "didemo")
    seconds = dict(zip(truth.videos, writers.require_durations(truth, "didemo"), strict=True))
    off = np.flatnonzero((truth.start % SEGMENT_SECONDS != 0) | (truth.end % SEGMENT_SECONDS != 0))
    if len(off):
        raise MomentseekError(
            f"didemo has moments of whole 5 s segments, and {truth.source} has "
            f"{truth.start[off[0]]:g}–{truth.end[off[0]]:g} s"
        )
    entries: list[dict[str, Any]] = []
    for i, (number, video, times) in enumerate(
        zip(
            writers.numeric_ids(truth, "didemo", "annotation_id"),
            writers.query_videos(truth, "didemo"),
            writers.groups(truth, writers.spans(truth)),
            strict=True,
        )
    ):
        if video is None:
            raise MomentseekError(f"didemo has times for every query; {truth.query_ids[i]} has none")
        needed = 1 if truth.agreement is None else int(truth.agreement[i])
        if needed != min(MIN_AGREEING_ANNOTATORS, len(times)):
            raise MomentseekError(
                f"a hit in didemo needs {MIN_AGREEING_ANNOTATORS} annotators, but one of query {truth.query_ids[i]} in "
                f"{truth.source} needs {needed}"
            )
        entry = {"num_segments": int(seconds[video] // SEGMENT_SECONDS), "description": writers.texts(truth)[i]}
        entry["times"] = [[int(s // SEGMENT_SECONDS), int(e // SEGMENT_SECONDS) - 1] for s, e in times]
        entries.append({**entry, "video": video, "annotation_id": number})
    return writers.dump(entries)


register("didemo", None, read_truth, write_truth)
