"""How long a video a model may be given at once: as long as nearly all that it was trained on.

Not as the longest: a single one of ten minutes among thousands of thirty seconds would have every film cut into pieces
of ten minutes, of which 16 clips tell nothing.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from momentseek.moments import Judgements

SHARE = 0.95


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


def longest_video(data: Videos, split: str, share: float = SHARE) -> float:
    """Seconds that ``share`` of the videos with a training moment do not exceed, in whole clips."""
    clips = [data.rows(name) for name in data.split(split).truth.videos] or [1]
    return data.clip_seconds * float(np.quantile(clips, share, method="higher"))
