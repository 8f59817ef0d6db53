"""The state of a library's segments between two changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library import segments
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.segments import Segment

MAX_SNAPSHOT_TRIES = 20
"""How often the state is read anew when a writer has replaced its files meanwhile."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The segments that count, mapped into memory, and the videos in them that no longer do.

    It stays as it is while others write: a file that is replaced stays readable for a process that has mapped it.
    """

    vision: tuple[Segment, ...]
    speech: tuple[Segment, ...]
    gone: NDArray[np.int64]
    generation: tuple[int, int]
    spans: tuple[Segment, ...] = ()
    """Segments by which a trained model finds spans; one for each of ``vision``."""
    encoders: tuple[EncoderRow, ...] = ()
    """The encoders that made these vectors; a query must be encoded by the same."""

    def check_sizes(self) -> None:
        """Refuse a snapshot of which a file was cut short since it was mapped."""
        for segment in (*self.vision, *self.speech, *self.spans):
            segment.check_size()


def take_snapshot(catalog: Catalog, folder: Path) -> Snapshot:
    """The segments that count now. Their files are opened after the catalog was read; if a writer has deleted one in
    between, the catalog is read again.
    """
    for attempt in range(MAX_SNAPSHOT_TRIES):
        generation = catalog.state()
        with catalog.view():
            rows, gone = catalog.segments(), catalog.gone()
            made_by = tuple(row for stream in segments.VECTOR_STREAMS if (row := catalog.encoder(stream)) is not None)
        try:
            opened = {
                stream: tuple(segments.read_segment(folder, row.name) for row in rows if row.stream == stream)
                for stream in segments.VECTOR_STREAMS
            }
        except MomentseekError:
            if attempt + 1 < MAX_SNAPSHOT_TRIES and catalog.state() != generation:
                continue
            raise
        return Snapshot(opened["vision"], opened["speech"], gone, generation, opened["spans"], made_by)
    raise AssertionError
