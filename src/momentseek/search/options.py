"""SearchOptions: how to search, checked before anything is asked."""

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
"""Videos that a model may look at again for one query."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search: how many hits, by which streams, grouped how."""

    k: int = 20
    """Hits to return at most."""
    localiser: str = DEFAULT_LOCALISER
    """Name of what finds start and end."""
    group: Group = "clip"
    """``video`` for one hit per video."""
    streams: tuple[Stream, ...] = STREAMS
    """The streams that are asked."""
    explain: bool = False
    """Whether hits bring the curve of their video."""
    all: bool = False
    """Whether weak hits are shown too."""
    fusion: str = DEFAULT_FUSION
    """Name of what makes one ranking of the streams."""
    rerank: str | None = None
    """Folder of an exported model that looks at the best videos again; None for none."""
    rerank_videos: int = 20
    """Videos that the model looks at."""

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
