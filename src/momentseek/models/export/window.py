"""How long a video a model may be given at once: as long as the longest it was trained on."""

from __future__ import annotations

from typing import Protocol

from momentseek.moments import Judgements


class Asked(Protocol):
    """A split; ``features.data.Split`` is one."""

    @property
    def truth(self) -> Judgements: ...


class Videos(Protocol):
    """Videos with the lengths of their clips; ``features.data.Data`` is one."""

    @property
    def clip_seconds(self) -> float: ...
    def rows(self, video: str, /) -> int:
        """Clips of a video."""
        ...

    def split(self, name: str, /) -> Asked:
        """Queries and the videos that answer them."""
        ...


def longest_video(data: Videos, split: str) -> float:
    """Seconds of the longest video that the training split has a moment in, whole clips of it."""
    return data.clip_seconds * max((data.rows(name) for name in data.split(split).truth.videos), default=1)
