"""The process that reads.

A job is ``{"path", "duration", "cuts", "begin", "every"}``; a part of the answer is a ``OcrPart``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from momentseek.core.workers import Job, Work, serve_jobs
from momentseek.recognition.ocr.lines import frame_as_json
from momentseek.recognition.ocr.models import PaddleOcr, model_files
from momentseek.recognition.ocr.recognise import read_file, reading_words

MAX_MEMORY_BYTES = 4 << 30
"""Address space that the process may use: the reader takes about a sixth."""


def main(spec: str, threads: int) -> None:
    """Read what is asked for until nobody asks any more."""
    serve_jobs(lambda: _load(spec, threads), reading_words(spec), MAX_MEMORY_BYTES)


def _load(spec: str, threads: int) -> Work:

    reader = PaddleOcr(*model_files(spec, check=True), threads)

    def read(job: Job) -> Iterator[dict[str, Any]]:
        for part in read_file(reader, job["path"], job["duration"], job["cuts"], job["begin"], job["every"]):
            yield {"done": part.done, "frames": [frame_as_json(frame) for frame in part.frames]}

    return read


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
