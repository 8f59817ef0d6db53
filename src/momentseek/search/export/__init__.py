"""Hits written to files: one module per kind, chosen by the file's suffix.

>>> ", ".join(sorted(EXPORT_KINDS))
'csv, edl, fcpxml, html, json, srt'
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.media.edit_lists import ExportText
from momentseek.search.export.kind import EXPORT_KINDS, ExportKind, Thumbnail
from momentseek.search.export.run import hits_to_run
from momentseek.search.hit import Hit

__all__ = ["EXPORT_KINDS", "ExportKind", "Thumbnail", "export_kind", "hits_to_run", "render", "write"]


def write(
    hits: Sequence[Hit],
    query: str,
    path: str | os.PathLike[str],
    kind: str | None = None,
    thumbnail: Thumbnail | None = None,
) -> tuple[str, ...]:
    """Write hits to a file, whole or not at all; returns notes on what its format could not carry.

    ``kind`` is one of ``EXPORT_KINDS``; without it the suffix decides. ``thumbnail`` gives the pictures of a page.
    """
    written = render(hits, query, export_kind(path) if kind is None else kind, thumbnail)
    write_bytes(path, written.text.encode("utf-8", errors="replace"))
    return written.notes


def render(hits: Sequence[Hit], query: str, kind: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """The text of an export, and notes on what its format could not carry."""
    return EXPORT_KINDS[kind].render(hits, query, thumbnail)


def export_kind(path: str | os.PathLike[str]) -> str:
    """The kind of export that a file's suffix asks for.

    >>> export_kind("hits.EDL"), export_kind("hits.json.gz")
    ('edl', 'json')
    """
    place = Path(path)
    suffix = Path(place.stem).suffix if place.suffix.lower() == ".gz" else place.suffix
    for name in EXPORT_KINDS:
        if suffix.lower() in EXPORT_KINDS[name].suffixes:
            return name
    known = ", ".join(sorted(suffix for kind in EXPORT_KINDS.values() for suffix in kind.suffixes))
    raise MomentseekError(f"{place}: no export has the suffix {suffix!r}; use one of {known}")
