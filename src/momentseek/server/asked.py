"""What a client asks when it searches, and the search itself: shared by the routes that search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, field_validator

from momentseek.api import Library
from momentseek.search import Results
from momentseek.search.engine import Stream
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.query import MAX_CHARACTERS, Query
from momentseek.server.answers import Strict
from momentseek.server.errors import ApiError

MOST = 500
"""Moments of one page, and before it."""
STREAMS: tuple[Stream, ...] = get_args(Stream)
Text = Annotated[
    str, Field(max_length=MAX_CHARACTERS, description="The query (docs/searching.md).", examples=["a dog runs"])
]
FusionName = Annotated[str, Field(max_length=40, description="How streams become one ranking; GET /status lists them.")]
EncoderName = Annotated[
    str, Field(max_length=120, description="Whose library is searched; GET /status lists them. Empty: the served one.")
]
LocaliserName = Annotated[
    str, Field(max_length=40, description="What finds the bounds; GET /status lists them. Empty: the usual one.")
]
RerankerName = Annotated[
    str,
    Field(
        max_length=255,
        description="The model that looks again at the best videos; GET /status lists them. Empty: none.",
    ),
]


class Asked(Strict):
    """A query and how to answer it."""

    q: Text
    k: Annotated[int, Field(ge=1, le=MOST, description="Moments on this page.")] = 20
    offset: Annotated[int, Field(ge=0, le=MOST, description="Moments before this page.")] = 0
    group: Annotated[Literal["clip", "video"], Field(description="`video` gives one moment per video.")] = "clip"
    localiser: LocaliserName = ""
    fusion: FusionName = DEFAULT_FUSION
    rerank: RerankerName = ""
    rerank_videos: Annotated[int, Field(ge=1, le=100, description="Videos that it looks at.")] = 20
    all: Annotated[bool, Field(description="Also weak hits.")] = False
    explain: Annotated[bool, Field(description="With the curve of each hit's video.")] = False

    def chosen(self) -> tuple[Stream, ...]:
        """The streams to search; all, unless a subclass says."""
        return STREAMS


class AskedInAddress(Asked):
    """As the parameters of GET."""

    streams: Annotated[str, Field(max_length=60, description="Some of vision, speech and name, with commas.")] = (
        ",".join(STREAMS)
    )

    @field_validator("streams")
    @classmethod
    def _known(cls, value: str) -> str:
        names = [name.strip() for name in value.split(",")]
        if not set(names) <= set(STREAMS):
            raise ValueError(f"some of {', '.join(STREAMS)}, with commas between")
        return value

    def chosen(self) -> tuple[Stream, ...]:
        """Each once, in our order."""
        names = {name.strip() for name in self.streams.split(",")}
        return tuple(stream for stream in STREAMS if stream in names)


class AskedInBody(Asked):
    """As the body of POST."""

    model_config = ConfigDict(strict=True)

    streams: Annotated[
        list[Stream], Field(min_length=1, max_length=len(STREAMS), default_factory=lambda: list(STREAMS))
    ]

    def chosen(self) -> tuple[Stream, ...]:
        """Each once, in our order."""
        return tuple(stream for stream in STREAMS if stream in self.streams)


class Page:
    """The moments of one page, and what lies beyond it."""

    def __init__(self, results: Results, asked: Asked) -> None:
        until = asked.offset + asked.k
        self.results = results
        self.hits = results[asked.offset : until]
        self.total = len(results)
        self.more = len(results) > until
        # one more than asked was searched, to know whether there is more; it must not count among the hidden
        shown = min(len(results), until)
        self.hidden = max(0, min(until, len(results) + results.hidden) - shown)


def search(library: Library, asked: Asked, rerankers: Mapping[str, Path]) -> Page:
    """One page of moments; 422 if a model is asked for that the server was not given."""
    query = Query.parse(asked.q)
    if asked.rerank and asked.rerank not in rerankers:
        there = (
            f"there are {', '.join(rerankers)}" if rerankers else "there are none; momentseek serve --rerank adds some"
        )
        raise ApiError(422, f"there is no model {asked.rerank!r} to re-rank with; {there}")
    results = library.search(
        query,
        asked.offset + asked.k + 1,
        localiser=asked.localiser or None,
        group=asked.group,
        streams=asked.chosen(),
        explain=asked.explain,
        all=asked.all,
        fusion=asked.fusion,
        rerank=rerankers[asked.rerank] if asked.rerank else None,
        rerank_videos=asked.rerank_videos,
    )
    return Page(results, asked)
