"""A state of the library, all of one moment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.library import segments
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.segments import Segment

TRIES = 20
"""How often a state is read again because a writer replaced its files meanwhile."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The segments that count, mapped into memory, and the videos in them that no longer do.

    It stays as it is while others write: files that are replaced stay readable for who has mapped them.
    """

    vision: tuple[Segment, ...]
    speech: tuple[Segment, ...]
    gone: NDArray[np.int64]
    generation: tuple[int, int]
    spans: tuple[Segment, ...] = ()
    """What a trained model finds spans by; a row for each of ``vision``."""
    encoders: tuple[EncoderRow, ...] = ()
    """What made these vectors, and nothing else may encode a query for them."""


def snapshot(catalog: Catalog, folder: Path) -> Snapshot:
    """The state now. Files are opened after the catalog was read, so a writer may unlink one between: read again."""
    for attempt in range(TRIES):
        generation = catalog.state()
        with catalog.view():
            rows, gone = catalog.segments(), catalog.gone()
            made_by = tuple(row for stream in segments.STREAMS if (row := catalog.encoder(stream)) is not None)
        try:
            opened = {
                stream: tuple(segments.read(folder, row.name) for row in rows if row.stream == stream)
                for stream in segments.STREAMS
            }
        except MomentseekError:
            if attempt + 1 < TRIES and catalog.state() != generation:
                continue
            raise
        return Snapshot(opened["vision"], opened["speech"], gone, generation, opened["spans"], made_by)
    raise AssertionError
