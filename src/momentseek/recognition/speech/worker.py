"""The process that hears. A job is ``{"path", "begin", "language"}``; a part of the answer is a ``TranscribedPart``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from momentseek.core.workers import Job, Work, serve_jobs
from momentseek.recognition.speech.models import Whisper, model_folder
from momentseek.recognition.speech.transcribe import hearing_words, transcribe_file

MAX_MEMORY_BYTES = 6 << 30
"""Address space that the process may use: the largest recogniser takes about half."""


def main(spec: str, threads: int) -> None:
    """Hear what is asked for until nobody asks any more."""
    serve_jobs(lambda: _load(spec, threads), hearing_words(spec), MAX_MEMORY_BYTES)


def _load(spec: str, threads: int) -> Work:

    transcriber = Whisper(model_folder(spec), threads)

    def hear(job: Job) -> Iterator[dict[str, Any]]:
        for part in transcribe_file(transcriber, job["path"], job["begin"], job["language"]):
            yield asdict(part)

    return hear


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
