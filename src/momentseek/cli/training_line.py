"""How training goes, in a line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from momentseek.cli.progress import ProgressLines

if TYPE_CHECKING:
    from momentseek.training.progress import TrainingProgress


class TrainingLine:
    """Shows how training goes, as a callback for ``momentseek.training.train``."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._lines = ProgressLines(quiet=quiet, renew_seconds=0.2, silence_seconds=30.0)

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.doing != "validated":
            self._lines.show(sentence(progress))
        elif not self._lines.quiet:
            self._lines.note(sentence(progress))
            self._lines.last = time.monotonic()


def sentence(progress: TrainingProgress) -> str:
    """One line: how far, the loss and its terms, the measure, the rate, the time left."""
    if progress.doing == "scoring":
        return f"scoring all training queries and videos, for hard negatives: {progress.share:.0%}"
    terms = ", ".join(f"{name} {value:.4f}" for name, value in progress.terms.items())
    parts = [f"step {progress.step:,}/{progress.steps:,} (epoch {progress.epoch:.1f})"]
    if progress.terms:
        parts.append(f"loss {progress.loss:.4f} ({terms})" if len(progress.terms) > 1 else f"loss {progress.loss:.4f}")
    if progress.doing == "validating":
        parts.append("validating")
    elif progress.value is not None and progress.best is not None:
        new = progress.doing == "validated" and progress.value >= progress.best
        parts.append(
            f"{progress.measure} {progress.value:.4f}" + (", the best" if new else f", best {progress.best:.4f}")
        )
    parts.append(f"{progress.pairs_per_second:,.0f} pairs/s")
    if progress.step < progress.steps and progress.seconds_left == progress.seconds_left:
        parts.append(f"{duration(progress.seconds_left)} left")
    return "; ".join(parts)


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(42), duration(130), duration(7300)
    ('42 s', '2 min', '2 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
