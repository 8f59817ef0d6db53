"""The sound detection process: ``python -m momentseek.recognition.sounds.worker THREADS``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import Any

from momentseek.core.workers import serve_jobs
from momentseek.media.sandbox.calls import sound
from momentseek.recognition.sounds.yamnet import Yamnet

MAX_MEMORY_BYTES = 2 << 30
"""Limit of the process's address space."""


def load(threads: int) -> Callable[..., Iterator[dict[str, Any]]]:
    """Return a function that detects sounds in a file (path, start) and yields ``HeardPart`` values."""
    model = Yamnet(threads=threads)

    def hear(path: str, begin: float) -> Iterator[dict[str, Any]]:
        for part in model.hear(sound(path), begin):
            yield {"done": part.done, "stretches": [astuple(event) for event in part.stretches]}

    return hear


if __name__ == "__main__":
    serve_jobs(lambda: load(int(sys.argv[1])), MAX_MEMORY_BYTES)
