"""What a simulation is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.simulate.difficulty import Difficulty

CLIP_SECONDS = 1.5
FILES_VERSION = 1
"""Goes up whenever the same settings give other files."""
MIN_VIDEOS = 10
MIN_QUERIES = 20
MIN_DIM = 8


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """Same settings and version, same files, byte for byte."""

    videos: int = 2000
    queries: int = 5000
    seed: int = 0
    hard: float = 0.5
    video_dim: int = 256
    text_dim: int = 192

    def __post_init__(self) -> None:
        for what, value, least in (
            ("the number of videos", self.videos, MIN_VIDEOS),
            ("the number of queries", self.queries, MIN_QUERIES),
            ("the video dimension", self.video_dim, MIN_DIM),
            ("the text dimension", self.text_dim, MIN_DIM),
            ("the seed", self.seed, 0),
        ):
            if value < least:
                raise MomentseekError(f"{what} is {value}; give at least {least}")
        Difficulty.at(self.hard)

    @property
    def difficulty(self) -> Difficulty:
        """The strengths that ``hard`` stands for."""
        return Difficulty.at(self.hard)

    def random(self, *purpose: int | str) -> np.random.Generator:
        """An own stream of random numbers for every purpose, so that no part disturbs another."""
        words = [p if isinstance(p, int) else int.from_bytes(p.encode()) for p in purpose]
        return np.random.default_rng([self.seed, *words])
