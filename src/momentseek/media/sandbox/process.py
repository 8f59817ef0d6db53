"""The processes that decode: their limits, started when needed, kept for the next file, replaced after a crash."""

from __future__ import annotations

import atexit
import math
import os
import signal
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.pinned_file import FileChangedError, PinnedFile
from momentseek.core.workers import Message, WorkerFailure, WorkerProcess, limit_memory
from momentseek.media.container import EFFORT_VARIABLE, MAX_EFFORT, MEMORY_VARIABLE, FilePath, out_of_memory

SECONDS_VARIABLE = "MOMENTSEEK_DECODE_SECONDS"
START_SECONDS = 120.0
"""Seconds that starting may take; a busy machine is no fault of the file that waits for it."""
MAX_IDLE = 2
"""Processes that are kept though they have nothing to do; each takes some 60 MB."""
ERRORS: dict[str, type[MomentseekError]] = {"MediaError": MediaError, "FileChangedError": FileChangedError}
"""The errors of a file, by name; others are no fault of it."""
FileText = str | list[Any]
"""A file as a message names it: its path, or path, size and time of one that must be the very file meant."""


def file_of_json(text: FileText) -> Path | PinnedFile:
    """The file that a message names."""
    return Path(text) if isinstance(text, str) else PinnedFile(Path(text[0]), text[1], text[2])


@dataclass(frozen=True)
class SandboxLimits:
    """Limits on the process that decodes.

    ``gigabytes`` (2^30 bytes) of memory are enough for 8K video with 16 reference pictures. ``seconds`` may pass
    without a packet being read, which a sleeping drive may take and nothing else does. ``effort`` is the processor time
    that a second of video may take, in seconds. A ``device``'s driver reserves
    far more addresses than it takes memory, so these are not bounded with one.
    """

    gigabytes: float = 4.0
    seconds: float = 60.0
    effort: float = MAX_EFFORT
    device: bool = False

    @classmethod
    def from_environment(cls, *, device: bool = False) -> SandboxLimits:
        """The limits that the environment asks for, else the usual ones."""
        memory, seconds = _positive(MEMORY_VARIABLE, cls.gigabytes), _positive(SECONDS_VARIABLE, cls.seconds)
        return cls(memory, seconds, _positive(EFFORT_VARIABLE, cls.effort), device)

    def enforce(self) -> None:
        """Bind this process to its limit of memory."""
        data_bytes = int(self.gigabytes * 2**30)
        limit_memory(None if self.device else 2 * data_bytes, data_bytes)


def _positive(variable: str, usual: float) -> float:
    text = os.environ.get(variable, "")
    if not text:
        return usual
    with suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise MomentseekError(f"{variable} is {text!r}; set it to a number above 0, or unset it")


class SandboxProcess(WorkerProcess):
    """A process that decodes media for this one, one task at a time."""

    def __init__(self, limits: SandboxLimits) -> None:
        arguments = [str(limits.gigabytes), str(limits.effort), *(["device"] if limits.device else [])]
        super().__init__(
            "momentseek.media.sandbox.worker", arguments, timeout=limits.seconds, start_timeout=START_SECONDS
        )
        self.limits = limits
        self.start()

    def describe(self, path: str, failure: WorkerFailure) -> MomentseekError:
        """One sentence about a file that was not decoded."""
        match failure.kind:
            case "unready" | "broken":
                return MomentseekError(
                    f"the process that decodes videos does not come up ({failure.text}); check the installation "
                    "(momentseek doctor) and the system's limits"
                )
            case "refused":
                return ERRORS.get(failure.error, MomentseekError)(failure.text)
            case "odd":
                return MediaError(f"{path}: cannot be read ({failure.text})")
            case "memory":
                return out_of_memory(path)
            case "silent":
                return MediaError(
                    f"{path}: decoding it made no progress for {self.timeout:g} seconds and was given up; convert it"
                )
            case "ended":
                return MediaError(f"{path}: {_why_it_ended(failure.code)}")


def _why_it_ended(code: int) -> str:
    if code == -signal.SIGKILL:
        return "the system ended its decoding, as it does when memory runs out; make a smaller copy"
    if code < 0:
        with suppress(ValueError):
            return f"crashes the decoder ({signal.Signals(-code).name}); convert it, or get another copy"
    return f"crashes the decoder (exit code {code}); convert it, or get another copy"


_lock = threading.Lock()
_idle: list[SandboxProcess] = []


def run_task(task: str, path: FilePath, settings: dict[str, Any]) -> Generator[Message]:
    """Let a process of its own do a task on a file; see `WorkerProcess.run`. Closing the generator ends the task."""
    name = os.fspath(path)
    file: FileText = [name, path.size, path.mtime_ns] if isinstance(path, PinnedFile) else name
    process = _take(SandboxLimits.from_environment(device=bool(settings.get("hardware"))))
    try:
        yield from process.run(task, name, {"path": file, **settings})
    finally:
        _give_back(process)


def warm() -> None:
    """Start a process if there is none, so that it is ready when it is needed."""
    limits = SandboxLimits.from_environment()
    with _lock:
        if any(process.alive and process.limits == limits for process in _idle):
            return
    _give_back(SandboxProcess(limits))


def close_idle() -> None:
    """End the processes that have nothing to do."""
    with _lock:
        processes = _idle[:]
        _idle.clear()
    for process in processes:
        process.close()


def _take(limits: SandboxLimits) -> SandboxProcess:
    while True:
        with _lock:
            process = _idle.pop() if _idle else None
        if process is None:
            return SandboxProcess(limits)
        if process.alive and process.limits == limits:
            return process
        process.close()


def _give_back(process: SandboxProcess) -> None:
    with _lock:
        if process.alive and len(_idle) < MAX_IDLE:
            _idle.append(process)
            return
    process.close()


def _forget_all() -> None:
    """In a forked process: the pipes belong to the parent, and the lock may be held by a thread that is not here."""
    global _lock
    _lock = threading.Lock()
    for process in _idle:
        process.forget()
    _idle.clear()


atexit.register(close_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
