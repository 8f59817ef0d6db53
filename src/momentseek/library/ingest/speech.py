"""Encoding what is said in videos that are in the library already."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.encoders.protocol import TextEncoder
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.encoders import SPEECH_ENCODER, encoder_row
from momentseek.library.ingest.writer import encode_cues, store_segment
from momentseek.library.paths import LibraryPaths
from momentseek.library.reader import LibraryReader
from momentseek.library.vectors import StoredVectors, segment_of
from momentseek.media.cue import Cue

VIDEOS_PER_SEGMENT = 500
"""Videos whose cues are encoded and written at a time."""


def fill_speech(catalog: Catalog, paths: LibraryPaths, encoder: TextEncoder, ids: Sequence[int] | None = None) -> None:
    """Give vectors to the cues of the videos ``ids``, by default of all videos, and note the encoder.

    The caller holds the library's lock.
    """
    rows = store_speech(catalog, paths, encoder, ids)
    with catalog.changes():
        catalog.set_encoder(encoder_row("speech", SPEECH_ENCODER, encoder))
        for row in rows:
            catalog.insert_segment(row)


def store_speech(
    catalog: Catalog, paths: LibraryPaths, encoder: TextEncoder, ids: Sequence[int] | None = None
) -> list[SegmentRow]:
    """Write segments for the cues of videos; they count once the rows returned are in the catalog."""
    spoken = [video.id for video in catalog.videos(ids) if video.cues]
    rows = []
    for at in range(0, len(spoken), VIDEOS_PER_SEGMENT):
        part = spoken[at : at + VIDEOS_PER_SEGMENT]
        vectors = encode_cues(encoder, [catalog.cues(id) for id in part])
        content = segment_of("speech", part, [StoredVectors.of(found) for found in vectors if found is not None])
        rows.append(store_segment(paths, content))
    return rows


def store_cue_vectors(library: LibraryReader, video: int, cues: Sequence[Cue]) -> list[SegmentRow]:
    """Write a segment for cues that a video of the library is about to get; it counts once the row returned does."""
    encoder = library.encoders.speech
    (vectors,) = encode_cues(encoder, [cues]) if encoder is not None else (None,)
    if vectors is None:
        return []
    return [store_segment(library.paths, segment_of("speech", [video], [StoredVectors.of(vectors)]))]
