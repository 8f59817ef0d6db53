"""The settings of a simulation, and how hard the corpus is: every strength in one place, from one number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How hard a simulated corpus is: strengths relative to an action's vector, whose length in a clip is 1."""

    video_noise: float
    """Length of a clip's noise vector (standard deviation per dimension, times the root of the dimension)."""
    subtitle_noise: float
    query_noise: float
    """Length of the noise vector of a query's word, whose own vector has length 1."""
    crosstalk: float
    """Share of a clip's features that comes from each neighbouring clip."""
    style: float
    """Length of what all clips of a video have in common beside what happens, and half as much per scene."""
    scenery: float
    """How strongly place, people and props show throughout a scene."""
    confusable: float
    """Share of groups whose members look alike."""
    likeness: float
    """Cosine between the vectors of two members of a group that look alike."""
    mixing: float
    """Share of a query word's vector that comes from the words around it."""
    looseness: float
    """How far an action's edges lie from the annotated ones, as a share of the moment."""
    chatter: float
    """Share of clips without a spoken moment in which something else is talked about."""

    @classmethod
    def at(cls, hard: float) -> Difficulty:
        """The strengths of a difficulty, from 0 (a linear matcher finds nearly everything) to 1 (almost nothing).

        >>> Difficulty.at(0).video_noise < Difficulty.at(0.5).video_noise < Difficulty.at(1).video_noise
        True
        """
        if not 0 <= hard <= 1:
            raise MomentseekError(f"a difficulty of {hard:g} is out of range; choose one from 0 to 1 (`hard`)")

        def between(easy: float, default: float, hardest: float) -> float:
            return easy + (default - easy) * 2 * hard if hard <= 0.5 else default + (hardest - default) * (2 * hard - 1)

        return cls(
            video_noise=between(0.1, 0.4, 24.0),
            subtitle_noise=between(0.05, 0.25, 14.0),
            query_noise=between(0.0, 0.1, 3.0),
            crosstalk=between(0.0, 0.05, 0.3),
            style=between(0.0, 0.2, 3.0),
            scenery=between(0.1, 0.2, 0.8),
            confusable=between(0.0, 0.1, 1.0),
            likeness=between(0.0, 0.2, 0.9),
            mixing=between(0.0, 0.1, 0.5),
            looseness=between(0.0, 0.04, 0.25),
            chatter=between(0.05, 0.15, 0.7),
        )


CLIP_SECONDS = 1.5
FILES_VERSION = 2
"""Version of the files; it goes up whenever the same settings give other files."""
MIN_VIDEOS = 10
MIN_QUERIES = 20
MIN_DIM = 8


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """The settings of a simulated corpus; the same settings and version give the same files, byte for byte."""

    videos: int = 2000
    queries: int = 5000
    seed: int = 0
    hard: float = 0.5
    video_dim: int = 256
    text_dim: int = 192

    def __post_init__(self) -> None:
        for what, value, least in (
            ("the number of videos (`videos`)", self.videos, MIN_VIDEOS),
            ("the number of queries (`queries`)", self.queries, MIN_QUERIES),
            ("the video dimension (`video_dim`)", self.video_dim, MIN_DIM),
            ("the text dimension (`text_dim`)", self.text_dim, MIN_DIM),
            ("the seed (`seed`)", self.seed, 0),
        ):
            if value < least:
                raise MomentseekError(f"{what} is {value}; give at least {least}")
        Difficulty.at(self.hard)

    @property
    def difficulty(self) -> Difficulty:
        """The strengths for which ``hard`` stands."""
        return Difficulty.at(self.hard)

    def random(self, *purpose: int | str) -> np.random.Generator:
        """A random generator of its own for every purpose, so that no part of the simulation disturbs another."""
        words = [p if isinstance(p, int) else int.from_bytes(p.encode()) for p in purpose]
        return np.random.default_rng([self.seed, *words])
