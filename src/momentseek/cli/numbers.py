"""Numbers on the command line: within bounds, and never ``nan``, which no bound keeps out."""

from __future__ import annotations

import math
from typing import Any

import click


class Number(click.FloatRange):
    """A finite number within bounds.

    >>> Number(-1, 1).convert("nan", None, None)
    Traceback (most recent call last):
        ...
    click.exceptions.BadParameter: nan is not a finite number.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as a finite number; others are refused."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
