"""The transcription process: ``python -m momentseek.recognition.speech.worker TRANSCRIBER THREADS``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from momentseek.core.workers import serve_jobs
from momentseek.recognition.speech.models import Whisper, model_folder
from momentseek.recognition.speech.transcribe import transcribe_file

MAX_MEMORY_BYTES = 6 << 30
"""Limit of the process's address space: the largest transcriber takes about half."""


def load(spec: str, threads: int) -> Callable[..., Iterator[dict[str, Any]]]:
    """Return a function that transcribes a file (path, start, language) and yields ``TranscribedPart`` values."""
    transcriber = Whisper(model_folder(spec), threads)
    return lambda **job: map(asdict, transcribe_file(transcriber, **job))


if __name__ == "__main__":
    serve_jobs(lambda: load(sys.argv[1], int(sys.argv[2])), MAX_MEMORY_BYTES)
