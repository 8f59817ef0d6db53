"""The processes that decode: their limits, started when needed, kept for the next file, replaced after a crash."""

from __future__ import annotations

import atexit
import math
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from io import RawIOBase
from typing import Any, cast

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.pinned_file import FileChangedError
from momentseek.media.container import MEMORY_VARIABLE
from momentseek.media.container import out_of_memory as hunger
from momentseek.media.sandbox.wire import Message, WireError, receive_message, send_message

SECONDS_VARIABLE = "MOMENTSEEK_DECODE_SECONDS"


@dataclass(frozen=True)
class SandboxLimits:
    """Limits on the process that decodes.

    ``gigabytes`` (2^30 bytes) of memory are enough for 8K video with 16 reference pictures. ``seconds`` may pass
    without a packet being read, which a sleeping drive may take and nothing else does. A ``device``'s driver reserves
    far more addresses than it takes memory, so these are not bounded with one.
    """

    gigabytes: float = 4.0
    seconds: float = 60.0
    device: bool = False

    @classmethod
    def from_environment(cls, *, device: bool = False) -> SandboxLimits:
        """The limits that the environment asks for, else the usual ones."""
        return cls(_positive(MEMORY_VARIABLE, cls.gigabytes), _positive(SECONDS_VARIABLE, cls.seconds), device)

    def enforce(self) -> None:
        """Bind this process to its limit of memory, and let a crash leave no core file; where the system can."""
        if sys.platform == "win32":
            return
        import resource

        most = int(self.gigabytes * 2**30)
        limits = {resource.RLIMIT_DATA: most, resource.RLIMIT_CORE: 0}
        if not self.device:
            limits[resource.RLIMIT_AS] = 2 * most
        for kind, limit in limits.items():
            with suppress(OSError, ValueError):
                _, hard = resource.getrlimit(kind)
                allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (allowed, hard))


def _positive(variable: str, usual: float) -> float:
    text = os.environ.get(variable, "")
    if not text:
        return usual
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise MomentseekError(f"{variable} is {text!r}; set it to a number above 0, or unset it")
    return value


PIPE_BYTES = 2**20
"""Bytes that the process may be ahead of its reader: some four frames."""


ERRORS: dict[str, type[MomentseekError]] = {"MediaError": MediaError, "FileChangedError": FileChangedError}
"""The errors of a file, by name; others are no fault of it."""
START_SECONDS = 120.0
"""Seconds that starting may take; a busy machine is no fault of the file that waits for it."""


class _SilentError(Exception):
    """Nothing was heard of the process for too long."""


class SandboxProcess:
    """A process that decodes media for this one, one task at a time."""

    def __init__(self, limits: SandboxLimits) -> None:
        self.limits = limits
        # The worker finds modules where this program does, and never in the folder in which it happens to run (-P).
        paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-P", "-m", "momentseek.media.sandbox.worker", str(limits.gigabytes)]
        command += ["device"] if limits.device else []
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        except OSError as e:
            raise MomentseekError(
                f"the process that decodes videos cannot be started ({e.strerror}); check the system's limits"
            ) from None
        self._requests = cast("RawIOBase", self._process.stdin)
        self._replies = cast("RawIOBase", self._process.stdout)
        self._ready = False
        _widen(self._replies.fileno())

    @property
    def alive(self) -> bool:
        """Whether it can be given a task."""
        return self._process.poll() is None

    def run(self, task: str, path: str, settings: dict[str, Any]) -> Generator[Message, None, Message]:
        """Let it do a task on a file; yields what it finds and returns its last message."""
        self._get_ready()
        try:
            send_message(self._requests, Message(task, settings))
            while True:
                message = receive_message(self._replies, lambda: self._wait(self.limits.seconds))
                match message.kind:
                    case "item":
                        yield message
                    case "end":
                        return message
                    case "error":
                        kind = ERRORS.get(str(message.content.get("type")), MomentseekError)
                        raise kind(str(message.content.get("text")))
                    case "odd":
                        raise MediaError(f"{path}: cannot be read ({message.content.get('text')})")
                    case "hungry":
                        self.kill()  # it is about to end anyway: what memory it has left may be in pieces
                        raise hunger(path)
        except _SilentError:
            self.kill()
            raise MediaError(
                f"{path}: decoding it made no progress for {self.limits.seconds:g} seconds and was given up; convert it"
            ) from None
        except WireError:
            raise MediaError(f"{path}: {self._last_words()}") from None

    def close(self) -> None:
        """Let it end by itself, which it does when nothing more can be asked."""
        with suppress(OSError):
            self._requests.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._replies.close()

    def kill(self) -> None:
        """End it in the midst of what it is doing."""
        self._process.kill()
        self.close()

    def forget(self) -> None:
        """Let go of a process that belongs to another one, from which this one was forked."""
        for pipe in (self._requests, self._replies):
            pipe.close()
        self._process.returncode = 0  # it is not this process's child

    def _get_ready(self) -> None:
        """Wait, before the first task, until the process has come up."""
        if self._ready:
            return
        try:
            self._ready = receive_message(self._replies, lambda: self._wait(START_SECONDS)).kind == "ready"
        except (WireError, _SilentError):
            self.kill()
            raise MomentseekError(
                "the process that decodes videos does not come up; check the installation (momentseek doctor)"
            ) from None

    def _wait(self, seconds: float) -> None:
        if sys.platform == "win32":
            return
        poll = select.poll()
        poll.register(self._replies.fileno(), select.POLLIN)
        if not poll.poll(seconds * 1000):
            raise _SilentError

    def _last_words(self) -> str:
        """Why the process ended."""
        self.close()
        code = self._process.returncode
        if code == -signal.SIGKILL:
            return "the system ended its decoding, as it does when memory runs out; make a smaller copy"
        if code < 0:
            with suppress(ValueError):
                return f"crashes the decoder ({signal.Signals(-code).name}); convert it, or get another copy"
        return f"crashes the decoder (exit code {code}); convert it, or get another copy"


def _widen(pipe: int) -> None:
    """Let a pipe hold some frames, so that decoding does not wait for the reader."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # the user has many pipes; a small one works too
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


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
