"""Descriptions: what a model says of the scenes of videos, as captions with times.

A caption counts as soon as it is there: a kill costs the scene that was being described. Captions are never mixed with
cues: what a model says of a scene is one thing, what is said in it another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.tracks.passes import PassCounts, PassTable
from momentseek.library.words import match_any
from momentseek.recognition.captions.scenes import SceneCaption

CAPTION_COLUMNS = "start, end, text"
DESCRIBING = PassTable("descriptions", "captions", CAPTION_COLUMNS)
_SELECT = f"""SELECT {", ".join(f"captions.{name}" for name in CAPTION_COLUMNS.split(", "))}, descriptions.model
              FROM captions JOIN descriptions ON descriptions.video = captions.video"""


@dataclass(frozen=True)
class VideoDescription:
    """What a model says of a video."""

    video: int
    model: str
    captions: tuple[SceneCaption, ...]
    problem: str = ""
    """Why it could not be described; empty if it could."""
    whole: bool = True


@dataclass(frozen=True)
class CaptionMatch:
    """A caption that holds words of a query."""

    id: int
    video: int
    line: SceneCaption
    bm25: float
    """How well it matches, by BM25; the higher the better."""


def keep_caption(
    catalog: Catalog, video: int, model: str, fingerprint: str, span: tuple[float, float], text: str
) -> None:
    """Keep what a model says of the next scene of a video, inside ``changes()``; an empty text only counts as done."""
    if not DESCRIBING.is_begun(catalog, video, fingerprint):
        catalog.run("DELETE FROM captions WHERE video = ?", (video,))
    if text:
        catalog.run(f"INSERT INTO captions (video, {CAPTION_COLUMNS}) VALUES (?, ?, ?, ?)", (video, *span, text))
    DESCRIBING.note(catalog, video, model, fingerprint, span[1], whole=False)


def description(catalog: Catalog, video: int) -> VideoDescription | None:
    """What a model says of a video so far; None if none was asked."""
    if not catalog.has_descriptions:
        return None
    rows = catalog.rows("SELECT model, problem, whole FROM descriptions WHERE video = ?", (video,))
    if not rows:
        return None
    model, problem, whole = rows[0]
    found = catalog.rows(f"{_SELECT} WHERE captions.video = ? ORDER BY captions.id", (video,))
    return VideoDescription(video, model, tuple(map(_caption, found)), problem, bool(whole))


def captions_between(catalog: Catalog, video: int, start: float, end: float) -> list[SceneCaption]:
    """What a model says of the scenes of a video that overlap the time from ``start`` to ``end`` (seconds)."""
    if not catalog.has_descriptions:
        return []
    sql = f"{_SELECT} WHERE captions.video = ? AND captions.start < ? AND ? < captions.end ORDER BY captions.id"
    return [_caption(row) for row in catalog.rows(sql, (video, end, start))]


def _caption(row: Sequence[Any]) -> SceneCaption:

    return SceneCaption(*row)


def described_counts(catalog: Catalog) -> PassCounts:
    """How much was described."""
    return DESCRIBING.counts(catalog, there=catalog.has_descriptions)


# finding captions by words; ``videos`` restricts an answer to these ids, None stands for all videos


def count_captions(catalog: Catalog, word: str | None = None) -> int:
    """Number of captions that hold a word in any of its forms; of all captions if no word is given."""
    if word is None:
        return int(catalog.rows("SELECT count(*) FROM captions")[0][0])
    sql = "SELECT count(*) FROM caption_words WHERE caption_words MATCH ?"
    return int(catalog.rows(sql, (match_any([word]),))[0][0])


def best_captions(
    catalog: Catalog, words: Sequence[str], videos: NDArray[np.int64] | None, limit: int
) -> list[CaptionMatch]:
    """The ``limit`` captions that match any of the words best, best match first."""
    if not words:
        return []
    some = "" if videos is None else "AND captions.video IN (SELECT value FROM json_each(?))"
    ids = () if videos is None else (json.dumps(videos.tolist()),)
    rows = catalog.rows(
        f"""SELECT captions.id, captions.video, -bm25(caption_words), captions.start, captions.end, captions.text, model
            FROM caption_words JOIN captions ON captions.id = caption_words.rowid
            JOIN descriptions ON descriptions.video = captions.video WHERE caption_words MATCH ? {some}
            ORDER BY bm25(caption_words), captions.video, captions.id LIMIT ?""",
        (match_any(words), *ids, limit),
    )
    return [CaptionMatch(row[0], row[1], _caption(row[3:]), float(row[2])) for row in rows]


def caption_times(
    catalog: Catalog, texts: Sequence[str], videos: Iterable[int]
) -> dict[int, list[tuple[float, float]]]:
    """Start and end of each scene of some videos of whose caption any of some texts is a part, by video."""
    out: dict[int, list[tuple[float, float]]] = {}
    if not texts or not catalog.has_descriptions:
        return out
    rows = catalog.rows(
        """SELECT captions.video, captions.start, captions.end FROM caption_words
           JOIN captions ON captions.id = caption_words.rowid
           WHERE caption_words MATCH ? AND captions.video IN (SELECT value FROM json_each(?))""",
        (match_any(texts), json.dumps(sorted(videos))),
    )
    for video, start, end in rows:
        out.setdefault(video, []).append((start, end))
    return out
