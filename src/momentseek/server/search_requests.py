"""What clients ask when they search, and the page of hits they get: shared by searching and exporting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, field_validator

from momentseek.api import Library
from momentseek.search import Results
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.options import STREAMS, Stream
from momentseek.search.query import MAX_CHARACTERS, Query
from momentseek.server.errors import ApiError
from momentseek.server.schemas import StrictModel

MAX_HITS = 500
"""Largest number of hits on one page, and before it."""
QueryText = Annotated[
    str, Field(max_length=MAX_CHARACTERS, description="The query (docs/searching.md).", examples=["a dog runs"])
]
FusionName = Annotated[
    str, Field(max_length=40, description="How the streams are fused into one ranking; GET /status lists the names.")
]
EncoderName = Annotated[
    str,
    Field(
        max_length=120,
        description="The encoder whose library is searched; GET /status lists them. Empty: the served library's.",
    ),
]
LocaliserName = Annotated[
    str, Field(max_length=40, description="What finds start and end; GET /status lists the names. Empty: the default.")
]
RerankerName = Annotated[
    str,
    Field(
        max_length=255,
        description="The model that re-ranks the best videos; GET /status lists them. Empty: no re-ranking.",
    ),
]


class SearchIn(StrictModel):
    """A query and how to answer it."""

    q: QueryText
    k: Annotated[int, Field(ge=1, le=MAX_HITS, description="Hits on this page.")] = 20
    offset: Annotated[int, Field(ge=0, le=MAX_HITS, description="Hits before this page.")] = 0
    group: Annotated[Literal["clip", "video"], Field(description="`video` gives one hit per video.")] = "clip"
    localiser: LocaliserName = ""
    fusion: FusionName = DEFAULT_FUSION
    rerank: RerankerName = ""
    rerank_videos: Annotated[int, Field(ge=1, le=100, description="Number of videos that are re-ranked.")] = 20
    all: Annotated[bool, Field(description="Give weak hits too.")] = False
    explain: Annotated[bool, Field(description="Give the curve of each hit's video too.")] = False

    def chosen_streams(self) -> tuple[Stream, ...]:
        """The streams to search: all of them, unless a subclass lets clients choose."""
        return STREAMS


class ExampleIn(StrictModel):
    """How to answer a search by an example."""

    where: Annotated[str, Field(max_length=MAX_CHARACTERS, description="Only filters: `in:`, `before:`, `after:`.")] = (
        ""
    )
    k: Annotated[int, Field(ge=1, le=MAX_HITS, description="Hits on this page.")] = 20
    offset: Annotated[int, Field(ge=0, le=MAX_HITS, description="Hits before this page.")] = 0
    group: Annotated[Literal["clip", "video"], Field(description="`video` gives one hit per video.")] = "clip"
    localiser: LocaliserName = ""
    all: Annotated[bool, Field(description="Give weak hits too.")] = False


class SearchParametersIn(SearchIn):
    """A search as the parameters of a GET request."""

    streams: Annotated[
        str, Field(max_length=60, description="Some of vision, speech, text, described, name, with commas.")
    ] = ",".join(STREAMS)

    @field_validator("streams")
    @classmethod
    def _check_streams(cls, value: str) -> str:
        names = [name.strip() for name in value.split(",")]
        if not set(names) <= set(STREAMS):
            raise ValueError(f"some of {', '.join(STREAMS)}, separated by commas")
        return value

    def chosen_streams(self) -> tuple[Stream, ...]:
        """The streams to search, each once and in their usual order."""
        return parse_streams(self.streams)


class SearchBodyIn(SearchIn):
    """A search as the body of a POST request."""

    model_config = ConfigDict(strict=True)

    streams: Annotated[
        list[Stream], Field(min_length=1, max_length=len(STREAMS), default_factory=lambda: list(STREAMS))
    ]

    def chosen_streams(self) -> tuple[Stream, ...]:
        """The streams to search, each once and in their usual order."""
        return tuple(stream for stream in STREAMS if stream in self.streams)


def parse_streams(names: str) -> tuple[Stream, ...]:
    """The streams among names separated by commas, each once and in their usual order.

    >>> parse_streams("speech, vision,speech")
    ('vision', 'speech')
    """
    given = {name.strip() for name in names.split(",")}
    return tuple(stream for stream in STREAMS if stream in given)


class ResultPage:
    """The hits of one page, how many are known so far, and whether there are more or weaker ones."""

    def __init__(self, results: Results, asked: SearchIn | ExampleIn) -> None:
        until = asked.offset + asked.k
        self.results = results
        self.hits = results[asked.offset : until]
        self.total = len(results)
        self.more = len(results) > until
        self.hidden = results.hidden


def search_page(library: Library, asked: SearchIn, rerankers: Mapping[str, Path]) -> ResultPage:
    """Search for one page of hits; 422 if the search names a re-ranking model that the server does not have."""
    query = Query.parse(asked.q)
    if asked.rerank and asked.rerank not in rerankers:
        known = (
            f"there are {', '.join(rerankers)}" if rerankers else "there are none; momentseek serve --rerank adds some"
        )
        raise ApiError(422, f"there is no model {asked.rerank!r} to re-rank with; {known}")
    results = library.search(
        query,
        asked.offset + asked.k + 1,
        localiser=asked.localiser or None,
        group=asked.group,
        streams=asked.chosen_streams(),
        explain=asked.explain,
        all=asked.all,
        fusion=asked.fusion,
        rerank=rerankers[asked.rerank] if asked.rerank else None,
        rerank_videos=asked.rerank_videos,
    )
    return ResultPage(results, asked)
