"""Whether a library has changed."""

from __future__ import annotations

from momentseek.api import Library


def generation_of(library: Library) -> int:
    """A number of the library's content, the same for every connection."""
    return library.catalog.content_number()
