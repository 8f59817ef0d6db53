"""Hits as JSON: all fields of each hit, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from momentseek.media.edit_lists import ExportText, file_url
from momentseek.media.subtitles.cues import Cue
from momentseek.search.export import EXPORT_KINDS, ExportKind, Thumbnail
from momentseek.search.hit import Hit, Results


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render one object: the query and its hits, best first; times in seconds. Results of a search add their notes."""
    document: dict[str, Any] = {"query": _valid_text(query)}
    if isinstance(hits, Results):
        document |= {"hidden": hits.hidden, "note": _valid_text(hits.note), "complete": hits.complete}
        if hits.understood.encoders:
            document["understood"] = asdict(hits.understood)
        if hits.missing:
            document["missing"] = list(hits.missing)
    document["hits"] = [hit_record(hit) for hit in hits]
    return ExportText(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())


def hit_record(hit: Hit) -> dict[str, Any]:
    """One hit as a JSON object; ``url`` holds the exact bytes of the path, even if they are not valid Unicode."""
    found: dict[str, Any] = {
        "rank": hit.rank,
        "video": _valid_text(hit.name),
        "start": hit.start,
        "end": hit.end,
        "score": hit.score,
        "level": hit.level,
        "peak": hit.peak,
        "duration": hit.duration,
        "rate": str(hit.rate),
        "path": _valid_text(str(hit.path)),
        "url": file_url(hit.path),
        "said": [_cue_record(cue, hit.meaning(cue)) for cue in hit.said],
        "written": [
            {"start": o.start, "end": o.end, "text": _valid_text(o.text), "at": o.at, "box": o.box} for o in hit.written
        ],
        "described": [
            {"start": o.start, "end": o.end, "text": _valid_text(o.text), "described_by": _valid_text(o.by)}
            for o in hit.described
        ],
        "heard": [{"start": o.start, "end": o.end, "label": _valid_text(o.text), "score": o.score} for o in hit.heard],
        "streams": {name: {"rank": one.rank, "score": one.score} for name, one in hit.streams.items()},
    }
    if hit.first is not None:
        found["reranked"] = {
            "model": hit.model, "score": hit.score, "first": {"rank": hit.first.rank, "score": hit.first.score},
        }  # fmt: skip
    if hit.also:
        found["also"] = [_valid_text(name) for name in hit.also]
    if hit.encoders:
        found["encoders"] = {name: round(score, 2) for name, score in hit.encoders.items()}
    if hit.curve:
        found["curve"] = list(map(float, hit.curve))
    return found


def _cue_record(cue: Cue, meaning: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {"start": cue.start, "end": cue.end, "text": _valid_text(cue.text)}
    if cue.language:
        found["language"] = cue.language
    return found if meaning is None else found | {"meaning": round(meaning, 3)}


def _valid_text(text: str) -> str:
    return text.encode("utf-8", errors="replace").decode()


EXPORT_KINDS.add("json", ExportKind((".json",), "everything about each moment, for programs", render))
