"""SearchOptions: the options of a search, checked before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from momentseek.core.errors import MomentseekError
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, LOCALISERS

Group = Literal["clip", "video"]
Stream = Literal["vision", "speech", "text", "described", "name"]
STREAMS: tuple[Stream, ...] = get_args(Stream)
MAX_RERANKED_VIDEOS = 1000
"""Largest number of videos that a model may re-rank for one query."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of a search: number of hits, streams, grouping and methods."""

    k: int = 20
    """Largest number of hits to return."""
    localiser: str = DEFAULT_LOCALISER
    """Name of the localiser, which finds start and end."""
    group: Group = "clip"
    """``video`` for one hit per video."""
    streams: tuple[Stream, ...] = STREAMS
    """The streams to search."""
    explain: bool = False
    """Whether to add the curve of its video to each hit."""
    all: bool = False
    """Whether to include weak hits."""
    fusion: str = DEFAULT_FUSION
    """Name of the fusion, which combines the streams into one ranking."""
    rerank: str | None = None
    """Folder of an exported model that re-ranks the best videos; None for no re-ranking."""
    rerank_videos: int = 20
    """Number of videos to re-rank."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise MomentseekError(f"k is {self.k}; ask for at least 1 result")
        if self.group not in get_args(Group):
            raise MomentseekError(f"there is no grouping {self.group!r}; there are clip and video")
        unknown = [name for name in self.streams if name not in STREAMS]
        if unknown or not self.streams:
            what = f"there is no stream {unknown[0]!r}" if unknown else "no stream is chosen"
            raise MomentseekError(f"{what}; there are {', '.join(STREAMS)}")
        if not 1 <= self.rerank_videos <= MAX_RERANKED_VIDEOS:
            raise MomentseekError(f"{self.rerank_videos} videos cannot be re-ranked; choose 1 to {MAX_RERANKED_VIDEOS}")
        _ = LOCALISERS[self.localiser], FUSIONS[self.fusion]
