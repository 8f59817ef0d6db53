"""Hits as a CMX 3600 edit decision list: the moments one after another, best first."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.media.edit_lists import ExportText, write_edl
from momentseek.search.export import EXPORT_KINDS, ExportKind, Thumbnail, excerpts
from momentseek.search.hit import Hit


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render an edit decision list at the frame rate that most of the videos have."""
    return write_edl(excerpts(hits, query), query or "Moments")


EXPORT_KINDS.add("edl", ExportKind((".edl",), "a timeline for any editing program (CMX 3600)", render))
