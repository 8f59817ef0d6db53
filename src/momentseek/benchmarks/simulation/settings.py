"""The settings of a simulation: sizes, and all strengths of features and noise from one number for the difficulty."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from momentseek.benchmarks.simulation.variants import Variant, find_variant
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray


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
    """Length of the vector that all clips of a video share, whatever happens; each scene adds one half as long."""
    scenery: float
    """Strength of place, people and props throughout a scene."""
    confusable: float
    """Share of groups whose members look alike."""
    likeness: float
    """Cosine between the vectors of two members of a group that look alike."""
    mixing: float
    """Share of a query word's vector that comes from the words around it."""
    looseness: float
    """Distance of an action's edges from the annotated ones, as a fraction of the moment."""
    chatter: float
    """Share of clips without a spoken moment in which something else is talked about."""

    @classmethod
    def at(cls, hard: float) -> Difficulty:
        """Return the strengths of a difficulty, from 0 (a linear matcher finds nearly all) to 1 (almost nothing).

        >>> Difficulty.at(0).video_noise < Difficulty.at(0.5).video_noise < Difficulty.at(1).video_noise
        True
        """
        if not 0 <= hard <= 1:
            raise MomentseekError(
                f"a difficulty of {hard:g} is out of range; choose one from 0 to 1 ({parameter('hard')})"
            )

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
FILES_VERSION = 3
"""Version of the files; it increases whenever the same settings give other files."""
MIN_VIDEOS = 10
MIN_QUERIES = 20
MIN_DIM = 8
KNOWN_SHARE = 0.8
"""Share of the videos in training lists if val and test search other videos."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """The settings of a simulated corpus; the same settings and version give the same files, byte for byte."""

    videos: int = 2000
    queries: int = 5000
    seed: int = 0
    hard: float = 0.5
    video_dim: int = 256
    text_dim: int = 192
    variant: str = "default"
    """A name in ``VARIANTS``, which define differences from the default corpus."""
    streams: bool = False
    """Whether there are two kinds of video features: one half of the columns for things, the other for motion."""

    def __post_init__(self) -> None:
        for what, value, minimum in (
            (f"the number of videos ({parameter('videos')})", self.videos, MIN_VIDEOS),
            (f"the number of queries ({parameter('queries')})", self.queries, MIN_QUERIES),
            (f"the video dimension ({parameter('video_dim')})", self.video_dim, MIN_DIM),
            (f"the text dimension ({parameter('text_dim')})", self.text_dim, MIN_DIM),
            (f"the seed ({parameter('seed')})", self.seed, 0),
        ):
            if value < minimum:
                raise MomentseekError(f"{what} is {value}; give at least {minimum}")
        Difficulty.at(self.hard)
        find_variant(self.variant)

    @property
    def changes(self) -> Variant:
        """What the variant changes."""
        return find_variant(self.variant)

    @property
    def difficulty(self) -> Difficulty:
        """The strengths for ``hard``, or for the variant's difficulty."""
        return Difficulty.at(self.hard if self.changes.hard is None else self.changes.hard)

    @property
    def total_videos(self) -> int:
        """Number of videos, including those without queries."""
        return self.videos * (1 + self.changes.distractors)

    def listed_videos(self, split: str) -> range:
        """Return the videos whose moments may be in the lists of ``train``, or be judged for ``val`` and ``test``.

        >>> SimulationSettings(videos=100, variant="new-library").listed_videos("test")
        range(80, 100)
        """
        if not self.changes.new_library:
            return range(self.videos)
        known = round(KNOWN_SHARE * self.videos)
        return range(known) if split == "train" else range(known, self.videos)

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name; the default variant is omitted, so that older corpora keep their files."""
        return {name: value for name, value in asdict(self).items() if name != "variant" or value != "default"}

    def random(self, *purpose: int | str) -> np.random.Generator:
        """Return a separate random generator for every purpose, so that parts of the simulation are independent."""
        words = [p if isinstance(p, int) else int.from_bytes(p.encode()) for p in purpose]
        return np.random.default_rng([self.seed, *words])


KINDS = ("v", "t", "vt")
"""What a caption is based on: video, text (subtitles), or both."""
KIND_SHARES = (0.743, 0.0885, 0.1685)
MAX_MOMENTS_PER_VIDEO = 5
SHORTEST_MOMENT_SECONDS = 0.26

QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
VIDEO_SECONDS = (2.02, 43.02, 56.02, 58.03, 60.34, 76.55, 90.48, 93.03, 97.03, 130.03, 272.02)
MOMENT_SECONDS = {
    "v": (0.29, 0.91, 1.48, 1.84, 2.81, 4.52, 7.94, 16.51, 29.29, 67.21, 120.57),
    "t": (0.88, 1.87, 2.75, 3.51, 5.19, 9.05, 18.98, 30.39, 38.68, 47.89, 123.02),
    "vt": (0.56, 1.53, 2.33, 2.85, 4.09, 6.71, 12.26, 23.5, 35.18, 66.77, 91.7),
}
START_QUANTILES = (0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
START_SHARES = (0.0, 0.0, 0.005, 0.046, 0.126, 0.23, 0.354, 0.497, 0.638, 0.796, 0.959, 1.0, 1.0)
"""Starts as fractions of the last possible start."""


def draw_video_seconds(count: int, rng: np.random.Generator) -> FloatArray:
    """Draw durations of videos, in seconds.

    >>> seconds = draw_video_seconds(4000, np.random.default_rng(0))
    >>> float(np.median(seconds).round()), bool(seconds.min() >= 2.02 and seconds.max() <= 272.02)
    (76.0, True)
    """
    return _quantiles(rng.random(count), VIDEO_SECONDS).round(2)


def moments_per_video(seconds: FloatArray) -> IntArray:
    """Return the number of moments in each video: five, or fewer if it is only seconds long."""
    return np.clip(seconds / 2, 1, MAX_MOMENTS_PER_VIDEO).astype(np.int64)


def draw_kinds(count: int, rng: np.random.Generator) -> IntArray:
    """Draw a kind per moment (its index in ``KINDS``), in TVR's proportions."""
    return np.searchsorted(np.cumsum(KIND_SHARES)[:-1], rng.random(count), side="right").astype(np.int64)


def draw_moment_times(kind: IntArray, seconds: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw start and end (seconds, to the hundredth) of moments of some kinds in videos of some lengths."""
    drawn = rng.random(len(kind))
    length = np.choose(kind, [_quantiles(drawn, MOMENT_SECONDS[k]) for k in KINDS])
    length = np.minimum(length, seconds)
    share = np.interp(rng.random(len(kind)), START_QUANTILES, START_SHARES)
    start = np.floor(share * (seconds - length) * 100) / 100
    end = np.minimum(np.maximum(start + length, start + SHORTEST_MOMENT_SECONDS), seconds).round(2)
    return start, end


def _quantiles(levels: FloatArray, table: tuple[float, ...]) -> FloatArray:
    return np.exp(np.interp(levels, QUANTILES, np.log(table)))
