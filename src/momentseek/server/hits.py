"""Hits as the API shows them, with the words of the query marked in what is said, written and described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from momentseek.api.library import Library
from momentseek.library.database import CAPTIONS, OCR, SOUNDS, SPEECH
from momentseek.library.words import WordMatcher, content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.search.display import sought_spellings, sought_words
from momentseek.search.hit import Hit
from momentseek.search.query import Query
from momentseek.server.schemas import (
    Level,
    clean_text,
    example,
    media_url,
    moment_id,
    moment_url,
    rate_text,
    same_fields,
    thumbnail_url,
)

MARK_START, MARK_END = "\x02", "\x03"
MAX_HIT_LINES = 50
"""Largest number of lines of each kind in a hit; a long moment of a scrolling page has thousands."""


class SaidCueOut(BaseModel):
    """A cue that overlaps a moment, with the words of the query marked."""

    start: float = Field(description="Seconds from the beginning of the video.")
    end: float
    text: str
    marks: list[tuple[int, int]] = Field(description="Character ranges `[first, end)` of the query's words.")
    meaning: float | None = Field(None, description="Cosine similarity to the query, if the cue matches it by meaning.")


class WrittenLineOut(BaseModel):
    """A line of text that OCR found on screen during a moment, with the words of the query marked."""

    start: float = Field(description="When it first appears, in seconds from the beginning of the video.")
    end: float = Field(description="When it is last seen.")
    text: str
    marks: list[tuple[int, int]] = Field(
        description="Character ranges `[first, end)` of the query's words; one wrong letter still matches."
    )
    at: float = Field(description="Time of the frame in which it was read best.")
    box: tuple[float, float, float, float] = Field(
        description="Left, top, width and height in that frame, as shares of the picture."
    )


class DescribedSceneOut(BaseModel):
    """A model's description of a scene that a moment overlaps; nobody said it in the video."""

    start: float = Field(description="Start of the scene, in seconds from the beginning of the video.")
    end: float
    text: str
    marks: list[tuple[int, int]] = Field(description="Character ranges `[first, end)` of the query's words.")
    described_by: str = Field(description="The model.")


class HeardSoundOut(BaseModel):
    """A sound other than speech during a moment."""

    start: float = Field(description="Start of the sound, in seconds from the beginning of the video.")
    end: float
    label: str = Field(description="What it is, such as dog barking.")
    score: float = Field(description="How sure the detector is of it, from 0 to 1.")


class StandingOut(BaseModel):
    """The rank of a moment by one stream alone, among the moments of the answer, and that stream's score."""

    rank: int
    score: float


class RerankedOut(BaseModel):
    """The result of re-ranking for a moment."""

    model: str
    score: float = Field(description="The model's score, by which the moments are ranked.")
    first: StandingOut = Field(description="The rank of the video, and its fused score, before re-ranking.")


class HitOut(BaseModel):
    """A moment that a search found."""

    model_config = example({
        "rank": 1, "video_id": 7, "name": "kitchen.mp4", "start": 3.0, "end": 9.0, "peak": 4.5,
        "duration": 60.0, "rate": "25/1", "score": 0.032, "level": "strong",
        "said": [{"start": 4.0, "end": 6.0, "text": "Where is the dog?", "marks": [[13, 16]]}],
        "written": [], "described": [], "heard": [],
        "streams": {"vision": {"rank": 1, "score": 0.31}}, "also": [], "curve": [],
        "thumbnail": "/api/v1/videos/7/thumbnail?t=4.5", "media": "/api/v1/videos/7/media",
        "moment": "7:3.000-9.000", "url": "/api/v1/moments/7:3.000-9.000",
    })  # fmt: skip
    rank: int = Field(description="Counted from 1 over all pages.")
    video_id: int
    name: str = Field(description="The name of the video.")
    start: float = Field(description="Seconds from the beginning of the video.")
    end: float
    peak: float = Field(description="The time of the most representative frame, in seconds.")
    duration: float = Field(description="Length of the whole video in seconds.")
    rate: str = Field(description="Frames per second of the video, as a fraction.")
    score: float = Field(description="Comparable within one search only.")
    level: Level = Field(description="How confident the search is.")
    said: list[SaidCueOut]
    written: list[WrittenLineOut] = Field(description="Text that OCR found on screen; lines with marks first.")
    described: list[DescribedSceneOut] = Field(
        description="A model's descriptions of the scenes; those with marks first."
    )
    heard: list[HeardSoundOut] = Field(description="Sounds other than speech; those of the query first.")
    streams: dict[str, StandingOut]
    reranked: RerankedOut | None = Field(None, description="The result of re-ranking, if the search was re-ranked.")
    also: list[str] = Field(description="Other files with the same content.")
    curve: list[float] = Field(description="The score of each clip's picture, if `explain` was asked for.")
    thumbnail: str
    media: str
    moment: str = Field(description="The id of this moment; it does not depend on the query.")
    url: str = Field(description="The address of the moment itself.")


def hits_out(hits: Sequence[Hit], query: Query) -> list[HitOut]:
    """Convert hits to the API's answers, with the query's words marked; one small word index serves all of them."""
    cues = [cue for hit in hits for cue in hit.said]
    marks = iter(mark_words([cue.text for cue in cues], sought_words(query)))
    texts = [line.text for hit in hits for line in hit.written]
    written = iter(mark_words(texts, sought_spellings(query, texts)))
    captions = [caption.text for hit in hits for caption in hit.described]
    described = iter(mark_words(captions, content_words(query.described_text)))
    return [
        _hit_out(
            hit,
            [said_out(cue, next(marks), hit.meaning(cue)) for cue in hit.said],
            [line_out(line, next(written)) for line in hit.written],
            [caption_out(caption, next(described)) for caption in hit.described],
        )
        for hit in hits
    ]


def texts_between(library: Library, video: int, start: float, end: float) -> dict[str, Any]:
    """What is said, written, described and heard in a moment, by the names of a hit's fields."""
    kinds = {"said": SPEECH, "written": OCR, "described": CAPTIONS, "heard": SOUNDS}
    return {name: tuple(library.store.catalog.cues_between(video, start, end, kind)) for name, kind in kinds.items()}


def said_out(cue: Cue, marks: Sequence[tuple[int, int]] = (), meaning: float | None = None) -> SaidCueOut:
    """Convert a cue to the API's form."""
    text = _without_marks(cue.text)
    return SaidCueOut(start=cue.start, end=cue.end, text=text, marks=list(marks), meaning=meaning)


def _timed_text(cue: Cue, marks: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return said_out(cue, marks).model_dump(exclude={"meaning"})


def line_out(line: Cue, marks: Sequence[tuple[int, int]] = ()) -> WrittenLineOut:
    """Convert a line of text on screen to the API's form."""
    return WrittenLineOut(**_timed_text(line, marks), at=line.at, box=line.box or (0.0, 0.0, 0.0, 0.0))


def caption_out(caption: Cue, marks: Sequence[tuple[int, int]] = ()) -> DescribedSceneOut:
    """Convert a description of a scene to the API's form."""
    return DescribedSceneOut(**_timed_text(caption, marks), described_by=clean_text(caption.by))


def sound_out(sound: Cue) -> HeardSoundOut:
    """Convert a sound to the API's form."""
    return HeardSoundOut(start=sound.start, end=sound.end, label=clean_text(sound.text), score=sound.score or 0.0)


def mark_words(texts: Sequence[str], terms: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Character ranges ``[first, end)`` of the terms found in each text; inflected forms match, too.

    >>> mark_words(["Dogs were running.", "No cats"], ["run", "dog"])
    [[(0, 4), (10, 17)], []]
    """
    if not texts or not terms:
        return [[] for _ in texts]
    matcher = WordMatcher([_without_marks(text) for text in texts])
    return [_marked_ranges(marked) for marked in matcher.mark(list(terms), MARK_START, MARK_END)]


def _marked_ranges(marked: str) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    at = start = 0
    for c in marked:
        if c == MARK_START:
            start = at
        elif c == MARK_END:
            ranges.append((start, at))
        else:
            at += 1
    return ranges


def _without_marks(text: str) -> str:
    """The text with the two marking characters replaced, so that its length stays the same."""
    return clean_text(text).replace(MARK_START, " ").replace(MARK_END, " ")


def _hit_out(
    hit: Hit, said: list[SaidCueOut], written: list[WrittenLineOut], described: list[DescribedSceneOut]
) -> HitOut:
    moment = moment_id(hit.video_id, hit.start, hit.end)
    shown = {
        "name": clean_text(hit.name),
        "rate": rate_text(hit.rate),
        "said": said,
        "written": sorted(written, key=lambda line: -len(line.marks))[:MAX_HIT_LINES],
        "described": sorted(described, key=lambda caption: -len(caption.marks))[:MAX_HIT_LINES],
        "heard": [sound_out(sound) for sound in hit.heard[:MAX_HIT_LINES]],
        "streams": {name: StandingOut(rank=one.rank, score=one.score) for name, one in hit.streams.items()},
        "reranked": _reranked_out(hit),
        "also": [clean_text(name) for name in hit.also],
        "thumbnail": thumbnail_url(hit.video_id, hit.peak),
        "media": media_url(hit.video_id),
        "moment": moment,
        "url": moment_url(moment),
    }
    return HitOut(**same_fields(HitOut, hit) | shown)


def _reranked_out(hit: Hit) -> RerankedOut | None:
    if hit.first is None:
        return None
    first = StandingOut(rank=hit.first.rank, score=hit.first.score)
    return RerankedOut(model=clean_text(hit.model), score=hit.score, first=first)
