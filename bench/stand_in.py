"""Encoders that scripts put in a library's place of its own, so that nothing is loaded."""

from __future__ import annotations

from pathlib import Path

from momentseek.library.catalog import Catalog
from momentseek.library.reader import LibraryReader
from momentseek.recognition.encoders.protocol import TextEncoder


class StandInEncoders:
    """The encoders of a library: one for all streams, which is there already."""

    model, has_model = None, False

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder

    def for_queries(self, stream: str) -> TextEncoder:
        """The encoder of queries to a stream."""
        return self._encoder

    def forget_others(self, rows: object) -> None:
        """Nothing is loaded, so nothing is let go."""


def open_reader(folder: Path, encoder: TextEncoder) -> LibraryReader:
    """A library with an encoder in place of its own."""
    library = LibraryReader(folder, Catalog(folder))
    library.encoders = StandInEncoders(encoder)  # type: ignore[assignment]
    return library
