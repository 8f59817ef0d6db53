"""The process that hears sounds: ``python -m momentseek.recognition.sounds.worker THREADS``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from momentseek.core.workers import serve_jobs
from momentseek.recognition.sounds.yamnet import Yamnet, hear_file, part_as_json

MAX_MEMORY_BYTES = 2 << 30
"""Address space that the process may use."""


def load(threads: int) -> Callable[..., Iterator[dict[str, Any]]]:
    """What hears a file, given its path and where to begin, in ``HeardPart`` values."""
    model = Yamnet(threads=threads)
    return lambda **job: map(part_as_json, hear_file(model, **job))


if __name__ == "__main__":
    serve_jobs(lambda: load(int(sys.argv[1])), MAX_MEMORY_BYTES)
