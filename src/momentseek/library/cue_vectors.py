"""Vectors of speech: encode cues and passages of videos, and write them as segments of the stream ``speech``.

One cue often says too little to be understood: half a sentence, or "yes". So neighbouring cues are also encoded
together, as passages. The rows of a video are those of its cues, then those of its passages of several cues. Videos
that were encoded before there were passages have rows of cues only.
"""

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
"""Number of texts that are encoded at once."""
PASSAGE_CHARACTERS = 110
"""Length in characters from which a passage is complete, about twenty words."""
MAX_PASSAGE_GAP_SECONDS = 5.0
"""Longest pause between two cues of a passage."""
MAX_PASSAGE_SECONDS = 30.0
"""Longest passage."""
PASSAGES_SETTING = "passages"
"""Setting of a library in which all speech has vectors of passages; older libraries get them with the next add."""
VIDEOS_PER_SEGMENT = 500
"""Number of videos whose cues are encoded and written at a time."""


def passages(cues: Sequence[Cue]) -> list[range]:
    """Ranges of neighbouring cues that form passages, in order; consecutive passages overlap by half.

    >>> passages([Cue(0, 2, "We meet"), Cue(2, 4, "at the station"), Cue(60, 62, "Yes.")])
    [range(0, 2), range(2, 3)]
    """
    out: list[range] = []
    for first, cue in enumerate(cues):
        if out and first < min(out[-1].start + (len(out[-1]) + 1) // 2, out[-1].stop):
            continue
        end, length = first + 1, len(cue.text)
        while (
            end < len(cues)
            and length < PASSAGE_CHARACTERS
            and cues[end].start - cues[end - 1].end <= MAX_PASSAGE_GAP_SECONDS
            and cues[end].end - cue.start <= MAX_PASSAGE_SECONDS
        ):
            length += len(cues[end].text) + 1
            end += 1
        if not out or end > out[-1].stop:
            out.append(range(first, end))
    return out


def vector_texts(cues: Sequence[Cue]) -> list[str]:
    """The texts of a video that have vectors, a row each: its cues, and its passages of several cues."""
    found = [cue.text for cue in cues]
    return found + [" ".join(found[at] for at in some) for some in passages(cues) if len(some) > 1]


def encode_cues(encoder: TextEncoder, cues: Sequence[Sequence[Cue]]) -> list[Vectors | None]:
    """Vectors of the cues and passages of each video; None for a video in which nothing is said."""
    by_video = [vector_texts(video) for video in cues]
    texts = [text for some in by_video for text in some]
    rows = [encoder.encode(texts[at : at + CUES_PER_BATCH]) for at in range(0, len(texts), CUES_PER_BATCH)]
    whole = np.concatenate(rows) if rows else np.empty((0, encoder.dim), np.float32)
    ends = np.cumsum([len(some) for some in by_video])
    return [whole[end - len(some) : end] if some else None for some, end in zip(by_video, ends.tolist(), strict=True)]


def fill_speech(catalog: Catalog, paths: LibraryPaths, encoder: TextEncoder, ids: Sequence[int] | None = None) -> None:
    """Encode the cues of the videos ``ids``, and record the encoder.

    By default the vectors of all videos are replaced. The caller holds the library's lock.
    """
    rows = store_speech(catalog, paths, encoder, ids)
    with catalog.changes():
        if ids is None:
            catalog.run("DELETE FROM segments WHERE stream = 'speech'")
            catalog.set(PASSAGES_SETTING, True)
        catalog.set_encoder(encoder_row("speech", SPEECH_ENCODER, encoder))
        for row in rows:
            catalog.insert_segment(row)


def store_speech(
    catalog: Catalog, paths: LibraryPaths, encoder: TextEncoder, ids: Sequence[int] | None = None
) -> list[SegmentRow]:
    """Write segments for the cues of videos; they are in use once the returned rows are in the catalog."""
    spoken = [video.id for video in catalog.videos(ids) if video.cues]
    rows = []
    for at in range(0, len(spoken), VIDEOS_PER_SEGMENT):
        part = spoken[at : at + VIDEOS_PER_SEGMENT]
        vectors = encode_cues(encoder, [catalog.own_cues(id, SPEECH) for id in part])
        content = segment_of("speech", part, [StoredVectors.of(found) for found in vectors if found is not None])
        rows.append(store_joined_segment(paths, content.stream, [content]))
    return rows


def replace_cues(library: LibraryReader, video: int, cues: Sequence[Cue], write: Callable[[], None]) -> int:
    """Replace the cues of a video and their vectors; returns the number of segments written.

    The files are written first. Then one transaction replaces the old segments of the video in the catalog, and
    ``write`` writes the cues. The caller holds the library's lock.
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
    """The segments with vectors of a video's cues, and segments that cannot be read, which are refused later."""
    out = []
    for row in library.catalog.segments("speech"):
        try:
            if video in read_segment(library.paths.segments, row.name).ids:
                out.append(row)
        except MomentseekError:
            out.append(row)
    return out
