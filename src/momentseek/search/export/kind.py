"""What a kind of export is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from momentseek.media.edit_lists import ExportText
from momentseek.search.hit import Hit

Thumbnail = Callable[[Hit], bytes | None]
"""Gives a hit's picture as WebP, or None where it has none."""
Render = Callable[[Sequence[Hit], str, Thumbnail | None], ExportText]


@dataclass(frozen=True)
class Kind:
    """A name, the suffixes by which a file is known to be of it, what it is for, and how it is made."""

    name: str
    suffixes: tuple[str, ...]
    about: str
    render: Render
