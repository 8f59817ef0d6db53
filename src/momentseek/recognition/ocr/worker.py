"""The OCR process: ``python -m momentseek.recognition.ocr.worker MODEL THREADS``.

``add`` and ``ocr run`` start it, so that a file that crashes the model does not end them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from momentseek.core.workers import serve_jobs
from momentseek.recognition.ocr.lines import frame_as_json
from momentseek.recognition.ocr.models import PaddleOcr, model_files, read_file

MAX_MEMORY_BYTES = 4 << 30
"""Limit of the process's address space: the model takes about a sixth."""


def load(spec: str, threads: int) -> Callable[..., Iterator[dict[str, Any]]]:
    """Return a function that reads a file (path, duration, cuts, start, interval) and yields ``OcrPart`` values."""
    model = PaddleOcr(*model_files(spec, check=True), threads)

    def read(**job: Any) -> Iterator[dict[str, Any]]:
        for part in read_file(model, **job):
            yield {"done": part.done, "frames": [frame_as_json(frame) for frame in part.frames]}

    return read


if __name__ == "__main__":
    serve_jobs(lambda: load(sys.argv[1], int(sys.argv[2])), MAX_MEMORY_BYTES)
