"""Run tasks in another process, which may crash or hang, and iterators ahead of time in threads.

`WorkerProcess` is the parent's side of such a process, `serve` the worker's. They exchange messages: a JSON object and
a binary payload. No pickles: a worker reads hostile files, so its messages are treated as data only, within limits.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from io import RawIOBase
from typing import Any, Generic, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MediaError, MomentseekError

MAX_TEXT_BYTES = 2**28
MAX_PAYLOAD_BYTES = 2**29
"""Maximum payload of a message; the largest RGB picture takes 300 MB."""
PIPE_BYTES = 2**20
"""Buffer of a pipe, by which a worker may be ahead of its reader: some four frames of a video."""
SECONDS_BETWEEN_BEATS = 0.5
_LENGTHS = struct.Struct("<II")

T = TypeVar("T")


# Messages.


@dataclass(frozen=True)
class Message:
    """A message of a ``kind``, with values and a binary payload."""

    kind: str
    content: dict[str, Any] = field(default_factory=dict)
    payload: NDArray[np.uint8] | bytes = b""


class WireError(Exception):
    """The other side has ended, or sent an invalid message."""


def send_message(out: RawIOBase, message: Message) -> None:
    """Write a message, waiting until the pipe has room."""
    text = json.dumps([message.kind, message.content]).encode()
    payload = message.payload if isinstance(message.payload, bytes) else message.payload.data.cast("B")
    _write_all(out, _LENGTHS.pack(len(text), len(payload)) + text)
    if len(payload):
        _write_all(out, payload)


def receive_message(source: RawIOBase, wait: Callable[[], None] = lambda: None) -> Message:
    """Read one message; ``wait`` is called before each read, and may raise a timeout."""
    lengths = bytearray(_LENGTHS.size)
    _read_all(source, memoryview(lengths), wait)
    text_length, payload_length = _LENGTHS.unpack(lengths)
    if text_length > MAX_TEXT_BYTES or payload_length > MAX_PAYLOAD_BYTES:
        raise WireError
    text = bytearray(text_length)
    _read_all(source, memoryview(text), wait)
    payload = np.empty(payload_length, np.uint8)
    if payload_length:
        _read_all(source, payload.data, wait)
    try:
        kind, content = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise WireError from None
    if not isinstance(kind, str) or not isinstance(content, dict):
        raise WireError
    return Message(kind, content, payload)


def _read_all(source: RawIOBase, into: memoryview, wait: Callable[[], None]) -> None:
    at = 0
    while at < len(into):
        wait()
        try:
            count = source.readinto(into[at:])
        except (OSError, ValueError):
            raise WireError from None
        if not count:
            raise WireError
        at += count


def _write_all(out: RawIOBase, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while len(rest):
        try:
            rest = rest[out.write(rest) or 0 :]
        except (OSError, ValueError):
            raise WireError from None


# The parent's side of a process.


@dataclass(frozen=True)
class WorkerFailure:
    """The reason why a task failed.

    The process is ``unready`` (it does not start) or ``broken`` (its model cannot be loaded); or the task was
    ``refused`` by one of our errors, failed in an ``odd`` way or for lack of ``memory``; or the process was ``silent``
    for too long or ``ended`` with an exit code.
    """

    kind: Literal["unready", "broken", "refused", "odd", "memory", "silent", "ended"]
    text: str = ""
    error: str = ""
    """Name of the error's class, if the task was refused."""
    code: int = 0


class _SilentError(Exception):
    """The process did not answer within its timeout."""


class WorkerProcess(ABC):
    """A process that runs tasks, one at a time: ``python -m MODULE ARGUMENTS``, which calls `serve`.

    A crash, a hang or a lack of memory ends the process and fails that task; the next task gets a new process. Close
    it, or use ``with``.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        timeout: float,
        start_timeout: float | None = None,
        threads: int = 1,
    ) -> None:
        self.timeout = timeout
        """Timeout in seconds for a message of the process during a task."""
        self._start_timeout = timeout if start_timeout is None else start_timeout
        # The worker uses this program's module path, and never the current folder (-P).
        self._command = [sys.executable, "-P", "-m", module, *arguments]
        self._threads = str(threads)
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def describe(self, path: str, failure: WorkerFailure) -> MomentseekError:
        """Return the error to raise for a failed task on a file."""

    @property
    def alive(self) -> bool:
        """Whether the process is running and can take a task."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process unless it is running; it gets ready in the background."""
        if self.alive:
            return
        self.close()
        paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
        own = {"PYTHONPATH": paths, "OMP_NUM_THREADS": self._threads, "OPENBLAS_NUM_THREADS": self._threads}
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                self._command, bufsize=0, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env={**os.environ, **own}
            )
        except OSError as e:
            raise self.describe("", WorkerFailure("unready", str(e.strerror))) from None
        self._ready = False
        _widen(self._replies.fileno())

    def run(self, task: str, path: str, settings: dict[str, Any]) -> Generator[Message]:
        """Run a task on a file; yield its results (``item``) and finally its ``end``.

        Closing the generator before its end ends the process.
        """
        self.start()
        self._get_ready(path)
        whole = False
        try:
            send_message(self._requests, Message(task, settings))
            while True:
                message = receive_message(self._replies, lambda: self._wait(self.timeout))
                text, error = (str(message.content.get(name)) for name in ("text", "type"))
                whole = message.kind in ("end", "refused", "odd")
                match message.kind:
                    case "item":
                        yield message
                    case "end":
                        yield message
                        return
                    case "refused":
                        raise self.describe(path, WorkerFailure("refused", text, error))
                    case "odd":
                        raise self.describe(path, WorkerFailure("odd", text))
                    case "memory":
                        raise self.describe(path, WorkerFailure("memory"))
        except _SilentError:
            raise self.describe(path, WorkerFailure("silent")) from None
        except WireError:
            raise self.describe(path, WorkerFailure("ended", code=self.close())) from None
        finally:
            if not whole:  # abandoned midway, or out of memory, which may be fragmented now
                self.kill()

    def close(self) -> int:
        """Close the pipes, so that the process ends by itself; return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        return process.returncode

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def forget(self) -> None:
        """Forget a process that belongs to the parent from which this one was forked."""
        if self._process is not None:
            self._requests.close()
            self._replies.close()
            self._process.returncode = 0  # it is not this process's child
            self._process = None

    @property
    def _requests(self) -> RawIOBase:
        assert self._process is not None
        return cast("RawIOBase", self._process.stdin)

    @property
    def _replies(self) -> RawIOBase:
        assert self._process is not None
        return cast("RawIOBase", self._process.stdout)

    def _get_ready(self, path: str) -> None:
        """Wait until the process has started, before its first task."""
        if self._ready:
            return
        try:
            first = receive_message(self._replies, lambda: self._wait(self._start_timeout))
        except _SilentError:
            self.kill()
            raise self.describe(path, WorkerFailure("unready", "it does not answer")) from None
        except WireError:
            raise self.describe(path, WorkerFailure("unready", f"it ended with {self.close()}")) from None
        if first.kind == "broken":
            self.close()
            raise self.describe(path, WorkerFailure("broken", str(first.content.get("text"))))
        self._ready = True

    def _wait(self, seconds: float) -> None:
        if sys.platform == "win32":  # where pipes cannot be polled
            return
        poll = select.poll()
        poll.register(self._replies.fileno(), select.POLLIN)
        if not poll.poll(seconds * 1000):
            raise _SilentError


def _widen(pipe: int) -> None:
    """Enlarge a pipe to hold some frames, so that a worker does not wait for the reader."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # the user has many pipes; a small one works too
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


# The worker's side.


Task = Callable[..., Iterator[Message]]
"""A function that yields replies of the kind ``item`` and finally one ``end``."""


def serve(load: Callable[[Callable[[], None]], Mapping[str, Task]]) -> None:
    """Run the tasks requested on standard input until it closes: the main function of a worker process.

    ``load`` sets this process's limits and returns its tasks by name. Its argument is a heartbeat function, which tasks
    with long pauses between replies call to show that they are alive.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes this process
    requests, replies = _private_pipes()
    inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(requests, inbox), daemon=True).start()
    try:
        tasks = load(_Heartbeat(replies).beat)
    except Exception as e:
        text = str(e) if isinstance(e, MomentseekError) else f"cannot be loaded ({e})"
        with suppress(WireError):
            send_message(replies, Message("broken", {"text": text}))
        return
    with suppress(WireError):
        send_message(replies, Message("ready"))
        while _do(inbox.get(), tasks, replies):
            pass


def _do(request: Message, tasks: Mapping[str, Task], replies: RawIOBase) -> bool:
    """Run one task; return False if this process should end after it."""
    try:
        for reply in tasks[request.kind](**request.content):
            send_message(replies, reply)
    except WireError:
        return False
    except MomentseekError as e:
        send_message(replies, Message("refused", {"type": type(e).__name__, "text": str(e)}))
    except MemoryError:
        send_message(replies, Message("memory"))
        return False  # memory may be fragmented now
    except Exception as e:  # any failure on a hostile file costs only that file
        send_message(replies, Message("odd", {"text": f"{type(e).__name__}: {e}"}))
    return True


def _hear(requests: RawIOBase, inbox: queue.SimpleQueue[Message]) -> None:
    """Read requests in a thread, which notices during a task that the parent has ended."""
    while True:
        try:
            inbox.put(receive_message(requests))
        except WireError:
            os._exit(0)  # the main thread may be in a decoder that never returns


def _private_pipes() -> tuple[RawIOBase, RawIOBase]:
    """Return the two pipes, hidden from libraries that print."""
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return open(requests, "rb", buffering=0), open(replies, "wb", buffering=0)


class _Heartbeat:
    """Sends heartbeats, not more often than needed."""

    def __init__(self, replies: RawIOBase) -> None:
        self.replies = replies
        self.due = 0.0

    def beat(self) -> None:
        now = time.monotonic()
        if now >= self.due:
            self.due = now + SECONDS_BETWEEN_BEATS
            send_message(self.replies, Message("beat"))


def limit_memory(address_bytes: int | None, data_bytes: int | None = None) -> None:
    """Limit this process's address space and data, and disable core files, if the system supports it."""
    if sys.platform == "win32":
        return
    import resource

    limits = {resource.RLIMIT_AS: address_bytes, resource.RLIMIT_DATA: data_bytes, resource.RLIMIT_CORE: 0}
    for kind, limit in limits.items():
        if limit is not None:
            with suppress(OSError, ValueError):
                _, hard = resource.getrlimit(kind)
                allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (allowed, hard))


# Jobs: one file after another, with a model that takes long to load.


@dataclass(frozen=True)
class JobWords:
    """Phrases for error messages about a process and its work."""

    worker: str
    """What runs in it, such as ``the transcriber``."""
    thing: str
    """The part of a file it processes, such as ``its sound``."""
    undone: str
    """Its failure, such as ``cannot be processed``."""


class JobProcess(WorkerProcess):
    """Heavy work on files in a separate process, one file at a time, in parts that are JSON values."""

    def __init__(
        self, module: str, arguments: Sequence[str], words: JobWords, *, threads: int = 1, timeout: float = 600.0
    ) -> None:
        super().__init__(module, arguments, timeout=timeout, threads=threads)
        self.words = words

    def ask(self, path: str, **settings: Any) -> Iterator[dict[str, Any]]:
        """Process a file and yield its parts; raise MediaError if that fails."""
        with closing(self.run("file", path, {"path": path, **settings})) as messages:
            for message in messages:
                if message.kind == "item":
                    yield message.content

    def describe(self, path: str, failure: WorkerFailure) -> MomentseekError:
        """Return a one-sentence error about a file that failed, or about a process that does not work."""
        worker, thing, undone = self.words.worker, self.words.thing, self.words.undone
        match failure.kind:
            case "unready":
                return MomentseekError(f"{worker} cannot be started ({failure.text})")
            case "broken":
                return MomentseekError(f"{worker}: {failure.text}")
            case "refused":
                return MediaError(f"{path}: {failure.text.removeprefix(f'{path}: ')}")
            case "odd":
                return MediaError(f"{path}: {thing} {undone} ({failure.text})")
            case "memory":
                return MediaError(f"{path}: {thing} {undone} with the memory that there is")
            case "silent":
                return MediaError(f"{path}: {thing} {undone} within {self.timeout:.0f} seconds a part")
            case "ended":
                return MediaError(f"{path}: {worker} stops at {thing} (it ended with {failure.code}); convert it")


def serve_jobs(load: Callable[[], Callable[..., Iterator[dict[str, Any]]]], address_bytes: int) -> None:
    """Process the requested files until standard input closes, within ``address_bytes`` of address space.

    ``load`` returns a function that processes a file, given its ``path`` and settings, and yields its parts.
    """

    def prepare(_: Callable[[], None]) -> Mapping[str, Task]:
        limit_memory(address_bytes)
        with suppress(OSError, AttributeError):
            os.nice(5)  # decoding and searches have priority
        work = load()

        def do_file(**settings: Any) -> Iterator[Message]:
            for part in work(**settings):
                yield Message("item", part)
            yield Message("end")

        return {"file": do_file}

    serve(prepare)


# Threads.


@dataclass(frozen=True)
class _Error:
    error: BaseException


class _End:
    pass


class BackgroundIterator(Iterator[T], Generic[T]):
    """Iterates over all ``sources``, with a thread for each, together up to ``depth`` items ahead of the consumer.

    The items of one source stay in order, and so does an exception that it raises. ``close()`` (also by ``with``, or by
    dropping the object) ends the threads and closes the sources in them; so does exhausting it.

    >>> with BackgroundIterator(iter("abc"), depth=2) as letters:
    ...     "".join(letters)
    'abc'
    """

    def __init__(self, *sources: Iterable[T], depth: int = 32, name: str = "background") -> None:
        self._queue: queue.Queue[T | _Error | _End] = queue.Queue(max(1, depth))
        self._stop = threading.Event()
        self._open = len(sources)
        self._failure: BaseException | None = None
        # The threads must not hold this object, or dropping it would never end them.
        self._threads = [
            threading.Thread(target=_produce, args=(source, self._queue, self._stop), name=name, daemon=True)
            for source in sources
        ]
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> BackgroundIterator[T]:
        return self

    def __next__(self) -> T:
        while self._open and not self._stop.is_set():
            item = self._queue.get()
            if isinstance(item, _Error):
                self.close()
                raise item.error
            if not isinstance(item, _End):
                return item
            self._open -= 1
        self.close()
        raise StopIteration

    def take(self, wait: float = 0.0) -> list[T]:
        """Return the items that are ready; if there are none, wait up to ``wait`` seconds for the first.

        >>> with BackgroundIterator(iter("ab")) as letters:
        ...     letters.take(wait=5.0)[0]
        'a'
        """
        found: list[T] = []
        with suppress(queue.Empty):
            while self._open and self._failure is None:
                item = self._queue.get(timeout=wait) if wait and not found else self._queue.get_nowait()
                if isinstance(item, _Error):
                    self._failure = item.error
                elif isinstance(item, _End):
                    self._open -= 1
                else:
                    found.append(item)
        if self._failure is not None and not found:
            self.close()
            raise self._failure
        return found

    def close(self) -> None:
        """End the threads and wait for them; no more items are yielded."""
        self._stop.set()
        for thread in self._threads:
            while thread.is_alive():
                try:
                    self._queue.get(timeout=0.01)  # make room for a waiting producer
                except queue.Empty:
                    thread.join(0.01)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._stop.set()


def _produce(items: Iterable[T], out: queue.Queue[T | _Error | _End], stop: threading.Event) -> None:
    last: _Error | _End = _End()
    iterator = None
    try:
        iterator = iter(items)
        for item in iterator:
            if not _put(out, item, stop):
                break
    except BaseException as e:
        last = _Error(e)
    finally:
        if (close := getattr(iterator, "close", None)) is not None and stop.is_set():
            close()
    _put(out, last, stop)


def _put(out: queue.Queue[T | _Error | _End], item: T | _Error | _End, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            out.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False
