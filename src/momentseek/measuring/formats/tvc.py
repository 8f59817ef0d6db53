"""TVC's captions of moments (JSON Lines): several per moment in annotations, one in predictions."""

from __future__ import annotations

from itertools import islice
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, register


def claims_captions(document: Document) -> bool:
    """Whether a file has one object per line with a clip id and its captions, or its video and times."""
    first = document.first_record
    return checked.has_keys(first, "clip_id", "descs") or checked.has_keys(first, "clip_id", "vid_name", "ts")


def read_captions(document: Document, reading: Reading) -> CaptionTable:
    """Read one moment per clip id.

    Predictions need no ``vid_name`` and ``ts``; the public test split has no ``descs``.
    """
    entries = checked.records(document)
    placed = any("vid_name" in entry or "ts" in entry for entry in entries)
    videos = checked.strings(entries, "vid_name", document) if placed else []
    times = checked.matrix(checked.lists(entries, "ts", document) if placed else [], 2, document, "time span")
    described = any("descs" in entry for entry in entries)
    descriptions = checked.lists(entries, "descs", document) if described else [[] for _ in entries]
    flat = checked.check_types(checked.flatten(descriptions), {dict}, document, "descs", "objects with a desc")
    texts = checked.strings(flat, "desc", document)
    words = iter(texts)
    extra = [key for key in (flat[0] if flat else {}) if key != "desc" and all(key in d for d in flat)]
    return CaptionTable.from_groups(
        checked.ids(entries, "clip_id", document),
        [list(islice(words, len(some))) for some in descriptions],
        [int(placed)] * len(entries),
        videos,
        times[:, 0],
        times[:, 1],
        durations=checked.with_corpus(
            checked.durations_of(((v, e.get("duration")) for v, e in zip(videos, entries, strict=False)), document),
            reading,
        ),
        columns={key: [d[key] for d in flat] for key in extra},
        invalid=reading.invalid,
        source=str(document.path),
    )


def write_captions(table: CaptionTable, _: Writing) -> bytes:
    """Write captions like TVC's files: no final newline; without durations, the keys have the order of predictions."""
    videos, times = writers.row_videos(table), writers.spans(table)
    seconds = dict(zip(table.videos, table.durations.tolist(), strict=True))
    entries: list[dict[str, Any]] = []
    for i, rows in enumerate(writers.groups(table, range(len(videos)))):
        name = table.query_ids[i]
        entry: dict[str, Any] = {"clip_id": writers.write_id(name)}
        if len(rows) != 1 and len(videos):
            raise MomentseekError(
                f"tvc has exactly one moment per clip_id, but {table.source} has {len(rows) or 'none'} for {name}; "
                "write coco-captions instead, which has no times"
            )
        if rows:
            video, where = videos[rows[0]], {"ts": list(map(writers.whole, times[rows[0]]))}
            if seconds[video] == seconds[video]:
                entry = {"vid_name": video, "duration": seconds[video], **where, **entry}
            else:
                entry = {"vid_name": video, **entry, **where}
        first, last = int(table.caption_offsets[i]), int(table.caption_offsets[i + 1])
        if len(table.captions) or not len(videos):
            entry["descs"] = [
                {"desc": table.captions[c], **{key: values[c] for key, values in table.columns.items()}}
                for c in range(first, last)
            ]
        entries.append(entry)
    return writers.dump_lines(entries)


register("tvc", claims_captions, read_captions, write_captions)
