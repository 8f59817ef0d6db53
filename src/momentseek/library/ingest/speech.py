"""Encoding what is said in videos that are in the library already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from momentseek.library import encoding
from momentseek.library.catalog import SegmentRow
from momentseek.library.ingest.writer import encoded_cues, write_segment
from momentseek.library.rows import StoredVectors, pooled

if TYPE_CHECKING:
    from momentseek.encoders.protocol import TextEncoder
    from momentseek.library.store import LibraryStore

VIDEOS = 500
"""Videos whose cues are encoded at a time."""


def fill_speech(library: LibraryStore, ids: Sequence[int] | None = None) -> None:
    """Give vectors to the cues of ``ids``, by default of all videos, and note the encoder. For the lock's holder."""
    speech = library.speech_encoder
    assert speech is not None
    rows = speech_rows(library, speech, ids)
    with library.catalog.changes():
        library.catalog.set_encoder(encoding.row_of("speech", encoding.SPEECH, speech))
        for row in rows:
            library.catalog.insert_segment(row)


def speech_rows(library: LibraryStore, speech: TextEncoder, ids: Sequence[int] | None = None) -> list[SegmentRow]:
    """Write segments for the cues of videos; they count once they are in the catalog."""
    catalog = library.catalog
    spoken = [video.id for video in catalog.videos(ids) if video.cues]
    rows = []
    for at in range(0, len(spoken), VIDEOS):
        part = spoken[at : at + VIDEOS]
        vectors = encoded_cues(speech, [catalog.cues(id) for id in part])
        content = pooled("speech", part, [StoredVectors.of(found) for found in vectors if found is not None])
        rows.append(write_segment(library.place, content))
    return rows
