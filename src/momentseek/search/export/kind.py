"""What a kind of export is, and what several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from momentseek.media.edit_lists import Excerpt, ExportText
from momentseek.registry import Registry
from momentseek.search.hit import Hit

Thumbnail = Callable[[Hit], bytes | None]
"""Gives a hit's picture as WebP, or None where it has none."""
Render = Callable[[Sequence[Hit], str, Thumbnail | None], ExportText]
"""Makes the text of an export from hits, the query and their pictures, with notes on what it could not carry."""


@dataclass(frozen=True)
class ExportKind:
    """A kind of file that hits can be written to."""

    suffixes: tuple[str, ...]
    """Suffixes by which a file is known to be of this kind."""
    about: str
    """What the kind of file is good for, in a few words."""
    render: Render


EXPORT_KINDS: Registry[ExportKind] = Registry("export", package="momentseek.search.export")
"""All kinds of export by name; each file of this folder adds its own."""


def excerpts(hits: Sequence[Hit], query: str) -> list[Excerpt]:
    """One excerpt for an edit list per hit, in their order, titled with the query."""
    return [
        Excerpt(hit.path, hit.name, hit.start, hit.end, hit.rate, query, hit.duration, hit.width, hit.height, hit.audio)
        for hit in hits
    ]
