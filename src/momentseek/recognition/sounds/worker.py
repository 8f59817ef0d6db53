"""The process that hears sounds: ``python -m momentseek.recognition.sounds.worker THREADS``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import Any

from momentseek.core.workers import serve_jobs
from momentseek.media.sandbox.calls import sound
from momentseek.recognition.sounds.yamnet import Yamnet

MAX_MEMORY_BYTES = 2 << 30
"""Address space that the process may use."""


def load(threads: int) -> Callable[..., Iterator[dict[str, Any]]]:
    """What hears a file, given its path and where to begin; parts are ``HeardPart`` values."""
    model = Yamnet(threads=threads)

    def hear(path: str, begin: float) -> Iterator[dict[str, Any]]:
        for part in model.hear(sound(path), begin):
            yield {"done": part.done, "stretches": [astuple(event) for event in part.stretches]}

    return hear


if __name__ == "__main__":
    serve_jobs(lambda: load(int(sys.argv[1])), MAX_MEMORY_BYTES)
