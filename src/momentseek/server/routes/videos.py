"""Routes for the library's videos, their cues, text on screen and descriptions, and moments by id."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from pydantic import BaseModel, Field

from momentseek.api.library import Library
from momentseek.library.database import CAPTIONS, OCR, SOUNDS
from momentseek.library.timed_text import track
from momentseek.library.tracks.speech import Transcript, transcript
from momentseek.recognition.speech.transcript import CueEdit
from momentseek.server.errors import ApiError, change_errors, error_responses
from momentseek.server.hits import (
    MAX_HIT_LINES,
    DescribedSceneOut,
    HeardSoundOut,
    SaidCueOut,
    WrittenLineOut,
    caption_out,
    line_out,
    said_out,
    sound_out,
)
from momentseek.server.schemas import (
    Seconds,
    StrictBody,
    StrictModel,
    VideoId,
    VideoOut,
    clean_text,
    example,
    media_url,
    moment_id,
    moment_url,
    rate_text,
    thumbnail_url,
    video_out,
)
from momentseek.server.service import ServiceParam, find_video

router = APIRouter(tags=["videos"])
MAX_CUE_LETTERS = 2000
"""Longest text of a correction, in characters."""
MOMENT_ID_PATTERN = r"^([1-9][0-9]{0,14}):([0-9]{1,7}\.[0-9]{3})-([0-9]{1,7}\.[0-9]{3})$"
ROUNDING_SECONDS = 0.001
"""How far the end in an id may lie after the end of the video, because of rounding."""
MomentId = Annotated[
    str, InPath(pattern=MOMENT_ID_PATTERN, description="A hit's `moment`.", examples=["7:4.500-9.000"])
]


class VideoListIn(StrictModel):
    """Which of the videos to list."""

    offset: Annotated[int, Query(ge=0, le=2**53)] = 0
    limit: Annotated[int, Query(ge=1, le=1000)] = 100
    name: Annotated[str, Query(max_length=200, description="Only videos whose name contains this.")] = ""


class VideosOut(BaseModel):
    """One page of the videos."""

    total: int
    videos: list[VideoOut]


class VideoDetailsOut(VideoOut):
    """A video with its cuts."""

    shots: list[float] = Field(description="Times of the cuts in seconds.")


class LinesOut(BaseModel):
    """The text that OCR found in a video, in order."""

    model_config = example({
        "lines": [
            {"start": 1.0, "end": 5.0, "text": "Way out", "marks": [], "at": 3.0, "box": [0.1, 0.2, 0.3, 0.05]}
        ],
        "read_by": "ppocr-small",
    })  # fmt: skip
    lines: list[WrittenLineOut]
    read_by: str | None = Field(description="The OCR model; null if the video was not read, or not to its end.")


class DescribedOut(BaseModel):
    """A model's descriptions of the scenes of a video, in order."""

    model_config = example({
        "scenes": [
            {"start": 0.0, "end": 8.0, "text": "A dog jumps.", "marks": [], "described_by": "mmt 1f2e3d4c"}
        ],
        "described_by": "mmt 1f2e3d4c",
    })  # fmt: skip
    scenes: list[DescribedSceneOut]
    described_by: str | None = Field(description="The model; null if the video was not described.")


@router.get("/videos", summary="List videos")
async def videos(service: ServiceParam, given: Annotated[VideoListIn, Query()]) -> VideosOut:
    """One page of the videos, sorted by name."""

    def read(library: Library) -> VideosOut:
        total, page = library.store.catalog.page_of_videos(clean_text(given.name), given.limit, given.offset)
        return VideosOut(total=total, videos=[video_out(video) for video in page])

    return await service.readers.run(read)


@router.get("/videos/{id}", summary="One video", responses=error_responses(404))
async def video(service: ServiceParam, id: VideoId) -> VideoDetailsOut:
    """A video and its cuts."""

    def read(library: Library) -> VideoDetailsOut:
        found = find_video(library, id)
        return VideoDetailsOut(**video_out(found).model_dump(), shots=list(found.shots))

    return await service.readers.run(read)


@router.delete("/videos/{id}", summary="Remove a video", responses=change_errors(404, 409))
async def remove_video(service: ServiceParam, id: VideoId) -> VideoOut:
    """Remove a video from the library; the file itself is not deleted. Needs a server that allows changes."""
    service.check_changes()

    def remove(library: Library) -> VideoOut:
        found = find_video(library, id)
        removed = video_out(found)
        library.remove([found.path])
        return removed

    return await service.readers.run(remove)


@router.get("/videos/{id}/described", summary="A model's descriptions of a video", responses=error_responses(404))
async def scenes_of_video(service: ServiceParam, id: VideoId) -> DescribedOut:
    """A model's descriptions of the scenes of a video, as far as they exist; never what is said in it."""

    def read(library: Library) -> DescribedOut:
        find_video(library, id)
        found = track(library.store.catalog.of(id), CAPTIONS, id)
        if found is None or found.problem:
            return DescribedOut(scenes=[], described_by=None)
        scenes = [caption_out(caption) for caption in found.cues]
        return DescribedOut(scenes=scenes, described_by=clean_text(found.by.model))

    return await service.readers.run(read)


@router.get("/videos/{id}/lines", summary="Text on screen of a video", responses=error_responses(404))
async def lines(service: ServiceParam, id: VideoId) -> LinesOut:
    """The text that OCR found in a video, with times and boxes; never what is said."""

    def read(library: Library) -> LinesOut:
        find_video(library, id)
        found = track(library.store.catalog.of(id), OCR, id)
        if found is None or found.problem or not found.whole:
            return LinesOut(lines=[], read_by=None)
        return LinesOut(lines=[line_out(line) for line in found.cues], read_by=clean_text(found.by.model))

    return await service.readers.run(read)


class SpokenWordOut(BaseModel):
    """A word of an automatic transcript, with its times in seconds."""

    start: float
    end: float
    text: str


class CueOut(BaseModel):
    """A cue: a line that is said, with its times in seconds."""

    start: float
    end: float
    text: str
    language: str | None
    words: list[SpokenWordOut] = Field(description="The words with their times, if a recogniser transcribed them.")
    edited: bool = Field(description="Whether a person corrected the recogniser's text.")


class CuesOut(BaseModel):
    """All cues of a video, in order."""

    model_config = example({
        "cues": [
            {
                "start": 1.0, "end": 2.5, "text": "Anybody home?", "language": "en", "words": [],
                "edited": False,
            }
        ],
        "heard_by": None,
    })  # fmt: skip
    cues: list[CueOut]
    heard_by: str | None = Field(description="The speech recogniser; null if the cues are subtitles.")


class CueEditIn(StrictBody):
    """A correction of one cue of an automatic transcript."""

    model_config = example({"start": 1.0, "end": 2.5, "was": "Any body hum?", "text": "Anybody home?"})
    start: Seconds = Field(description="Start of the cue, as GET gave it.")
    end: Seconds = Field(description="End of the cue, as GET gave it.")
    was: str = Field(max_length=MAX_CUE_LETTERS, description="The text that is corrected; refused if it has changed.")
    text: Annotated[str, Field(max_length=MAX_CUE_LETTERS)] = Field(
        description="What is said; empty if nothing is, which removes the cue."
    )


@router.get("/videos/{id}/cues", summary="The cues of a video", responses=error_responses(404))
async def cues(service: ServiceParam, id: VideoId) -> CuesOut:
    """The transcript of a video, in order: its subtitles, or else an automatic transcript."""

    def read(library: Library) -> CuesOut:
        find_video(library, id)
        return _cues_out(library, id, transcript(library.store.catalog.of(id), id))

    return await service.readers.run(read)


@router.put("/videos/{id}/cues", summary="Correct a cue", responses=change_errors(403, 404, 409))
async def edit_cue(service: ServiceParam, id: VideoId, given: CueEditIn) -> CuesOut:
    """Correct a cue of an automatic transcript; its times stay, and the correction survives another transcription.

    Refused for subtitles, for a cue that has changed since, and if the server does not allow changes.
    """
    service.check_changes()

    def edit(library: Library) -> CuesOut:
        video = find_video(library, id)
        heard = transcript(library.store.catalog.of(id), id)
        if heard is None or not video.cues or not library.store.catalog.cues(id):
            raise ApiError(409, "these cues are subtitles; correct them in their own file, and add the video again")
        same = [cue for cue in heard.cues if (cue.start, cue.end) == (given.start, given.end)]
        if not any(clean_text(cue.text) == given.was for cue in same):
            raise ApiError(409, "this cue has changed meanwhile; load the transcript again")
        return _cues_out(
            library, id, library.store.edit_cues(id, [CueEdit(given.start, given.end, clean_text(given.text))])
        )

    return await service.readers.run(edit)


def _cues_out(library: Library, id: int, heard: Transcript | None) -> CuesOut:
    found = library.store.catalog.cues(id)
    spoken = heard.cues if heard is not None and len(heard.cues) == len(found) else None
    edited = heard.edited if heard is not None and spoken is not None else frozenset()
    out = []
    for at, cue in enumerate(found):
        words = spoken[at].words if spoken is not None else ()
        out.append(
            CueOut(
                start=cue.start, end=cue.end, text=clean_text(cue.text), language=cue.language, edited=at in edited,
                words=[SpokenWordOut(start=word.start, end=word.end, text=clean_text(word.text)) for word in words],
            )
        )  # fmt: skip
    return CuesOut(cues=out, heard_by=heard.transcriber if heard is not None and found else None)


class MomentOut(BaseModel):
    """A moment: a video with a start and an end."""

    model_config = example({
        "id": "7:4.500-9.000", "url": "/api/v1/moments/7:4.500-9.000", "video_id": 7, "name": "kitchen.mp4",
        "start": 4.5, "end": 9.0, "duration": 60.0, "rate": "25/1",
        "said": [{"start": 4.0, "end": 6.0, "text": "Where is the dog?", "marks": []}],
        "written": [], "described": [], "heard": [], "thumbnail": "/api/v1/videos/7/thumbnail?t=6.7",
        "media": "/api/v1/videos/7/media#t=4.500,9.000",
        "page": "/#v=7&t=4.500,9.000",
    })  # fmt: skip
    id: str
    url: str
    video_id: int
    name: str = Field(description="The name of the video.")
    start: float = Field(description="Seconds from the beginning of the video.")
    end: float
    duration: float = Field(description="Length of the whole video in seconds.")
    rate: str = Field(description="Frames per second of the video, as a fraction.")
    said: list[SaidCueOut]
    written: list[WrittenLineOut] = Field(description="Text that OCR found on screen.")
    described: list[DescribedSceneOut] = Field(description="A model's descriptions of the scenes.")
    heard: list[HeardSoundOut] = Field(description="Sounds other than speech.")
    thumbnail: str = Field(description="A picture of the middle of the moment.")
    media: str = Field(description="The video with the moment as its fragment, so that a player plays just the moment.")
    page: str = Field(description="The address of the web page that shows it.")


@router.get("/moments/{id}", summary="One moment", responses=error_responses(404))
async def moment(service: ServiceParam, id: MomentId) -> MomentOut:
    """A moment that a search returned, or any other part of a video."""
    number, start, end = parse_moment_id(id)

    def read(library: Library) -> MomentOut:
        video = find_video(library, number)
        if start >= video.duration or end > video.duration + ROUNDING_SECONDS:
            raise no_such_moment(id)
        catalog = library.store.catalog
        name, fragment = moment_id(number, start, end), f"{start:.3f},{end:.3f}"
        return MomentOut(
            id=name,
            url=moment_url(name),
            video_id=video.id,
            name=clean_text(video.name),
            start=start,
            end=min(end, video.duration),
            duration=video.duration,
            rate=rate_text(video.rate),
            said=[said_out(cue) for cue in catalog.cues_between(video.id, start, end)],
            written=[line_out(o) for o in catalog.cues_between(video.id, start, end, OCR)[:MAX_HIT_LINES]],
            described=[caption_out(o) for o in catalog.cues_between(video.id, start, end, CAPTIONS)[:MAX_HIT_LINES]],
            heard=[sound_out(o) for o in catalog.cues_between(video.id, start, end, SOUNDS)[:MAX_HIT_LINES]],
            thumbnail=thumbnail_url(video.id, (start + end) / 2),
            media=f"{media_url(video.id)}#t={fragment}",
            page=f"/#v={video.id}&t={fragment}",
        )

    return await service.readers.run(read)


def parse_moment_id(id: str) -> tuple[int, float, float]:
    """Video id, start and end in seconds of a moment's id; 404 if it is malformed.

    >>> parse_moment_id("7:4.500-9.000")
    (7, 4.5, 9.0)
    """
    match = re.fullmatch(MOMENT_ID_PATTERN, id)
    if match is None or not float(match[2]) < float(match[3]):
        raise no_such_moment(id)
    return int(match[1]), float(match[2]), float(match[3])


def no_such_moment(id: str) -> ApiError:
    """The error that there is no such moment."""
    return ApiError(404, f"there is no moment {id[:60]}; a search gives the ids of moments, such as 7:4.500-9.000")
