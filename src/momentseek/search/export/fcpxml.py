"""Hits as FCPXML: the moments one after another, best first, each with a marker that carries the query."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.media.edit_lists import ExportText, write_fcpxml
from momentseek.search.export.excerpts import excerpts
from momentseek.search.export.kind import Kind, Thumbnail
from momentseek.search.hit import Hit


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """The timeline, at the frame rate most of the videos have."""
    return write_fcpxml(excerpts(hits, query), query or "Moments")


KIND = Kind("fcpxml", (".fcpxml",), "a timeline for Final Cut Pro and DaVinci Resolve", render)
