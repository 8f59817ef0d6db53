"""Progress on stderr: a bar with rate and time left on a terminal, one line elsewhere if it takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import click

from momentseek.progress import ShowCount

QUIET_SECONDS = 2.0
"""How long work may take before a line is written where stderr is no terminal."""


class ProgressBar:
    """A bar with the rate and the time left, on stderr; use it as a context manager and call ``advance``.

    Where stderr is no terminal, one line says how long it will take, if it takes long.
    """

    def __init__(self, total: int, label: str, *, enabled: bool = True) -> None:
        self.total = total
        self.label = label
        self.done = 0
        self._begun = time.monotonic()
        self._announced = False
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
        elif self._announced and kind is None:
            click.echo(f"  done: {self.total:,} in {time.monotonic() - self._begun:.0f} s", err=True)

    def advance(self, steps: int) -> None:
        """Count ``steps`` more as done."""
        self.done += steps
        if self._bar is not None:
            self._bar.update(steps, current_item=self.done)
            return
        waited = time.monotonic() - self._begun > QUIET_SECONDS
        if self._enabled and not self._announced and waited and 0 < self.done < self.total:
            self._announced = True
            left = (self.total - self.done) / self.rate
            click.echo(f"{self.label}: {self.total:,} to do, {self.rate:,.0f}/s, about {left:,.0f} s left", err=True)

    @property
    def rate(self) -> float:
        """Steps per second so far."""
        return self.done / max(time.monotonic() - self._begun, 1e-9)


@contextmanager
def progress_bars(label: str) -> Iterator[ShowCount]:
    """A callback ``(done, total)`` for work that finds out by itself how much there is to do.

    A bar begins with the first call, and the next one with the first call after its end.
    """
    bar: ProgressBar | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = ProgressBar(total, label).__enter__()
        bar.advance(done - bar.done)
        if done >= total:
            bar.__exit__(None, None, None)
            bar = None

    try:
        yield show
    finally:
        if bar is not None:
            bar.__exit__(*sys.exc_info())
