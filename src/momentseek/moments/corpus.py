"""Corpus: the videos of a collection, how long each is, and the number some files call it by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from momentseek.errors import MomentseekError


@dataclass(frozen=True, eq=False)
class Corpus:
    """Video name → seconds, and (where the file has it) number → name.

    >>> corpus = Corpus({"a": 61.5, "b": 90.0}, {7: "a", 9: "b"})
    >>> corpus.name_of(9), corpus.durations["b"]
    ('b', 90.0)
    """

    durations: Mapping[str, float]
    names: Mapping[int, str]
    source: str = "(memory)"

    def name_of(self, number: int) -> str:
        """The video that predictions call ``number``."""
        try:
            return self.names[number]
        except KeyError:
            raise MomentseekError(f"{self.source}: no video has the index {number}") from None

    @cached_property
    def videos(self) -> frozenset[str]:
        """Names of all videos of the collection."""
        return frozenset(self.durations)

    def require(self, videos: Iterable[str], where: str) -> None:
        """Refuse videos that are not in the collection."""
        unknown = [v for v in videos if v not in self.videos]
        if unknown:
            which = f"video {unknown[0]} is" if len(unknown) == 1 else f"{len(unknown):,} videos ({unknown[0]}, …) are"
            raise MomentseekError(f"{where}: {which} not in {self.source}; give the list this file was made for")
