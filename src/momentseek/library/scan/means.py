"""The scene means of a plan in int8, group after group as the coarse list has them, and the video of each.

The means that the coarse list keeps come from a few groups, so they lie near each other, and a query looks at these
alone: where a video's means lay together instead, each video would be a place of its own to fetch.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.queries import QuantisedQueries
from momentseek.library.scan.threads import share_rows
from momentseek.library.segments import check_map
from momentseek.native.library import address, call, kernels, writable


@dataclass(frozen=True, eq=False)
class SceneMeans:
    """Scene means of numbered videos, as int8 codes with one scale per row."""

    name: str
    ids: NDArray[np.int64]
    """Of the videos, by their numbers."""
    owner: NDArray[np.int32]
    """The number of each mean's video."""
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    mapped: mmap.mmap | None = None
    """The map of the file of codes, if it was not read into memory."""

    def __post_init__(self) -> None:
        if not len(self.owner) == len(self.scales) == len(self.codes):
            raise ValueError("the scene means and their videos do not belong together")
        if self.owner.min(initial=0) < 0 or self.owner.max(initial=-1) >= len(self.ids):
            raise ValueError("a scene mean has no video")

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.codes.shape[1])

    @property
    def rows(self) -> int:
        """Number of means."""
        return len(self.scales)

    def check_size(self) -> None:
        """Refuse a file that was cut short since it was mapped."""
        check_map(self.mapped, f"the plan's means {self.name}")

    def bounds(self, numbers: NDArray[np.int32], query: QuantisedQueries) -> NDArray[np.float32]:
        """Upper bounds of the products of one query with some means, by their numbers; -inf where they are none."""
        out = np.empty(len(numbers), np.float32)
        ready = (
            address(self.codes, np.int8, self.rows, self.dim), address(self.scales, np.float32, self.rows), self.dim,
            self.rows, address(numbers, np.int32, len(numbers)), address(query.codes, np.int16, 1, self.dim),
            address(query.steps, np.float32, 1), address(query.slacks, np.float32, 1),
            writable(out, np.float32, len(numbers)),
        )  # fmt: skip

        def work(low: int, high: int) -> None:
            call(kernels().bounds_of_rows, *ready, low, high)

        share_rows([(work, np.arange(len(numbers) + 1))], 1)
        return out


def best_of_videos(
    owner: NDArray[np.int32], bounds: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The videos that some means belong to, in order of their numbers, and the largest bound of each.

    >>> best_of_videos(np.array([3, 1, 3], np.int32), np.array([2, 5, 4], np.float32))
    (array([1, 3]), array([5., 4.], dtype=float32))
    """
    order = np.argsort(owner, kind="stable")
    videos = owner[order].astype(np.int64)
    starts = np.flatnonzero(np.diff(videos, prepend=-1))
    if not len(starts):
        return videos, np.zeros(0, np.float32)
    return videos[starts], np.maximum.reduceat(bounds[order], starts)
