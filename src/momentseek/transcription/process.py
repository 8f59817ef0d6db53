"""TranscriberProcess: a recogniser in a process of its own, asked for one file at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from momentseek.job_process import JobProcess, JobWords
from momentseek.transcription.transcript import HeardPart, SpokenCue, SpokenWord

SILENCE_SECONDS = 600.0
"""Longest time without an answer: two minutes of sound are heard in half a minute by a slow processor."""


class TranscriberProcess(JobProcess):
    """A recogniser that runs beside everything else; close it, or leave its ``with``."""

    def __init__(self, spec: str, threads: int = 1, patience: float = SILENCE_SECONDS) -> None:
        module, arguments = "momentseek.transcription.worker", [spec, str(threads)]
        super().__init__(module, arguments, hearing_words(spec), threads=threads, patience=patience)

    def hear(self, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[HeardPart]:
        """Hear a file from ``begin`` on, part by part; MediaError if it cannot be."""
        for part in self.ask({"path": os.fspath(path), "begin": begin, "language": language}):
            yield _part(part)


def hearing_words(spec: str) -> JobWords:
    """How to speak of a transcriber and what it does."""
    return JobWords(f"the transcriber {spec}", "its sound", "cannot be heard")


def _part(values: dict[str, Any]) -> HeardPart:
    cues = [SpokenCue(tuple(SpokenWord(**word) for word in cue["words"])) for cue in values["cues"]]
    return HeardPart(values["heard"], values["language"], tuple(cues))
