"""More like this: searching by a moment, or by a picture."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import ConfigDict, Field

from momentseek.api import Library
from momentseek.moments import Moment
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses
from momentseek.server.routes.moments import MOMENT_ID_PATTERN, no_such_moment, parse_moment_id
from momentseek.server.routes.search import SearchOut, search_out
from momentseek.server.search_requests import ExampleIn, ResultPage
from momentseek.server.service import ServiceParam, find_video

router = APIRouter(tags=["search"])
MAX_PICTURE_CHARACTERS = 60_000
"""Of a picture in base64: what fits into a body; a JPEG with a longer side of 400 pixels does."""


class LikeIn(ExampleIn):
    """A moment, and how to answer."""

    moment: Annotated[
        str, Field(pattern=MOMENT_ID_PATTERN, description="A hit's `moment`.", examples=["7:4.500-9.000"])
    ]


class UploadedPictureIn(ExampleIn):
    """A picture, and how to answer."""

    model_config = ConfigDict(strict=True)

    picture: Annotated[
        str,
        Field(
            min_length=4,
            max_length=MAX_PICTURE_CHARACTERS,
            description="A JPEG, PNG or WebP in base64; make it smaller first (400 pixels are plenty).",
        ),
    ]


@router.get("/search/like", summary="More like this", responses=error_responses(404))
async def search_like(service: ServiceParam, asked: Annotated[LikeIn, InQuery()]) -> SearchOut:
    """The moments that look like a moment, which is not among them."""
    number, start, end = parse_moment_id(asked.moment)

    def work(library: Library) -> SearchOut:
        video = find_video(library, number)
        if start >= video.duration:
            raise no_such_moment(asked.moment)
        results = library.more_like(
            Moment(str(video.path), start, end),
            asked.offset + asked.k + 1,
            where=asked.where,
            localiser=asked.localiser or None,
            group=asked.group,
            all=asked.all,
        )
        return search_out(ResultPage(results, asked))

    return await service.searchers.run(work)


@router.post("/search/picture", summary="Search by a picture", responses=BODY_ERRORS)
async def search_picture(service: ServiceParam, asked: UploadedPictureIn) -> SearchOut:
    """The moments that look like a picture, which is looked at and not kept."""
    try:
        picture = base64.b64decode(asked.picture, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(422, "the picture is not in base64; encode its bytes so") from None

    def work(library: Library) -> SearchOut:
        results = library.search_picture(
            picture,
            asked.offset + asked.k + 1,
            where=asked.where,
            localiser=asked.localiser or None,
            group=asked.group,
            all=asked.all,
        )
        return search_out(ResultPage(results, asked))

    return await service.searchers.run(work)
