"""The settings of simulated films, and the corpora they can resemble."""

from __future__ import annotations

from dataclasses import dataclass

from momentseek.errors import MomentseekError
from momentseek.simulation.settings import MIN_QUERIES, SimulationSettings


@dataclass(frozen=True, slots=True)
class CorpusForm:
    """The corpus that simulated films resemble: lengths of films (seconds) and moments (shares of them), and files."""

    seconds: tuple[float, float]
    clip_seconds: float
    moments: int
    """Moments per film for which there is a query, at most."""
    lengths: tuple[float, float]
    overlapping: bool
    """Whether two of a film's moments may share time."""
    corners: tuple[float, float]
    """Parameters of the beta distribution of favourite places; below 1 they crowd at the films' start and end."""
    format: str
    ending: str

    @property
    def middle(self) -> tuple[float, float]:
        """The range of favourite lengths: a little narrower than that of all lengths."""
        shortest, longest = self.lengths
        return shortest + 0.05, longest - 0.05


FORMS = {
    "charades": CorpusForm((18.0, 45.0), 1.0, 2, (0.1, 0.5), False, (0.5, 0.6), "charades-sta", "txt"),
    "activitynet": CorpusForm((40.0, 200.0), 2.0, 4, (0.05, 0.9), True, (0.3, 0.3), "activitynet", "json"),
}
"""Charades-STA has films of 29 s with moments of 8 s, ActivityNet Captions of 118 s with moments of 40 s that overlap
and crowd in the corners of the map of starts and ends (MVMR, Table 1; debiased grounding, Fig. 2)."""


SPLIT_SHARES = {"train": 0.6, "val": 0.06, "test_iid": 0.17, "test_ood": 0.17}
"""Share of the videos in each split; only the places of test_ood's moments break the habits of the others."""


@dataclass(frozen=True, slots=True)
class GroundingSettings:
    """The settings of simulated films; the same settings and version give the same files, byte for byte."""

    videos: int = 2000
    seed: int = 0
    hard: float = 0.5
    bias: float = 0.9
    """Share of the moments whose place follows a habit, from 0 to 1."""
    verb_bias: float = 1.0
    """Share of the actions with a habit of their own; the others have one in common."""
    pool: int = 50
    """Videos searched per query of ``mvmr``."""
    like: str = "charades"
    """The corpus that the films resemble: charades or activitynet."""
    video_dim: int = 128
    text_dim: int = 96

    def __post_init__(self) -> None:
        if not 0 <= self.bias <= 1:
            raise MomentseekError(f"a bias of {self.bias:g} is out of range; choose one from 0 to 1 (`bias`)")
        if not 0 <= self.verb_bias <= 1:
            raise MomentseekError(
                f"a verb bias of {self.verb_bias:g} is out of range; choose one from 0 to 1 (`verb_bias`)"
            )
        if self.pool < 2:
            raise MomentseekError(f"a pool of {self.pool} is too small; give at least 2 videos (`pool`)")
        if self.like not in FORMS:
            raise MomentseekError(f"there are no films like {self.like!r}; choose {' or '.join(FORMS)} (`like`)")
        _ = self.base  # checks the rest

    @property
    def form(self) -> CorpusForm:
        """The form of the corpus that the films resemble."""
        return FORMS[self.like]

    @property
    def base(self) -> SimulationSettings:
        """The settings that films share with the other simulation: seed, difficulty, dimensions."""
        return SimulationSettings(
            videos=self.videos, queries=max(MIN_QUERIES, self.videos), seed=self.seed, hard=self.hard,
            video_dim=self.video_dim, text_dim=self.text_dim,
        )  # fmt: skip
