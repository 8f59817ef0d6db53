"""What training reports while it runs, and at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TrainingProgress:
    """How far training is: its step, its loss, and its latest validation."""

    step: int
    steps: int
    """Number of steps planned."""
    epoch: float
    terms: Mapping[str, float]
    """The terms of the loss, averaged over the latest steps."""
    value: float | None
    """The measure at the latest validation."""
    best: float | None
    """The measure at the best validation."""
    pairs_per_second: float
    seconds_left: float
    doing: str = "training"
    """``training``, ``validating`` or, just after, ``validated``; ``scoring`` for hard negatives, before all steps."""
    share: float = math.nan
    """The part of the scoring that is done, from 0 to 1."""
    measure: str = ""
    """Name of the measure by which the best checkpoint is chosen."""

    @property
    def loss(self) -> float:
        """The loss: the sum of its terms."""
        return sum(self.terms.values())


TrainingCallback = Callable[[TrainingProgress], None]
"""Called after every step, and before and after every validation."""


@dataclass(frozen=True)
class TrainingOutcome:
    """How training ended: why it stopped, its best validation, and its report."""

    folder: Path
    """The folder of the training run."""
    step: int
    """Number of steps taken."""
    steps: int
    """Number of steps planned."""
    best: float | None
    """The measure at the best validation."""
    best_step: int | None
    stopped: str
    """``done``, ``patience``, ``time`` or ``interrupted``."""
    seconds: float
    report: Mapping[str, Any] = field(default_factory=dict)
    """The content of report.json; empty after an interruption, and in processes that do not write."""

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best:.4f} at step {self.best_step:,}"
        return f"<TrainingOutcome in {self.folder}: {self.stopped} after {self.step:,} of {self.steps:,} steps{best}>"
