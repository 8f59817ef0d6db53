"""Hits written to files: one module per kind, chosen by the file's suffix.

>>> ", ".join(KINDS)
'csv, json, srt, edl, fcpxml, html'
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.media.edit_lists import ExportText
from momentseek.search.export.csv import KIND as CSV
from momentseek.search.export.edl import KIND as EDL
from momentseek.search.export.fcpxml import KIND as FCPXML
from momentseek.search.export.html import KIND as HTML
from momentseek.search.export.json import KIND as JSON
from momentseek.search.export.kind import Kind, Thumbnail
from momentseek.search.export.run import hits_to_run
from momentseek.search.export.srt import KIND as SRT
from momentseek.search.hit import Hit

KINDS: dict[str, Kind] = {kind.name: kind for kind in (CSV, JSON, SRT, EDL, FCPXML, HTML)}

__all__ = ["KINDS", "Kind", "Thumbnail", "hits_to_run", "kind_of", "render", "write"]


def write(
    hits: Sequence[Hit],
    query: str,
    path: str | os.PathLike[str],
    kind: str | None = None,
    thumbnail: Thumbnail | None = None,
) -> tuple[str, ...]:
    """Write hits to a file, whole or not at all; returns notes on what its format could not carry.

    ``kind`` is one of ``KINDS``; without it the suffix tells. ``thumbnail`` gives the pictures of an HTML page.
    """
    written = render(hits, query, kind_of(path) if kind is None else kind, thumbnail)
    write_bytes(path, written.text.encode("utf-8", errors="replace"))
    return written.notes


def render(hits: Sequence[Hit], query: str, kind: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """The text of an export, and notes on what its format could not carry."""
    if kind not in KINDS:
        raise MomentseekError(f"there is no export {kind!r}; there are {', '.join(KINDS)}")
    return KINDS[kind].render(hits, query, thumbnail)


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind of export a file's suffix asks for.

    >>> kind_of("hits.EDL"), kind_of("hits.json.gz")
    ('edl', 'json')
    """
    place = Path(path)
    suffix = Path(place.stem).suffix if place.suffix.lower() == ".gz" else place.suffix
    for kind in KINDS.values():
        if suffix.lower() in kind.suffixes:
            return kind.name
    known = ", ".join(suffix for kind in KINDS.values() for suffix in kind.suffixes)
    raise MomentseekError(f"{place}: the suffix {suffix!r} tells no export; use one of {known}")
