"""Decoding processes and their limits: started when needed, reused for the next file, replaced after a crash."""

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
"""Timeout for starting a process; long, because a busy machine is not the file's fault."""
MAX_IDLE = 2
"""Maximum number of idle processes to keep; each takes some 60 MB."""
ERRORS: dict[str, type[MomentseekError]] = {"MediaError": MediaError, "FileChangedError": FileChangedError}
"""Errors that are caused by the file, by name."""
FileText = str | list[Any]
"""A file in a message: its path, or the path, size and time of a pinned file."""


def file_of_json(text: FileText) -> Path | PinnedFile:
    """Return the file that a message names."""
    return Path(text) if isinstance(text, str) else PinnedFile(Path(text[0]), text[1], text[2])


@dataclass(frozen=True)
class SandboxLimits:
    """Limits of a decoding process.

    ``gigabytes`` (2^30 bytes) of memory are enough for 8K video with 16 reference pictures. ``seconds`` is the timeout
    for reading a packet, long enough for a sleeping drive to wake up. ``effort`` is the limit of CPU seconds per second
    of video. The driver of a ``device`` reserves far more address space than memory, so there is no limit with one.
    """

    gigabytes: float = 4.0
    seconds: float = 60.0
    effort: float = MAX_EFFORT
    device: bool = False

    @classmethod
    def from_environment(cls, *, device: bool = False) -> SandboxLimits:
        """Return the limits set in the environment, else the defaults."""
        memory, seconds = _positive(MEMORY_VARIABLE, cls.gigabytes), _positive(SECONDS_VARIABLE, cls.seconds)
        return cls(memory, seconds, _positive(EFFORT_VARIABLE, cls.effort), device)

    def enforce(self) -> None:
        """Apply the memory limit to this process."""
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
    """A process that decodes media, one task at a time."""

    def __init__(self, limits: SandboxLimits) -> None:
        arguments = [str(limits.gigabytes), str(limits.effort), *(["device"] if limits.device else [])]
        super().__init__(
            "momentseek.media.sandbox.worker", arguments, timeout=limits.seconds, start_timeout=START_SECONDS
        )
        self.limits = limits
        self.start()

    def describe(self, path: str, failure: WorkerFailure) -> MomentseekError:
        """Return the error for a file that was not decoded, as one sentence."""
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
    """Run a task on a file in a separate process (see `WorkerProcess.run`); closing the generator ends the task."""
    name = os.fspath(path)
    file: FileText = [name, path.size, path.mtime_ns] if isinstance(path, PinnedFile) else name
    process = _take(SandboxLimits.from_environment(device=bool(settings.get("hardware"))))
    try:
        yield from process.run(task, name, {"path": file, **settings})
    finally:
        _give_back(process)


def warm() -> None:
    """Start a process if there is none, so that the first task need not wait."""
    limits = SandboxLimits.from_environment()
    with _lock:
        if any(process.alive and process.limits == limits for process in _idle):
            return
    _give_back(SandboxProcess(limits))


def close_idle() -> None:
    """End the idle processes."""
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
    """Forget all processes after a fork: the pipes belong to the parent, and a missing thread may hold the lock."""
    global _lock
    _lock = threading.Lock()
    for process in _idle:
        process.forget()
    _idle.clear()


atexit.register(close_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
