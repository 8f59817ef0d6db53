"""Transcripts: what a recogniser heard in videos that came without subtitles.

A transcript's cues are ordinary cues of the video; the table ``transcripts`` says that a machine made them, which
one, and when each word is spoken. While a long video is being heard, its parts are kept here, so that nothing is
heard twice; while another recogniser hears it anew, they lie in ``rehearings``, and the first transcript counts until
the second is whole.
Subtitles always win: a video that has cues is never transcribed, and a video whose subtitles change is read again
as a new one, without its transcript.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from momentseek.library.catalog import Catalog
from momentseek.library.video import PendingVideo
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.speech.transcript import SpokenCue, SpokenWord, TranscribedPart


@dataclass(frozen=True)
class UnheardVideo(PendingVideo):
    """A video with sound and without subtitles that the recogniser asked for has not heard to its end."""

    language: str | None = None


@dataclass(frozen=True)
class Transcript:
    """What a recogniser heard in a video, with what people corrected in it."""

    video: int
    transcriber: str
    language: str | None
    cues: tuple[SpokenCue, ...]
    problem: str = ""
    """Why the sound could not be heard; empty if it could."""
    fingerprint: str = ""
    """What the recogniser was made of."""
    edited: frozenset[int] = frozenset()
    """Places of the cues that a person corrected."""


def unheard_videos(catalog: Catalog, *, fingerprint: str, again: bool = False) -> list[UnheardVideo]:
    """The videos that are still to be heard, shortest first, so that something can be found soon.

    ``again`` adds those that another recogniser heard.
    """
    rows = catalog.rows(
        """SELECT videos.id, path, name, duration, size, mtime_ns, coalesce(new.heard, old.heard, 0),
                  coalesce(new.language, old.language)
           FROM videos
           LEFT JOIN transcripts AS old ON old.video = videos.id AND old.fingerprint = ?1
           LEFT JOIN rehearings AS new ON new.video = videos.id AND new.fingerprint = ?1
           WHERE audio AND (
               cues = 0 AND videos.id NOT IN (SELECT video FROM transcripts WHERE whole)
               OR ?2 AND videos.id IN (SELECT video FROM transcripts
                                       WHERE whole AND problem = '' AND fingerprint != ?1))
           ORDER BY duration, videos.id""",
        (fingerprint, again),
    )
    return [
        UnheardVideo(id, Path(os.fsdecode(path)), name, duration, size, mtime_ns, heard, language)
        for id, path, name, duration, size, mtime_ns, heard, language in rows
    ]


def keep_part(catalog: Catalog, video: int, transcriber: str, fingerprint: str, part: TranscribedPart) -> None:
    """Keep what was heard of a video so far, inside ``changes()``; it is not searched before the video is whole."""
    anew = has_transcript(catalog, video)
    table = "rehearings" if anew else "transcripts"
    rows = catalog.rows(f"SELECT words FROM {table} WHERE video = ? AND fingerprint = ?", (video, fingerprint))
    words = json.loads(rows[0][0]) if rows else []
    said = json.dumps(words + words_as_lists(part.cues))
    values = (video, transcriber, fingerprint, part.language, part.heard, said)
    if anew:
        catalog.run("INSERT OR REPLACE INTO rehearings VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, time.time()))
    else:
        catalog.run("INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?, ?, 0, '', ?)", (*values, time.time()))


def heard_parts(catalog: Catalog, video: int) -> Transcript | None:
    """What the latest recogniser heard of a video, as its parts were kept; None if nobody has listened."""
    sql = "SELECT model, language, words, '', fingerprint FROM rehearings WHERE video = ?"
    rows = catalog.rows(sql, (video,))
    return _transcript(video, rows[0]) if rows else transcript(catalog, video)


def finish_transcript(catalog: Catalog, transcript: Transcript, duration: float) -> None:
    """Make a transcript's cues those of its video, inside ``changes()``; vectors of the cues must be stored with it."""
    found = transcript
    said = json.dumps(words_as_lists(found.cues))
    catalog.run(
        "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?, ?, 1, '', ?)",
        (found.video, found.transcriber, found.fingerprint, found.language, duration, said, time.time()),
    )
    catalog.run("DELETE FROM rehearings WHERE video = ?", (found.video,))
    catalog.set_cues(found.video, spoken_cues(found))


def note_unheard(catalog: Catalog, video: int, transcriber: str, fingerprint: str, problem: str) -> None:
    """Note that a video's sound cannot be heard, inside ``changes()``; it is not tried again unasked.

    What another recogniser heard in it before stays.
    """
    if has_transcript(catalog, video):
        catalog.run("DELETE FROM rehearings WHERE video = ?", (video,))
        return
    catalog.run(
        "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, NULL, 0, '[]', 1, ?, ?)",
        (video, transcriber, fingerprint, problem, time.time()),
    )


def has_transcript(catalog: Catalog, video: int) -> bool:
    """Whether a video was heard to its end."""
    sql = "SELECT 1 FROM transcripts WHERE video = ? AND whole AND problem = ''"
    return catalog.has_transcripts and bool(catalog.rows(sql, (video,)))


def transcript(catalog: Catalog, video: int) -> Transcript | None:
    """What was heard in a video, whole or so far; None if nobody has listened."""
    if not catalog.has_transcripts:
        return None
    rows = catalog.rows(
        "SELECT model, language, words, problem, fingerprint FROM transcripts WHERE video = ?", (video,)
    )
    return _transcript(video, rows[0], _edited_times(catalog, video)) if rows else None


def _transcript(
    video: int, row: tuple[str, str | None, str, str, str], edited: frozenset[tuple[float, float]] = frozenset()
) -> Transcript:
    model, language, words, problem, fingerprint = row
    cues = tuple(SpokenCue(tuple(SpokenWord(*word) for word in cue)) for cue in json.loads(words))
    places = frozenset(at for at, cue in enumerate(cues) if (cue.start, cue.end) in edited)
    return Transcript(video, model, language, cues, problem, fingerprint, places)


def _edited_times(catalog: Catalog, video: int) -> frozenset[tuple[float, float]]:
    """Start and end of everything that was corrected in a video."""
    if not catalog.has_edits:
        return frozenset()
    sql = "SELECT start, end FROM cue_edits WHERE hash = (SELECT hash FROM videos WHERE id = ?) AND hash != ''"
    return frozenset((start, end) for start, end in catalog.rows(sql, (video,)))


def words_as_lists(cues: Iterable[SpokenCue]) -> list[list[list[float | str]]]:
    """Cues as they are stored: each a list of words, each a list of start, end and text."""
    return [[[word.start, word.end, word.text] for word in cue.words] for cue in cues]


def spoken_cues(transcript: Transcript) -> list[Cue]:
    """The cues of a transcript as every stream knows them."""
    return [Cue(cue.start, cue.end, cue.text, transcript.language) for cue in transcript.cues]


def transcribed_videos(catalog: Catalog) -> frozenset[int]:
    """Ids of the videos whose cues were made by a recogniser."""
    if not catalog.has_transcripts:
        return frozenset()
    rows = catalog.rows("SELECT video FROM transcripts WHERE whole AND problem = ''")
    return frozenset(row[0] for row in rows)


def heard_counts(catalog: Catalog) -> dict[str, float]:
    """How much was heard: ``heard`` videos and their ``heard_seconds``, ``unheard`` videos, ``unhearable`` ones."""
    if not catalog.has_transcripts:
        unheard = catalog.rows("SELECT count(*) FROM videos WHERE audio AND cues = 0")[0][0]
        return {"heard": 0, "heard_seconds": 0.0, "unheard": unheard, "unhearable": 0}
    heard, seconds = catalog.rows(
        "SELECT count(*), coalesce(sum(heard), 0) FROM transcripts WHERE whole AND problem = ''"
    )[0]
    unhearable = catalog.rows("SELECT count(*) FROM transcripts WHERE whole AND problem != ''")[0][0]
    unheard = catalog.rows(
        """SELECT count(*) FROM videos
           WHERE audio AND cues = 0 AND id NOT IN (SELECT video FROM transcripts WHERE whole)"""
    )[0][0]
    return {"heard": heard, "heard_seconds": seconds, "unheard": unheard, "unhearable": unhearable}


def forget_transcripts(catalog: Catalog, videos: Sequence[int]) -> None:
    """Forget that videos could not be heard, or were heard in part, inside ``changes()``, to hear them again."""
    catalog.run(
        """DELETE FROM transcripts WHERE (problem != '' OR NOT whole)
           AND video IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(videos)),),
    )
