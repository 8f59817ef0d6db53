"""Callbacks by which long work reports how far it is; how that is shown is up to the caller."""

from __future__ import annotations

from collections.abc import Callable

Advance = Callable[[int], object]
"""Called with the number of steps done since the last call."""
ShowCount = Callable[[int, int], object]
"""Called with the number of steps done so far and the number of all steps."""
