"""What an export has of one kind of model: its graphs, what the manifest says of its head, how far they are from torch.

Each kind has a file of its own with a function that draws a model: ``networks`` for those that keep a vector per clip,
``moment_map`` for those that keep one per candidate moment, ``joint`` and ``traced`` for those that keep none and
re-rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.judgements import Judgements
from momentseek.models.model import CorpusModel
from momentseek.models.zoo.xml import XML

COMPARED_QUERIES, COMPARED_VIDEOS = 3, 2
"""Number of random queries and videos on which graphs are compared with torch."""


@dataclass(frozen=True, eq=False)
class ModelGraphs:
    """The ONNX graphs of a model, and what the manifest says of its head."""

    graphs: Mapping[str, bytes]
    """Files of the export by their names."""
    modalities: tuple[str, ...]
    """Features of a video that the graphs take."""
    head: Mapping[str, Any]
    """What search needs beside the graphs, for the manifest."""
    difference: float
    """The largest difference between the graphs and torch, as a share of the largest number."""


@dataclass(frozen=True, eq=False)
class ExportableKind:
    """A kind of model that can be exported."""

    takes: type[CorpusModel]
    names: tuple[str, ...]
    """Names by which models of this kind are trained."""
    draw: Callable[[Any, Mapping[str, Any]], ModelGraphs]
    """Draws the graphs of a model in evaluation mode, with the settings of the export (``end_time``, ``window``, …)."""


def random_words(longest: int, columns: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Queries of different lengths, as a graph takes them."""
    words = np.random.default_rng(seed).standard_normal((COMPARED_QUERIES, longest, columns), np.float32)
    return {"words": words, "mask": np.arange(longest) < np.array([[longest], [max(1, longest // 2)], [1]])}


def relative_difference(ours: NDArray[Any], torchs: NDArray[Any], mask: Any = np.True_) -> float:
    """The largest difference where the mask is true, as a share of the largest number or of 1.

    >>> relative_difference(np.array([1.0, 5.0]), np.array([1.5, 9.0]), np.array([True, False]))
    0.3333333333333333
    """
    difference = np.abs(np.where(mask, ours - torchs, 0)).max()
    return float(difference / max(1.0, np.abs(np.where(mask, torchs, 0)).max()))


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
            f"{name} reads videos by at most {model.config.max_clips} clips at once and stretches none, so "
            f"{parameter('window')} "
            "changes nothing; leave it out"
        )


def longest_video(data: VideoLengths, split: str, share: float = COVERED_VIDEOS_SHARE) -> float:
    """Seconds that ``share`` of the videos with a training moment do not exceed, in whole clips."""
    clips = [data.rows(name) for name in data.split(split).truth.videos] or [1]
    return data.clip_seconds * float(np.quantile(clips, share, method="higher"))
