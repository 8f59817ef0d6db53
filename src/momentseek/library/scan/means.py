"""The scene means of a plan in int8, group after group as the coarse list has them, and the video of each.

The means that the coarse list keeps come from a few groups, so they lie near each other, and a query looks at these
alone: where a video's means lay together instead, each video would be a place of its own to fetch.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.queries import QuantisedQueries
from momentseek.library.segments import check_map
from momentseek.native.library import address, call, kernels, writable

Numbers = NDArray[np.int32]


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

    @cached_property
    def given(self) -> tuple[int, ...]:
        """What a kernel is told of the means."""
        return (
            address(self.codes, np.int8, self.rows, self.dim), address(self.scales, np.float32, self.rows),
            address(self.owner, np.int32, self.rows), self.rows, self.dim,
        )  # fmt: skip

    def videos(self, numbers: NDArray[np.int32], query: QuantisedQueries) -> tuple[Numbers, NDArray[np.float32]]:
        """The videos of some means, by their numbers, and the largest upper bound of each one's products with a query.

        The largest comes first; of equal ones the first in the list. A mean that is no number never matches.
        """
        videos, bounds = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.float32)
        done = np.zeros(1, np.int64)
        call(
            kernels().videos_of_means,
            *self.given, address(numbers, np.int32, -1), len(numbers), address(query.codes, np.int16, 1, self.dim),
            address(query.steps, np.float32, 1), address(query.slacks, np.float32, 1),
            writable(videos, np.int32, -1), writable(bounds, np.float32, -1), writable(done, np.int64, 1),
        )  # fmt: skip
        return videos[: done.item()], bounds[: done.item()]
