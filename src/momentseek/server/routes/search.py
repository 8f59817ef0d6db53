"""Routes to search by a query, a moment or a picture; and the curve of a query along one video."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Response
from fastapi import Query as InQuery
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api.library import Library
from momentseek.cluster.shards.store import shard_of
from momentseek.core.moments.moment import Moment
from momentseek.library.cue_vectors import vector_texts
from momentseek.library.database import CAPTIONS, OCR
from momentseek.library.video import Video
from momentseek.library.words import WordMatcher, content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.search.display import sought_words
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.hit import Results
from momentseek.search.localise.localiser import LOCALISERS
from momentseek.search.query import Query
from momentseek.search.questions import read_question
from momentseek.search.stream_index import StreamIndex
from momentseek.search.streams.vision import build_curve, build_vision_query
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses
from momentseek.server.hits import HitOut, hits_out
from momentseek.server.routes.videos import MOMENT_ID_PATTERN, no_such_moment, parse_moment_id
from momentseek.server.schemas import (
    ALL_STREAMS,
    ExampleIn,
    FusionName,
    Level,
    LocaliserName,
    QueryText,
    SearchBodyIn,
    SearchIn,
    SearchParametersIn,
    StreamNames,
    StrictModel,
    VideoId,
    clean_text,
    example,
    parse_streams,
    same_fields,
    search_library,
)
from momentseek.server.service import Service, ServiceParam, find_video

router = APIRouter(tags=["search"])
MAX_PICTURE_CHARACTERS = 60_000
"""Largest picture in base64 that fits into a body, such as a JPEG with a longer side of 400 pixels."""
MAX_VIDEO_HITS = 50
"""Largest number of hits in one video."""


class UnderstandingOut(BaseModel):
    """What the image encoders recognise in a query."""

    encoders: list[str] = Field(description="Names of the encoders.")
    labels: list[str] = Field(description="Nouns that are labels of a classifier.")
    words: list[str] = Field(description="Words and names that have their own vector.")
    guessed: list[str] = Field(description="Words that are approximated by similar words.")
    unknown: list[str] = Field(description="Words that no encoder knows.")
    suggestions: dict[str, str] = Field(description="Unknown word → a known word with a similar spelling.")
    missing: list[str] = Field([], description="Models that are not downloaded, and would understand words better.")


class SearchOut(BaseModel):
    """One page of hits, best match first."""

    query: str = Field(description="The query as it was understood.")
    took_seconds: float = Field(description="Duration of the search in seconds.")
    took: float = Field(
        description="Duration of the search in milliseconds; use `took_seconds`.",
        json_schema_extra={"deprecated": True},
    )
    total: int = Field(
        description="Number of hits known so far: up to the end of this page, plus one if there are more."
    )
    more: bool = Field(description="Whether there is another page.")
    hidden: int = Field(description="Number of weak hits that `all` would add to the search; 20 means 20 or more.")
    note: str = Field(description="What a person should know about the answer; usually empty.")
    unfamiliar: list[str] = Field(description="Words that the image encoders can only guess.")
    understood: UnderstandingOut = Field(description="What the image encoders recognise in the query.")
    complete: bool = Field(True, description="Whether all of the library was searched.")
    missing: list[str] = Field([], description="Shards of the library that did not answer.")
    hits: list[HitOut]


@router.get("/search", summary="Search", response_model=SearchOut)
async def search_get(service: ServiceParam, asked: Annotated[SearchParametersIn, InQuery()]) -> Response:
    """The moments that match a query, best match first."""
    return await _answer(service, asked)


@router.post("/search", summary="Search, with a body", responses=BODY_ERRORS, response_model=SearchOut)
async def search_post(service: ServiceParam, asked: SearchBodyIn) -> Response:
    """Search as with GET, with the query in the body instead of the address."""
    return await _answer(service, asked)


async def _answer(service: Service, asked: SearchParametersIn | SearchBodyIn) -> Response:
    if service.search_processes is not None and service.search_processes.ready:
        streams = ",".join(parse_streams(asked.streams))
        body = await service.search_processes.search(asked.model_dump() | {"streams": streams})
    else:
        body = await service.searchers.run(
            lambda library: search_json(library, asked, service.settings.rerankers), asked.q
        )
    return Response(body, media_type="application/json")


def search_json(library: Library, asked: SearchParametersIn | SearchBodyIn, rerankers: Mapping[str, Path]) -> bytes:
    """The answer to a search, as it is sent."""
    return search_out(search_library(library, asked, rerankers), asked).model_dump_json().encode()


def search_out(results: Results, asked: SearchIn | ExampleIn) -> SearchOut:
    """One page of results as the API's answer."""
    until = asked.offset + asked.k
    shown = {
        "query": clean_text(str(results.query)),
        "took_seconds": results.took,
        "took": 1000 * results.took,
        "total": len(results),
        "more": len(results) > until,
        "unfamiliar": results.understood.unfamiliar,
        "understood": asdict(results.understood),
        "hits": hits_out(results[asked.offset : until], results.query),
    }
    return SearchOut(**same_fields(SearchOut, results) | shown)


class LikeIn(ExampleIn):
    """A moment, and how to search for similar ones."""

    moment: Annotated[
        str, Field(pattern=MOMENT_ID_PATTERN, description="A hit's `moment`.", examples=["7:4.500-9.000"])
    ]


class UploadedPictureIn(ExampleIn):
    """A picture, and how to search for similar moments."""

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
    """The moments that look most like a given moment, without that moment itself."""
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
        return search_out(results, asked)

    return await service.searchers.run(work)


@router.post("/search/picture", summary="Search by a picture", responses=BODY_ERRORS)
async def search_picture(service: ServiceParam, asked: UploadedPictureIn) -> SearchOut:
    """The moments that look most like a picture. The picture is not stored."""
    try:
        picture = base64.b64decode(asked.picture, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(422, "the picture is not valid base64; encode its bytes in base64") from None

    def work(library: Library) -> SearchOut:
        results = library.search_picture(
            picture,
            asked.offset + asked.k + 1,
            where=asked.where,
            localiser=asked.localiser or None,
            group=asked.group,
            all=asked.all,
        )
        return search_out(results, asked)

    return await service.searchers.run(work)


class CurveIn(StrictModel):
    """A query and how to answer it, as for a search."""

    q: QueryText
    localiser: LocaliserName = ""
    fusion: FusionName = DEFAULT_FUSION
    streams: StreamNames = ALL_STREAMS


class SpanOut(BaseModel):
    """A hit of the query in this video."""

    start: float
    end: float
    peak: float
    score: float
    level: Level
    rank: int = Field(description="The rank among the hits of this video.")


class CurveOut(BaseModel):
    """The curve of the query in each stream, and its hits in the video."""

    model_config = example({
        "edges": [0.0, 1.5, 3.0], "streams": {"vision": [0.12, 0.31], "speech": [0.0, 1.0]},
        "spans": [{"start": 1.5, "end": 3.0, "peak": 2.25, "score": 0.03, "level": "fair", "rank": 1}],
    })  # fmt: skip
    edges: list[float] = Field(description="Bounds of the clips in seconds: one more than each stream has values.")
    streams: dict[str, list[float]]
    spans: list[SpanOut]


@router.get("/videos/{id}/curve", summary="A query along a video", responses=error_responses(404))
async def curve(service: ServiceParam, id: VideoId, asked: Annotated[CurveIn, InQuery()]) -> CurveOut:
    """The score of each clip, and the query's hits in this video."""

    def work(library: Library) -> CurveOut:
        query, _ = read_question(Query.parse(asked.q))
        if asked.localiser:
            _ = LOCALISERS[asked.localiser]
        _ = FUSIONS[asked.fusion]
        return query_curves(library, find_video(library, id), query, asked)

    return await service.searchers.run(work)


def query_curves(library: Library, video: Video, query: Query, asked: CurveIn) -> CurveOut:
    """The curves of a query along a video in the chosen streams, and the query's hits in the video.

    Vision is the score of each clip's picture. Speech is how much of the query is said during each clip, from 0 to 1:
    the share of its words, or the similarity of meaning if that is higher. Text is the share of its words that is
    written on screen, and described the share that occurs in a model's description of the scene.
    """
    chosen = parse_streams(asked.streams)
    edges = clip_edges(video, library.store.clip_seconds)
    streams: dict[str, NDArray[np.float64]] = {}
    vision = _vision_curve(library, video, query) if "vision" in chosen else None
    if vision is not None:
        edges, streams["vision"] = vision
    cues = library.store.catalog.cues(video.id)
    if "speech" in chosen and cues and (query.speech_text or query.phrases):
        streams["speech"] = spread_over_clips(cues, _cue_scores(library, video, query, cues), edges)
    for stream, kind, text in (("text", OCR, query.written_text), ("described", CAPTIONS, query.described_text)):
        found_cues = library.store.catalog.cues(video.id, kind) if stream in chosen and text else []
        if found_cues:
            shares = _word_shares([cue.text for cue in found_cues], content_words(text))
            streams[stream] = spread_over_clips(found_cues, shares, edges)
    here = replace(query, within=(_exact_glob(video.name),), outside=(), after=None, before=None)
    found = library.search(
        here, MAX_VIDEO_HITS, localiser=asked.localiser or None, streams=chosen, all=True, fusion=asked.fusion
    )
    hits = (hit for hit in found if hit.video_id == video.id)
    return CurveOut(
        edges=edges.tolist(),
        streams={name: values.tolist() for name, values in streams.items()},
        spans=[SpanOut(**same_fields(SpanOut, hit) | {"rank": rank}) for rank, hit in enumerate(hits, 1)],
    )


def clip_edges(video: Video, seconds: float) -> NDArray[np.float64]:
    """The bounds of a video's clips in seconds; the last is the end of the video."""
    edges = np.arange(max(1, video.clips) + 1, dtype=np.float64) * seconds
    if video.duration > edges[-2]:
        edges[-1] = video.duration
    return edges


def spread_over_clips(
    cues: Sequence[Cue], values: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The highest value of the cues or lines that overlap each clip; 0 where there are none.

    >>> spread_over_clips([Cue(1.0, 2.0, "a")], np.array([0.5]), np.array([0.0, 1.5, 3.0, 4.5])).tolist()
    [0.5, 0.5, 0.0]
    """
    out = np.zeros(len(edges) - 1)
    for cue, value in zip(cues, values.tolist(), strict=True):
        first = int(np.searchsorted(edges, cue.start, side="right")) - 1
        last = int(np.searchsorted(edges, cue.end, side="left"))
        first = min(max(first, 0), len(out) - 1)
        part = slice(first, max(first + 1, last))
        out[part] = np.maximum(out[part], value)
    return out


def _vision_curve(
    library: Library, video: Video, query: Query
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    usual = library.engine.sampled_vision()
    if not query.picture_parts or not usual.clips:
        return None
    vision_query = build_vision_query(usual, query.picture_parts, query.avoid, library.store.encoders.vision.encode)
    snapshot = shard_of(library.store, video.id).snapshot()
    index = StreamIndex(snapshot.vision, snapshot.gone, library.store.clip_seconds)
    scored = build_curve(index, vision_query, video)
    return None if scored is None else (scored.edges, scored.scores.astype(np.float64))


def _cue_scores(library: Library, video: Video, query: Query, cues: Sequence[Cue]) -> NDArray[np.float64]:
    share = _word_shares([cue.text for cue in cues], sought_words(query))
    snapshot = shard_of(library.store, video.id).snapshot()
    rows = StreamIndex(snapshot.speech, snapshot.gone, library.store.clip_seconds).rows(video.id)
    encoder = library.store.encoders.speech if rows is not None and query.speech_text else None
    if rows is None or encoder is None or len(rows) not in (len(cues), len(vector_texts(cues))):
        return share
    similarity = np.nan_to_num(
        np.clip(rows[: len(cues)] @ encoder.encode([query.speech_text])[0], 0.0, 1.0).astype(np.float64)
    )
    return np.asarray(np.maximum(share, similarity))


def _word_shares(texts: Sequence[str], terms: Sequence[str]) -> NDArray[np.float64]:
    """The share of the terms that each text has."""
    found = WordMatcher(texts).matches(terms) if terms and texts else np.zeros((len(texts), 1), bool)
    return np.asarray(found.mean(axis=1))


def _exact_glob(name: str) -> str:
    """A glob that matches this name, whatever characters are in it.

    >>> _exact_glob("a[1].mp4")
    'a[[]1].mp4*'
    """
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in name)
    return escaped + "*"  # the star makes it a glob; hits with other names that it matches are dropped by their ids
