"""Searching goes before adding: a job waits between two batches of frames while somebody waits for a search."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

MAX_PAUSE_SECONDS = 10.0
"""The longest that a job waits at a time, so that it gets on, slowly, also under a load that never ends."""
POLL_SECONDS = 0.02
LOWER_PRIORITY = 10
"""How much nicer than the rest of the server the threads of a job are, on the scale of ``nice``."""


def give_way(is_wanted: Callable[[], bool], stop: threading.Event, most: float = MAX_PAUSE_SECONDS) -> float:
    """Wait while the machine is wanted for something more urgent; returns the seconds it took.

    >>> give_way(lambda: False, threading.Event())
    0.0
    """
    begun = time.monotonic()
    waited = 0.0
    while is_wanted() and waited < most and not stop.wait(POLL_SECONDS):
        waited = time.monotonic() - begun
    return waited


def lower_priority() -> None:
    """Let the system prefer other threads to this one and to those that it starts; nothing where it cannot."""
    if sys.platform == "linux":  # elsewhere the whole process would be slowed down
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWER_PRIORITY)
