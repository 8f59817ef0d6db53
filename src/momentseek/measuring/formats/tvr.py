"""TVR's truth (JSON Lines), and its list of durations with the video indices that submissions use."""

from __future__ import annotations

from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, explain, register

MIN_DIDEMO_ANNOTATORS = 4
"""Number of time spans per query from which TVR's evaluator asks a prediction to match two (DiDeMo in TVR's form)."""


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read one moment per query with relevance 1; DiDeMo-style entries have one per annotator."""
    entries = checked.records(document)
    videos = checked.strings(entries, "vid_name", document)
    times = [ts if ts and isinstance(ts[0], list) else [ts] for ts in checked.lists(entries, "ts", document)]
    counts = [len(t) for t in times]
    rows = checked.matrix(checked.flatten(times), 2, document, "time span")
    return Judgements.from_groups(
        checked.ids(entries, "desc_id", document),
        counts,
        checked.flatten([v] * n for v, n in zip(videos, counts, strict=True)),
        rows[:, 0],
        rows[:, 1],
        durations=checked.with_corpus(
            checked.durations_of(((v, e.get("duration")) for v, e in zip(videos, entries, strict=True)), document),
            reading,
        ),
        queries=checked.texts(entries, document, "desc"),
        fields={"type": checked.strings(entries, "type", document)} if all("type" in e for e in entries) else {},
        agreement=[2 if n >= MIN_DIDEMO_ANNOTATORS else 1 for n in counts] if max(counts, default=1) > 1 else None,
        invalid=reading.invalid,
        source=str(document.path),
    )


def write_truth(truth: Judgements, _: Writing) -> bytes:
    """Write exactly TVR's form: no final newline; several annotators' times only if two of them must agree."""
    writers.require_ungraded(truth, "tvr")
    seconds = dict(zip(truth.videos, writers.require_durations(truth, "tvr"), strict=True))
    videos = writers.query_videos(truth, "tvr")
    numbers = writers.numeric_ids(truth, "tvr", "desc_id")
    types = truth.fields.get("type")
    entries: list[dict[str, Any]] = []
    for i, (video, times) in enumerate(zip(videos, writers.groups(truth, writers.spans(truth)), strict=True)):
        needed = 1 if truth.agreement is None else int(truth.agreement[i])
        if (
            video is None
            or needed != (2 if len(times) >= MIN_DIDEMO_ANNOTATORS else 1)
            or 1 < len(times) < MIN_DIDEMO_ANNOTATORS
        ):
            raise MomentseekError(
                f"tvr has one moment per query, or {MIN_DIDEMO_ANNOTATORS} and more of which a hit needs 2; "
                f"{truth.source} has {len(times)} for query {truth.query_ids[i]}; write tvr-ranking or native instead"
            )
        entry = {"vid_name": video, "duration": seconds[video], "ts": times[0] if len(times) == 1 else list(times)}
        entry["desc"] = writers.texts(truth)[i]
        if types:
            entry["type"] = types[i]
        entries.append({**entry, "desc_id": numbers[i]})
    return writers.dump_lines(entries)


def claims_durations(document: Document) -> bool:
    """Whether a file is ``{split: {video: [duration, index]}}``."""
    split = checked.first_value(document)
    return isinstance(split, dict) and bool(split) and all(map(_is_pair, split.values()))


def read_durations(document: Document, _: Reading) -> Corpus:
    """Read all splits into one corpus; their indices do not overlap."""
    document.reject_repeated_names()
    entries: list[tuple[str, Any, int]] = []
    for name, split in checked.mapping(document).items():
        if not isinstance(split, dict):
            checked.wrong(document, f"split {name}", split, "{video: [duration, index]}")
        for video, pair in split.items():
            if not _is_pair(pair) or not isinstance(pair[1], int):
                checked.wrong(document, f"video {video}", pair, "[duration, index]")
            entries.append((video, *pair))
    return checked.collection(entries, document)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(checked.is_number, value))


def _has_no_times(document: Document) -> bool:
    first = document.first_record
    return checked.has_keys(first, "desc_id", "desc") and "ts" not in first and "predictions" not in first


register("tvr", None, read_truth, write_truth)
register("tvr-durations", claims_durations, read_durations)
explain(_has_no_times, "it holds queries without times, as TVR's public test split does, so there is nothing to score")
