"""Telling how training goes: one line that renews itself on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from momentseek.training.progress import TrainingProgress

RENEW = 0.2
"""Seconds between renewals on a terminal."""
SILENCE = 30.0
"""Seconds between lines elsewhere."""


class TrainingLine:
    """A callback for ``training.train``."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._at = time.monotonic()
        self._shown = 0

    def __call__(self, progress: TrainingProgress) -> None:
        if self.quiet:
            return
        text, now = sentence(progress), time.monotonic()
        if progress.doing == "validated":
            self._clear()
            click.echo(text, err=True)
            self._at = now
        elif sys.stderr.isatty():
            if now - self._at > RENEW:
                self._clear()
                click.echo(text, err=True, nl=False)
                self._shown, self._at = len(text), now
        elif now - self._at > SILENCE:
            click.echo(text, err=True)
            self._at = now

    def _clear(self) -> None:
        if self._shown:
            click.echo("\r" + " " * self._shown + "\r", err=True, nl=False)
            self._shown = 0


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
    """A time to read.

    >>> duration(42), duration(130), duration(7300)
    ('42 s', '2 min', '2 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
