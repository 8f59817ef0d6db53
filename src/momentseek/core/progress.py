"""Types of the callbacks by which long work reports its progress; the caller decides how to show it."""

from __future__ import annotations

from collections.abc import Callable

Advance = Callable[[int], object]
"""Called with the number of steps done since the last call."""
ShowCount = Callable[[int, int], object]
"""Called with the number of steps done so far and the total number."""
