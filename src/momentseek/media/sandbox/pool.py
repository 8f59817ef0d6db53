"""The processes that decode for this one: started when needed, kept for the next file, replaced after a crash."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Generator
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.media.sandbox.limits import SandboxLimits
from momentseek.media.sandbox.process import SandboxProcess
from momentseek.media.sandbox.wire import Message

MAX_IDLE = 2
"""Processes that are kept though they have nothing to do; each takes some 60 MB."""

_lock = threading.Lock()
_idle: list[SandboxProcess] = []


def run_task(task: str, path: str, settings: dict[str, Any]) -> Generator[Message, None, Message]:
    """Let a process of its own do a task on a file; see `SandboxProcess.run`. Closing the generator ends the task."""
    process = _take(SandboxLimits.from_environment(device=bool(settings.get("hardware"))))
    whole = False
    try:
        last = yield from process.run(task, path, settings)
        whole = True
        return last
    except MomentseekError:
        whole = process.alive
        raise
    finally:
        _give_back(process) if whole else process.kill()


def warm() -> None:
    """Start a process if none is there, so that it is ready when it is needed."""
    limits = SandboxLimits.from_environment()
    with _lock:
        if any(process.alive and process.limits == limits for process in _idle):
            return
    _give_back(SandboxProcess(limits))


def close_idle() -> None:
    """End the processes that have nothing to do."""
    while True:
        with _lock:
            if not _idle:
                return
            process = _idle.pop()
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
        if len(_idle) < MAX_IDLE:
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
