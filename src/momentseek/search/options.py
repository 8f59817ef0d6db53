"""How to search: how many, which streams, grouped how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from momentseek.errors import MomentseekError
from momentseek.search import fusion as fusions
from momentseek.search.localise import DEFAULT_LOCALISER, LOCALISERS

Group = Literal["clip", "video"]
Stream = Literal["vision", "speech", "name"]
MOST_RERANKED = 1000
"""Videos that a model may look at again for one query."""
STREAMS: tuple[Stream, ...] = get_args(Stream)


@dataclass(frozen=True)
class Options:
    """How to search."""

    k: int = 20
    localiser: str = DEFAULT_LOCALISER
    group: Group = "clip"
    streams: tuple[Stream, ...] = STREAMS
    explain: bool = False
    all: bool = False
    fusion: str = fusions.DEFAULT
    rerank: str | None = None
    """The folder of an exported model that looks at the best videos again."""
    rerank_videos: int = 20
    """So many of them."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise MomentseekError(f"k is {self.k}; ask for at least 1 result")
        if self.group not in get_args(Group):
            raise MomentseekError(f"there is no grouping {self.group!r}; there are clip and video")
        unknown = [name for name in self.streams if name not in STREAMS]
        if unknown or not self.streams:
            what = f"there is no stream {unknown[0]!r}" if unknown else "no stream is chosen"
            raise MomentseekError(f"{what}; there are {', '.join(STREAMS)}")
        if not 1 <= self.rerank_videos <= MOST_RERANKED:
            raise MomentseekError(f"{self.rerank_videos} videos cannot be re-ranked; choose 1 to {MOST_RERANKED}")
        _ = LOCALISERS[self.localiser]
        fusions.fusion(self.fusion)
