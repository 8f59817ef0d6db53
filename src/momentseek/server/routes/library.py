"""Routes for the state of the server and its library, and to choose the library's encoder."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from momentseek import __version__
from momentseek.api.library import Library
from momentseek.cluster.shard_client import ShardClient
from momentseek.core.errors import MomentseekError
from momentseek.library.database import CAPTIONS, OCR, PICTURES, SOUNDS, SPEECH
from momentseek.library.encoders import second_encoder
from momentseek.library.location import library_name
from momentseek.library.timed_text import track_counts
from momentseek.recognition.downloads import absent_models
from momentseek.recognition.encoders.registry import HUB_PREFIX
from momentseek.recognition.inventory import EncoderEntry, inventory
from momentseek.recognition.weights.catalog import HUB_MODELS
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.localise.localiser import DEFAULT_LOCALISER
from momentseek.search.options import STREAMS
from momentseek.server.errors import ApiError, change_errors, hide_paths
from momentseek.server.jobs import JobOut
from momentseek.server.schemas import StrictBody, clean_text, example, same_fields
from momentseek.server.security.users import CALLER
from momentseek.server.service import ServiceParam
from momentseek.server.workers import encoder_name, public_spec

router = APIRouter()
OFFLINE_MODELS = "offline"
"""The name that stands for all missing offline models."""
LABELS_NOTE = (
    "knows a thousand labels of things, not actions; momentseek models list shows encoders that understand sentences"
)


class EncoderOut(BaseModel):
    """The encoder of the library's frames."""

    spec: str
    name: str
    note: str = Field(description="A warning about its limits; usually empty.")


class LibraryOut(BaseModel):
    """The contents of the library, in numbers."""

    name: str
    videos: int
    seconds: float
    clips: int
    cues: int
    heard: int = Field(description="Number of videos that were transcribed because they have no subtitles.")
    read: int = Field(description="Number of videos that were searched for text on screen (OCR).")
    lines: int = Field(description="Number of lines of text that OCR found.")
    second_encoder: str = Field(description="The second of the library's two encoders; empty if it has only one.")
    seen: int = Field(description="Number of videos that the second encoder has encoded.")
    unseen: int = Field(description="Number of videos that the second encoder has not encoded yet.")
    described: int = Field(description="Number of videos whose scenes a model has described.")
    captions: int = Field(description="Number of scenes that the model has described.")
    sounds: int = Field(description="Number of sounds other than speech that were detected.")
    failures: int
    encoder: EncoderOut
    generation: int = Field(description="A number that changes whenever the content of the library does.")


class ShardOut(BaseModel):
    """A part of a library in shards."""

    name: str
    videos: int
    replicas: int = Field(description="Number of copies that share the requests.")
    answering: int = Field(description="Number of copies that answered just now; if none did, searches are incomplete.")
    nodes: list[str] = Field(
        description="Ray's ids of the nodes that they run on; empty if they run in the server itself."
    )
    lag: float | None = Field(description="Seconds until the slowest of them answered.")


class StatusOut(BaseModel):
    """The library, and what can be chosen when searching."""

    model_config = example({
        "library": {
            "name": "default", "videos": 4, "seconds": 240.0, "clips": 160, "cues": 31,
            "heard": 2, "read": 4, "lines": 57, "second_encoder": "", "seen": 0, "unseen": 0,
            "described": 0, "captions": 0, "sounds": 3, "failures": 0,
            "encoder": {"spec": "things", "name": "things", "note": LABELS_NOTE}, "generation": 2719834,
        },
        "version": "0.1.0", "localisers": ["height", "watershed"], "localiser": "height",
        "streams": ["vision", "speech", "text", "described", "name"],
        "fusions": ["rrf", "scores"], "fusion": "rrf",
        "encoders": ["things"], "rerankers": [], "busy": False, "changes": True, "user": None,
        "shards": [
            {"name": "shard-000", "videos": 4, "replicas": 1, "answering": 1, "nodes": ["6f1c02ab93de"],
             "lag": 0.004},
        ],
    })  # fmt: skip
    library: LibraryOut
    version: str
    localisers: list[str] = Field(
        description="Those of a trained model are listed only if it made the library's vectors."
    )
    localiser: str = Field(description="The default.")
    streams: list[str]
    fusions: list[str]
    fusion: str = Field(description="The default.")
    encoders: list[str] = Field(
        description="The served library's encoder, then those of the libraries to compare with."
    )
    rerankers: list[str] = Field(description="Models that can re-rank a search.")
    busy: bool = Field(description="Whether videos are being added.")
    user: str | None = Field(description="The owner of the token that was sent, if people have their own tokens.")
    changes: bool = Field(description="Whether clients may remove videos and change the encoder.")
    shards: list[ShardOut] = Field(description="The parts of a library in shards; empty if it is in one piece.")


@router.get("/status", tags=["library"], summary="Status of the server")
async def status(service: ServiceParam) -> StatusOut:
    """The library in a few numbers, and what can be chosen when searching."""
    library, shards, localisers, localiser = await service.readers.run(
        lambda library: (_library(library), _shards(library, service.shard_client), *_localisers(library))
    )
    return StatusOut(
        library=library,
        version=__version__,
        localisers=localisers,
        localiser=localiser,
        streams=list(STREAMS),
        fusions=sorted(FUSIONS),
        fusion=DEFAULT_FUSION,
        encoders=[library.encoder.spec, *service.comparisons.names],
        rerankers=[clean_text(name) for name in service.settings.rerankers],
        busy=service.jobs.busy,
        changes=service.settings.changes,
        user=CALLER.get() or None,
        shards=shards,
    )


def _shards(library: Library, shard_client: ShardClient | None) -> list[ShardOut]:
    """The status of the library's shards, in this process or elsewhere."""
    asked = shard_client or library.engine.source
    if not isinstance(asked, ShardClient):
        return []
    return [
        ShardOut(
            **same_fields(ShardOut, one)
            | {"videos": int(catalog.totals()["videos"]), "lag": None if one.lag is None else round(one.lag, 4)}
        )
        for one, catalog in zip(asked.status(), library.store.catalog.parts, strict=True)
    ]


def _localisers(library: Library) -> tuple[list[str], str]:
    """The localisers and the default. If the copy of a model is lost, searches fail, but the status still answers."""
    try:
        return library.engine.localisers, library.engine.localiser
    except MomentseekError:
        return [DEFAULT_LOCALISER], DEFAULT_LOCALISER


def _library(library: Library) -> LibraryOut:
    catalog = library.store.catalog
    with catalog.view():
        totals = catalog.totals()
        heard, read, described, seen, sounds = (
            [track_counts(part, kind) for part in catalog.parts] for kind in (SPEECH, OCR, CAPTIONS, PICTURES, SOUNDS)
        )
        spec = encoder_name(library)
        row = catalog.encoder("vision")
        generation = catalog.content_number()
    return LibraryOut(
        name=clean_text(library_name(library.path)),
        videos=int(totals["videos"]),
        seconds=totals["seconds"],
        clips=int(totals["clips"]),
        cues=int(totals["cues"]),
        heard=sum(each.done for each in heard),
        read=sum(each.done for each in read),
        lines=sum(each.found for each in read),
        second_encoder=second_encoder(spec),
        seen=sum(each.done for each in seen),
        unseen=sum(each.undone for each in seen) if second_encoder(spec) else 0,
        described=sum(each.done for each in described),
        captions=sum(each.found for each in described),
        sounds=sum(each.found for each in sounds),
        failures=int(totals["failures"]),
        encoder=EncoderOut(
            spec=spec,
            name=public_spec(row.name) if row else spec,
            note=LABELS_NOTE if spec == "things" else "",
        ),
        generation=generation,
    )


class ChoiceOut(BaseModel):
    """An encoder that the library could use."""

    name: str
    state: Literal["ready", "absent", "damaged"]
    problem: str = Field(description="What is wrong with it, or why it is absent.")
    megabytes: float | None = Field(description="Size of the download, as published.")
    licence: str
    good_for: str
    source: str = Field(description="Where it comes from.")
    downloadable: bool
    used: bool = Field(description="Whether it made the library's vectors.")


class EncodersOut(BaseModel):
    """All image-text encoders, and whether this server lets clients change anything."""

    model_config = example({"changes": True, "encoders": [], "missing": []})
    changes: bool
    encoders: list[ChoiceOut]
    missing: list[ChoiceOut] = Field(
        description="Models for offline use that are not downloaded yet; the name `offline` downloads all of them."
    )


class EncoderIn(StrictBody):
    """An encoder by its name."""

    encoder: Annotated[
        str,
        Field(
            max_length=120,
            examples=["hub:siglip2-base"],
            description="A name from GET /encoders; for a download also `offline`, which means all missing models.",
        ),
    ]


@router.get("/encoders", tags=["encoders"], summary="Encoders to choose from")
async def encoders(service: ServiceParam) -> EncodersOut:
    """The image encoders that are installed or can be downloaded."""

    def read(library: Library) -> EncodersOut:
        used = encoder_name(library)
        absent = [model.name for model in absent_models()]

        def choice(one: EncoderEntry) -> ChoiceOut:
            return ChoiceOut(
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

        entries = inventory()
        return EncodersOut(
            changes=service.settings.changes,
            encoders=[choice(one) for one in entries if one.kind == "image-text"],
            missing=[choice(one) for one in entries if one.name in absent],
        )

    return await service.listers.run(read)


@router.post(
    "/encoders/download",
    tags=["encoders"],
    status_code=202,
    summary="Download an encoder",
    responses=change_errors(404, 409),
)
async def download(service: ServiceParam, given: EncoderIn) -> JobOut:
    """Start to download an encoder to the server; answers at once. Needs a server that allows changes."""
    service.check_changes()
    name = given.encoder.removeprefix(HUB_PREFIX)
    if name == OFFLINE_MODELS:
        return service.jobs.download("offline models", absent_models())
    if name not in HUB_MODELS or HUB_MODELS[name].kind != "image-text":
        raise ApiError(404, f"there is no encoder {given.encoder[:60]!r} to download; GET /api/v1/encoders lists them")
    return service.jobs.download(name, [HUB_MODELS[name]])


@router.post(
    "/encoders/use",
    tags=["encoders"],
    status_code=202,
    summary="Encode all videos with another encoder",
    responses=change_errors(404, 409),
)
async def use(service: ServiceParam, given: EncoderIn) -> JobOut:
    """Start to encode all videos again; searches use the old vectors until all new ones are ready.

    If the library already uses this pair of encoders, only the videos that the second has not encoded yet are encoded.
    """
    service.check_changes()

    def check(library: Library) -> None:
        known = {one.name: one.state for one in inventory() if one.kind == "image-text"}
        if given.encoder not in known:
            raise ApiError(404, f"there is no encoder {given.encoder[:60]!r}; GET /api/v1/encoders lists them")
        if known[given.encoder] != "ready":
            raise ApiError(409, f"{given.encoder} is not installed yet; download it first")
        if given.encoder == encoder_name(library) and not _library(library).unseen:
            raise ApiError(409, f"{given.encoder} has already made the library's vectors")

    await service.listers.run(check)
    return service.jobs.reencode(given.encoder)
