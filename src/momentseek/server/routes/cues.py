"""What is said in a video: its cues, and correcting those that a recogniser heard."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.library.transcripts import Transcript, transcript
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses
from momentseek.server.schemas import Seconds, StrictBody, VideoId, clean_text
from momentseek.server.service import ServiceParam, find_video
from momentseek.transcription import CueEdit

router = APIRouter(tags=["videos"])
MAX_CUE_LETTERS = 2000
"""Longest text of a correction."""


class SpokenWordOut(BaseModel):
    """A word that a recogniser heard, with its times in seconds."""

    start: float
    end: float
    text: str


class CueOut(BaseModel):
    """A cue: a line that is said, with its times in seconds."""

    start: float
    end: float
    text: str
    language: str | None
    words: list[SpokenWordOut] = Field(description="The words one by one, where a recogniser heard them.")
    edited: bool = Field(description="Whether a person corrected what a recogniser heard.")


class CuesOut(BaseModel):
    """All cues of a video, in order."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "cues": [
                    {
                        "start": 1.0, "end": 2.5, "text": "Anybody home?", "language": "en", "words": [],
                        "edited": False,
                    }
                ],
                "heard_by": None,
            }
        }
    )  # fmt: skip
    cues: list[CueOut]
    heard_by: str | None = Field(description="The recogniser that heard the words; null if they are subtitles.")


class CueEditIn(StrictBody):
    """A correction of one cue that a recogniser heard."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"start": 1.0, "end": 2.5, "was": "Any body hum?", "text": "Anybody home?"},
        }
    )
    start: Seconds = Field(description="Start of the cue, as it was given.")
    end: Seconds = Field(description="End of the cue, as it was given.")
    was: str = Field(max_length=MAX_CUE_LETTERS, description="The text that is corrected; refused if it has changed.")
    text: Annotated[str, Field(max_length=MAX_CUE_LETTERS)] = Field(
        description="What is said; empty if nothing is, which removes the cue."
    )


@router.get("/videos/{id}/cues", summary="The cues of a video", responses=error_responses(404))
async def cues(service: ServiceParam, id: VideoId) -> CuesOut:
    """The transcript of a video: its subtitles, or what a recogniser heard, in order."""

    def read(library: Library) -> CuesOut:
        find_video(library, id)
        return _cues_out(library, id, transcript(library.catalog.of(id), id))

    return await service.readers.run(read)


@router.put("/videos/{id}/cues", summary="Correct a cue", responses={**error_responses(403, 404, 409), **BODY_ERRORS})
async def edit_cue(service: ServiceParam, id: VideoId, given: CueEditIn) -> CuesOut:
    """Correct a cue that a recogniser heard; its times stay, and the correction stays when the video is heard anew.

    Refused for subtitles, for a cue that has changed since, and unless the server allows changes.
    """
    service.check_changes()

    def edit(library: Library) -> CuesOut:
        video = find_video(library, id)
        heard = transcript(library.catalog.of(id), id)
        if heard is None or not video.cues or not library.catalog.cues(id):
            raise ApiError(409, "these cues are subtitles; correct them in their own file, and add the video again")
        same = [cue for cue in heard.cues if (cue.start, cue.end) == (given.start, given.end)]
        if not any(clean_text(cue.text) == given.was for cue in same):
            raise ApiError(409, "this cue has changed meanwhile; load the transcript again")
        return _cues_out(library, id, library.edit_cues(id, [CueEdit(given.start, given.end, clean_text(given.text))]))

    return await service.readers.run(edit)


def _cues_out(library: Library, id: int, heard: Transcript | None) -> CuesOut:
    found = library.catalog.cues(id)
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
