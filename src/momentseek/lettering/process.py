"""ReaderProcess: a reader in a process of its own, asked for one file at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from momentseek.job_process import JobProcess, JobWords
from momentseek.lettering.line import ReadPart, frame_of_json
from momentseek.lettering.slots import SLOT_SECONDS

SILENCE_SECONDS = 600.0
"""Longest time without an answer: a part of sixteen frames takes half a minute on a slow processor."""


class ReaderProcess(JobProcess):
    """A reader that runs beside everything else; close it, or leave its ``with``."""

    def __init__(self, spec: str, threads: int = 1, patience: float = SILENCE_SECONDS) -> None:
        module, arguments = "momentseek.lettering.worker", [spec, str(threads)]
        super().__init__(module, arguments, reading_words(spec), threads=threads, patience=patience)

    def read(
        self, path: Path, duration: float, cuts: Sequence[float], begin: float = 0.0, every: float = SLOT_SECONDS
    ) -> Iterator[ReadPart]:
        """Read a file from ``begin`` on, part by part; MediaError if it cannot be."""
        job = {"path": os.fspath(path), "duration": duration, "cuts": list(cuts), "begin": begin, "every": every}
        for part in self.ask(job):
            yield ReadPart(part["done"], tuple(frame_of_json(values) for values in part["frames"]))


def reading_words(spec: str) -> JobWords:
    """How to speak of a reader and what it does."""
    return JobWords(f"the reader {spec}", "what its pictures show", "cannot be read")
