"""How long a video a model may be given at once: as long as nearly all that it was trained on.

Not as the longest: a single one of ten minutes among thousands of thirty seconds would have every film cut into pieces
of ten minutes, of which 16 clips tell nothing.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.models.model import CorpusModel
from momentseek.models.xml import XML
from momentseek.moments import Judgements

COVERED_VIDEOS_SHARE = 0.95


class SplitWithTruth(Protocol):
    """A split; ``features.data.Split`` is one."""

    @property
    def truth(self) -> Judgements: ...


class VideoLengths(Protocol):
    """Videos with the lengths of their clips; ``features.data.Data`` is one."""

    @property
    def clip_seconds(self) -> float: ...
    def rows(self, video: str, /) -> int:
        """Clips of a video."""
        ...

    def split(self, name: str, /) -> SplitWithTruth:
        """Queries and the videos that answer them."""
        ...


def check_window(model: CorpusModel, name: str) -> None:
    """Refuse a window for a model that reads clips as they are, as many as it was made for."""
    if isinstance(model, XML) or model.config.fit == "truncate":
        raise MomentseekError(
            f"{name} reads videos by at most {model.config.max_clips} clips at once and stretches none, so `window` "
            "changes nothing; leave it out"
        )


def longest_video(data: VideoLengths, split: str, share: float = COVERED_VIDEOS_SHARE) -> float:
    """Seconds that ``share`` of the videos with a training moment do not exceed, in whole clips."""
    clips = [data.rows(name) for name in data.split(split).truth.videos] or [1]
    return data.clip_seconds * float(np.quantile(clips, share, method="higher"))
