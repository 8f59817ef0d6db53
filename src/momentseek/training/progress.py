"""What a training run tells while it goes, and at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far training is."""

    step: int
    steps: int
    epoch: float
    terms: Mapping[str, float]
    """The loss's terms, averaged over the latest steps."""
    value: float | None
    """The latest validation."""
    best: float | None
    pairs_per_second: float
    seconds_left: float
    doing: str = "training"
    """``training``, ``validating`` or, just after, ``validated``; ``scoring`` for hard negatives, before all steps."""
    share: float = math.nan
    """How much of the scoring is done."""

    @property
    def loss(self) -> float:
        """The sum of the terms."""
        return sum(self.terms.values())


Tell = Callable[[Progress], None]


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    folder: Path
    step: int
    steps: int
    best: float | None
    best_step: int | None
    stopped: str
    """``done``, ``patience``, ``time`` or ``interrupted``."""
    seconds: float
    report: Mapping[str, Any] = field(default_factory=dict)
    """What stands in report.json; empty after an interruption."""
