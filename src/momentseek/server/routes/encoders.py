"""Choosing the encoder of the library: what there is, downloading one, encoding all videos with another."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api.library import Library
from momentseek.recognition.downloads import inventory
from momentseek.recognition.encoders.registry import HUB_PREFIX
from momentseek.recognition.weights.catalog import HUB_MODELS
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses, hide_paths
from momentseek.server.jobs import JobOut
from momentseek.server.schemas import StrictBody, clean_text
from momentseek.server.service import ServiceParam
from momentseek.server.workers import encoder_name

router = APIRouter(tags=["encoders"])


class ChoiceOut(BaseModel):
    """An encoder that the library could use."""

    name: str
    state: Literal["ready", "absent", "damaged"]
    problem: str = Field(description="What is wrong with it, or why it is absent.")
    megabytes: float | None = Field(description="What a download takes, as published.")
    licence: str
    good_for: str
    source: str = Field(description="Where it comes from.")
    downloadable: bool
    used: bool = Field(description="Whether it made the library's vectors.")


class EncodersOut(BaseModel):
    """All image-text encoders, and whether this server lets clients change anything."""

    model_config = ConfigDict(json_schema_extra={"example": {"changes": True, "encoders": []}})
    changes: bool
    encoders: list[ChoiceOut]


class EncoderIn(StrictBody):
    """An encoder by its name."""

    encoder: Annotated[str, Field(max_length=120, examples=["hub:siglip2-base"])]


@router.get("/encoders", summary="Encoders to choose from")
async def encoders(service: ServiceParam) -> EncodersOut:
    """The encoders of pictures that are here or can be downloaded."""

    def read(library: Library) -> EncodersOut:
        used = encoder_name(library)
        return EncodersOut(
            changes=service.settings.changes,
            encoders=[
                ChoiceOut(
                    name=one.name,
                    state=one.state,
                    problem=clean_text(hide_paths(one.problem)),
                    megabytes=one.megabytes,
                    licence=one.licence,
                    good_for=one.good_for,
                    source=one.source,
                    downloadable=one.name.removeprefix(HUB_PREFIX) in HUB_MODELS,
                    used=one.name == used,
                )
                for one in inventory()
                if one.kind == "image-text"
            ],
        )

    return await service.listers.run(read)


@router.post(
    "/encoders/download",
    status_code=202,
    summary="Download an encoder",
    responses={**error_responses(404, 409), **BODY_ERRORS},
)
async def download(service: ServiceParam, given: EncoderIn) -> JobOut:
    """Start to download an encoder to the server; answers at once. Refused unless the server allows changes."""
    service.check_changes()
    name = given.encoder.removeprefix(HUB_PREFIX)
    if name not in HUB_MODELS or HUB_MODELS[name].kind != "image-text":
        raise ApiError(404, f"there is no encoder {given.encoder[:60]!r} to download; GET /api/v1/encoders lists them")
    return service.jobs.download(HUB_MODELS[name])


@router.post(
    "/encoders/use",
    status_code=202,
    summary="Encode all videos with another encoder",
    responses={**error_responses(404, 409), **BODY_ERRORS},
)
async def use(service: ServiceParam, given: EncoderIn) -> JobOut:
    """Start to encode all videos anew; searches use the old vectors until all new ones are there."""
    service.check_changes()

    def check(library: Library) -> None:
        known = {one.name: one.state for one in inventory() if one.kind == "image-text"}
        if given.encoder not in known:
            raise ApiError(404, f"there is no encoder {given.encoder[:60]!r}; GET /api/v1/encoders lists them")
        if known[given.encoder] != "ready":
            raise ApiError(409, f"{given.encoder} is not here yet; download it first")
        if given.encoder == encoder_name(library):
            raise ApiError(409, f"{given.encoder} has made the library's vectors already")

    await service.listers.run(check)
    return service.jobs.reencode(given.encoder)
