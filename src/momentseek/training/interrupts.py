"""Being asked to stop: finish the step, write everything down, then leave."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """Raised between two parts of a long piece of work, after a signal."""


class Interrupts:
    """Within it, Ctrl-C only sets ``asked``; a second one stops at once, as always."""

    def __init__(self) -> None:
        self.asked = False
        self._old: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._old = {s: signal.signal(s, self._note) for s in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for s, handler in self._old.items():
            signal.signal(s, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def check(self, *_: object) -> None:
        """Leave if asked to; fit to be called as a progress callback."""
        if self.asked:
            raise Interrupted
