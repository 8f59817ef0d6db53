"""Ctrl-C during training: finish the step, save everything, then stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TrainingInterrupted(Exception):
    """Raised between two parts of training after a signal asked it to stop."""


class Interrupts:
    """A context in which Ctrl-C (or SIGTERM) only sets ``requested``; a second one stops at once, as always."""

    def __init__(self) -> None:
        self.requested = False
        self._old: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._old = {s: signal.signal(s, self._note) for s in STOP_SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for s, handler in self._old.items():
            signal.signal(s, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def check(self, *_: object) -> None:
        """Raise ``TrainingInterrupted`` if a signal came; can be passed as a progress callback."""
        if self.requested:
            raise TrainingInterrupted
