"""TranscriberProcess: a recogniser in a process of its own, asked for one file at a time.

A crash, a hang or a file that needs too much memory ends that process and fails that file; the next one gets a new
process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from momentseek.errors import MediaError, MomentseekError
from momentseek.transcription.hearing import HeardPart
from momentseek.transcription.transcript import SpokenCue, SpokenWord

SILENCE_SECONDS = 600.0
"""Longest time without an answer: two minutes of sound are heard in half a minute by a slow processor."""


class TranscriberProcess:
    """A recogniser that runs beside everything else; close it, or leave its ``with``."""

    def __init__(self, spec: str, threads: int = 1, patience: float = SILENCE_SECONDS) -> None:
        self.spec, self.threads, self.patience = spec, threads, patience
        self._process: subprocess.Popen[str] | None = None
        self._answers: SimpleQueue[str | None] = SimpleQueue()

    def __enter__(self) -> TranscriberProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hear(self, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[HeardPart]:
        """Hear a file from ``begin`` on, part by part; MediaError if it cannot be."""
        process = self._start()
        job = json.dumps({"path": os.fspath(path), "begin": begin, "language": language})
        try:
            assert process.stdin is not None
            process.stdin.write(job + "\n")
            process.stdin.flush()
        except OSError:
            self.close()
            raise MediaError(f"{path}: the recogniser stopped before it; add it again") from None
        while True:
            answer = self._next_answer(path)
            if "end" in answer:
                return
            if "failed" in answer:
                raise MediaError(f"{path}: {str(answer['failed']).removeprefix(f'{path}: ')}")
            yield _part(answer["part"])

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            self._process.wait()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._answers = SimpleQueue()
        command = [sys.executable, "-m", "momentseek.transcription.worker", self.spec, str(self.threads)]
        # a session of its own: Ctrl-C is for the parent, which ends it in good order
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": str(self.threads)},
        )  # fmt: skip
        Thread(target=_read_answers, args=(self._process, self._answers), daemon=True).start()
        first = self._next_answer(None)
        if "broken" in first:
            self.close()
            raise MomentseekError(f"the transcriber {self.spec}: {first['broken']}")
        return self._process

    def _next_answer(self, path: Path | None) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=self.patience)
        except Empty:
            self.close()
            raise MediaError(f"{path}: its sound was not heard within {self.patience:.0f} seconds a part") from None
        if line is None:
            code = self._process.wait() if self._process is not None else 0
            self.close()
            if path is None:
                raise MomentseekError(f"the transcriber {self.spec} cannot be started (it ended with {code})")
            raise MediaError(f"{path}: its sound makes the recogniser stop (it ended with {code}); convert it")
        found: dict[str, Any] = json.loads(line)
        return found


def _read_answers(process: subprocess.Popen[str], answers: SimpleQueue[str | None]) -> None:
    with suppress(OSError, ValueError):
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(line)
    answers.put(None)


def _part(values: dict[str, Any]) -> HeardPart:
    cues = [SpokenCue(tuple(SpokenWord(**word) for word in cue["words"])) for cue in values["cues"]]
    return HeardPart(values["heard"], values["language"], tuple(cues))
