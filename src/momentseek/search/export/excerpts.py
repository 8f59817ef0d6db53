"""Hits as excerpts for an edit list."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.media.edit_lists import Excerpt
from momentseek.search.hit import Hit


def excerpts(hits: Sequence[Hit], query: str) -> list[Excerpt]:
    """One excerpt per hit, in their order, titled with the query."""
    return [
        Excerpt(hit.path, hit.name, hit.start, hit.end, hit.rate, query, hit.duration, hit.width, hit.height, hit.audio)
        for hit in hits
    ]
