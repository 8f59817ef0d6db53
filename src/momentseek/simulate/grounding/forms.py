"""Whose videos the films are like: how long they and their moments are, and which files tell of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CorpusForm:
    """Numbers of a corpus that others are made to resemble; lengths of moments are shares of their film."""

    seconds: tuple[float, float]
    clip_seconds: float
    moments: int
    """Asked for in a film, at most."""
    lengths: tuple[float, float]
    overlapping: bool
    """Whether two of a film's moments may share time."""
    corners: tuple[float, float]
    """How favourite places crowd at the films' start and end (a beta distribution; below 1 they do)."""
    format: str
    ending: str

    @property
    def middle(self) -> tuple[float, float]:
        """Favourite lengths: a little inside of what occurs."""
        shortest, longest = self.lengths
        return shortest + 0.05, longest - 0.05


FORMS = {
    "charades": CorpusForm((18.0, 45.0), 1.0, 2, (0.1, 0.5), False, (0.5, 0.6), "charades-sta", "txt"),
    "activitynet": CorpusForm((40.0, 200.0), 2.0, 4, (0.05, 0.9), True, (0.3, 0.3), "activitynet", "json"),
}
"""Charades-STA has films of 29 s with moments of 8 s, ActivityNet Captions of 118 s with moments of 40 s that overlap
and crowd in the corners of the map of starts and ends (MVMR, Table 1; debiased grounding, Fig. 2)."""
