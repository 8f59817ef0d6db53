"""Transcripts: what a recogniser heard in videos that came without subtitles.

A transcript's cues are ordinary cues of the video; the table ``transcripts`` says that a machine made them, which
one, and when each word is spoken. While a long video is being heard, its parts are kept here, so that nothing is
heard twice.
Subtitles always win: a video that has cues is never transcribed, and a video whose subtitles change is read again
as a new one, without its transcript.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from momentseek.library.catalog import Catalog
from momentseek.library.video import PendingVideo
from momentseek.media.cue import Cue
from momentseek.transcription.hearing import HeardPart
from momentseek.transcription.transcript import SpokenCue, SpokenWord


@dataclass(frozen=True)
class UnheardVideo(PendingVideo):
    """A video with sound and without cues that no recogniser has heard to its end."""

    language: str | None = None


@dataclass(frozen=True)
class Transcript:
    """What a recogniser heard in a video."""

    video: int
    transcriber: str
    language: str | None
    cues: tuple[SpokenCue, ...]
    problem: str = ""
    """Why the sound could not be heard; empty if it could."""


def unheard_videos(catalog: Catalog, *, fingerprint: str) -> list[UnheardVideo]:
    """The videos that are still to be heard, shortest first, so that something can be found soon."""
    rows = catalog.rows(
        """SELECT videos.id, path, name, duration, size, mtime_ns, coalesce(heard, 0), transcripts.language
           FROM videos LEFT JOIN transcripts ON transcripts.video = videos.id AND transcripts.fingerprint = ?
           WHERE audio AND cues = 0 AND videos.id NOT IN (SELECT video FROM transcripts WHERE whole)
           ORDER BY duration, videos.id""",
        (fingerprint,),
    )
    return [
        UnheardVideo(id, Path(os.fsdecode(path)), name, duration, size, mtime_ns, heard, language)
        for id, path, name, duration, size, mtime_ns, heard, language in rows
    ]


def keep_part(catalog: Catalog, video: int, transcriber: str, fingerprint: str, part: HeardPart) -> None:
    """Keep what was heard of a video so far, inside ``changes()``; it is not searched before the video is whole."""
    rows = catalog.rows("SELECT words FROM transcripts WHERE video = ? AND fingerprint = ?", (video, fingerprint))
    words = json.loads(rows[0][0]) if rows else []
    words += [[[word.start, word.end, word.text] for word in cue.words] for cue in part.cues]
    catalog.run(
        "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?, ?, 0, '', ?)",
        (video, transcriber, fingerprint, part.language, part.heard, json.dumps(words), time.time()),
    )


def finish_transcript(catalog: Catalog, transcript: Transcript, duration: float) -> None:
    """Make a transcript's cues those of its video, inside ``changes()``; vectors of the cues must be stored with it."""
    catalog.run("UPDATE transcripts SET whole = 1, heard = ? WHERE video = ?", (duration, transcript.video))
    catalog.add_cues(transcript.video, spoken_cues(transcript))


def note_unheard(catalog: Catalog, video: int, transcriber: str, fingerprint: str, problem: str) -> None:
    """Note that a video's sound cannot be heard, inside ``changes()``; it is not tried again unasked."""
    catalog.run(
        "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, NULL, 0, '[]', 1, ?, ?)",
        (video, transcriber, fingerprint, problem, time.time()),
    )


def transcript(catalog: Catalog, video: int) -> Transcript | None:
    """What was heard in a video, whole or so far; None if nobody has listened."""
    if not catalog.has_transcripts:
        return None
    rows = catalog.rows("SELECT model, language, words, problem FROM transcripts WHERE video = ?", (video,))
    if not rows:
        return None
    model, language, words, problem = rows[0]
    cues = tuple(SpokenCue(tuple(SpokenWord(*word) for word in cue)) for cue in json.loads(words))
    return Transcript(video, model, language, cues, problem)


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
