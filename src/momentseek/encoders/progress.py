"""A progress bar with rate and time left, on stderr: a bar on a terminal, one line elsewhere if it takes long."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

import click

PATIENCE = 2.0
"""Seconds before anybody who is not at a terminal is told."""


class Progress:
    """Use as a context manager and call ``advance``."""

    def __init__(self, total: int, label: str, *, enabled: bool = True) -> None:
        self.total = total
        self.label = label
        self.done = 0
        self._begun = time.monotonic()
        self._told = False
        self._enabled = enabled
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._enabled and sys.stderr.isatty():
            self._bar = click.progressbar(
                length=self.total,
                label=self.label,
                file=sys.stderr,
                show_pos=True,
                item_show_func=lambda _: f"{self.rate:,.0f}/s",
            )
            self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
        elif self._told and kind is None:
            click.echo(f"  done: {self.total:,} in {time.monotonic() - self._begun:.0f} s", err=True)

    def advance(self, steps: int) -> None:
        """Some more are done."""
        self.done += steps
        if self._bar is not None:
            self._bar.update(steps, current_item=self.done)
        elif self._enabled and not self._told and time.monotonic() - self._begun > PATIENCE and self.done < self.total:
            self._told = True
            left = (self.total - self.done) / self.rate
            click.echo(f"{self.label}: {self.total:,} to do, {self.rate:,.0f}/s, about {left:,.0f} s left", err=True)

    @property
    def rate(self) -> float:
        """Per second so far."""
        return self.done / max(time.monotonic() - self._begun, 1e-9)
