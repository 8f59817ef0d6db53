"""Corrections of transcripts: kept by the content of a video, and put in place of what was heard.

So they hold when a video is heard anew by another recogniser, moved, copied, or removed and added again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from momentseek.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.ingest.speech import replace_cues
from momentseek.library.reader import LibraryReader
from momentseek.library.transcripts import Transcript, finish_transcript, has_transcript, spoken_cues, transcript
from momentseek.library.video import Video
from momentseek.media.cue import Cue
from momentseek.transcription.correction import CueEdit, apply_edits

SAME_TIME_SECONDS = 0.002
"""Subtitle files give times in milliseconds, rounded; so near they are the same."""


def cue_edits(catalog: Catalog, hash: str) -> list[CueEdit]:
    """What people corrected in a content, by time."""
    if not catalog.has_edits or not hash:
        return []
    rows = catalog.rows("SELECT start, end, text FROM cue_edits WHERE hash = ? ORDER BY start, end", (hash,))
    return [CueEdit(*row) for row in rows]


def check_transcript(catalog: Catalog, video: Video) -> Transcript:
    """What a recogniser heard in a video; refused if none did, since only that can be corrected here."""
    found = transcript(catalog, video.id)
    if found is None or not has_transcript(catalog, video.id):
        raise MomentseekError(
            f"{video.name}: has no transcript that a recogniser made; subtitles are corrected in their own file, and "
            "momentseek transcribe hears what has none"
        )
    return found


def edit_transcript(library: LibraryReader, video: Video, edits: Sequence[CueEdit]) -> Transcript:
    """Correct what a recogniser heard in a video, all at once or not at all. The caller holds the library's lock."""
    catalog = library.catalog
    found = check_transcript(catalog, video)
    kept = [CueEdit.of(edit.start, edit.end, edit.text) for edit in edits]
    late = next((edit for edit in kept if edit.start >= video.duration), None)
    if late is not None:
        raise MomentseekError(f"{video.name}: ends at {video.duration:.1f} s; there is no cue at {late.start:.1f} s")
    catalog.make_transcripts()
    new = replace(found, cues=tuple(apply_edits(found.cues, kept)))

    def write() -> None:
        _keep_edits(catalog, video.hash, kept)
        finish_transcript(catalog, new, video.duration)

    replace_cues(library, video.id, spoken_cues(new), write)
    after = transcript(catalog, video.id)
    assert after is not None
    return after


def with_edits(catalog: Catalog, heard: Transcript) -> Transcript:
    """What a recogniser has just heard in a video, with what people corrected in the same content before."""
    (video,) = catalog.videos([heard.video])
    return replace(heard, cues=tuple(apply_edits(heard.cues, cue_edits(catalog, video.hash))))


def edits_between(now: Sequence[Cue], wanted: Sequence[Cue]) -> list[CueEdit]:
    """The corrections that make the cues of a video those of a file: only what differs.

    >>> now = [Cue(1.0, 2.0, "a tail"), Cue(3.0, 4.0, "noise"), Cue(5.0, 6.0, "right")]
    >>> found = edits_between(now, [Cue(1.0, 2.0, "a tale"), Cue(5.0, 6.001, "right"), Cue(7.0, 8.0, "more")])
    >>> [(edit.start, edit.text) for edit in found]
    [(1.0, 'a tale'), (3.0, ''), (7.0, 'more')]
    """
    old = {(cue.start, cue.end): cue for cue in now}
    used: set[tuple[float, float]] = set()
    out = []
    for cue in wanted:
        near = next((times for times in old if times not in used and _same_times(times, cue)), None)
        if near is None:
            out.append(CueEdit.of(cue.start, cue.end, cue.text))
            continue
        used.add(near)
        if " ".join(cue.text.split()) != " ".join(old[near].text.split()):
            out.append(CueEdit.of(*near, cue.text))
    out += [CueEdit.of(*times, "") for times in old if times not in used]
    return sorted(out, key=lambda edit: (edit.start, edit.end))


def _same_times(times: tuple[float, float], cue: Cue) -> bool:
    return abs(times[0] - cue.start) <= SAME_TIME_SECONDS and abs(times[1] - cue.end) <= SAME_TIME_SECONDS


def _keep_edits(catalog: Catalog, hash: str, edits: Sequence[CueEdit]) -> None:
    for edit in edits:
        catalog.run(
            "INSERT OR REPLACE INTO cue_edits VALUES (?, ?, ?, ?, ?)",
            (hash, edit.start, edit.end, edit.text, time.time()),
        )
