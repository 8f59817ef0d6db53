"""Hits as FCPXML: the moments one after another, best first, each with a marker that carries the query."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.media.edit_lists import ExportText, write_fcpxml
from momentseek.search.export import EXPORT_KINDS, ExportKind, Thumbnail, excerpts
from momentseek.search.hit import Hit


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render a timeline at the frame rate that most of the videos have."""
    return write_fcpxml(excerpts(hits, query), query or "Moments")


EXPORT_KINDS.add("fcpxml", ExportKind((".fcpxml",), "a timeline for Final Cut Pro and DaVinci Resolve", render))
