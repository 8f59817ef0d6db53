"""Vectors of what is said: encode the cues of videos and write them as segments of the stream ``speech``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.database import SPEECH
from momentseek.library.encoders import SPEECH_ENCODER, encoder_row
from momentseek.library.merging import DamagedVectorsError, find_damage, store_joined_segment
from momentseek.library.paths import LibraryPaths
from momentseek.library.reader import LibraryReader
from momentseek.library.segments import StoredVectors, parts_without, read_segment, segment_of
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import TextEncoder, Vectors

CUES_PER_BATCH = 64
"""Number of cues that are encoded at once."""
VIDEOS_PER_SEGMENT = 500
"""Videos whose cues are encoded and written at a time."""


def encode_cues(encoder: TextEncoder, cues: Sequence[Sequence[Cue]]) -> list[Vectors | None]:
    """Vectors of the cues of each video, one row per cue; None for a video in which nothing is said."""
    texts = [cue.text for video in cues for cue in video]
    rows = [encoder.encode(texts[at : at + CUES_PER_BATCH]) for at in range(0, len(texts), CUES_PER_BATCH)]
    whole = np.concatenate(rows) if rows else np.empty((0, encoder.dim), np.float32)
    found: list[Vectors | None] = []
    at = 0
    for video in cues:
        found.append(whole[at : at + len(video)] if video else None)
        at += len(video)
    return found


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
        vectors = encode_cues(encoder, [catalog.own_cues(id, SPEECH) for id in part])
        content = segment_of("speech", part, [StoredVectors.of(found) for found in vectors if found is not None])
        rows.append(store_joined_segment(paths, content.stream, [content]))
    return rows


def replace_cues(library: LibraryReader, video: int, cues: Sequence[Cue], write: Callable[[], None]) -> int:
    """Give a video of the library other cues and their vectors; returns how many segments were written.

    The files come first; then, in one transaction, the catalog names them in place of those that held the video before,
    and ``write`` writes the cues. The caller holds the library's lock.
    """
    catalog, paths, encoder = library.catalog, library.paths, library.encoders.speech
    (vectors,) = encode_cues(encoder, [cues]) if encoder is not None else (None,)
    parts = [] if vectors is None else [segment_of("speech", [video], [StoredVectors.of(vectors)])]
    old = _segments_with(library, video) if catalog.own_cues(video, SPEECH) else []
    gone = np.array([video], np.int64)
    damages = [damage for row in old if (damage := find_damage(paths, row, gone)) is not None]
    if damages:
        raise DamagedVectorsError(catalog, damages)
    for row in old:
        parts += parts_without(read_segment(paths.segments, row.name), gone)
    parts.sort(key=lambda part: int(part.ids[0]))
    new = [store_joined_segment(paths, "speech", parts)] if parts else []
    with catalog.changes():
        write()
        for row in old:
            catalog.remove_segment(row.name)
        for row in new:
            catalog.insert_segment(row)
    return len(new)


def _segments_with(library: LibraryReader, video: int) -> list[SegmentRow]:
    """The segments that hold the vectors of a video's cues; one that cannot be read may do so, and is refused later."""
    out = []
    for row in library.catalog.segments("speech"):
        try:
            if video in read_segment(library.paths.segments, row.name).ids:
                out.append(row)
        except MomentseekError:
            out.append(row)
    return out
