"""Work in another process (JobProcess) and on a background thread (ReadAhead).

A job is an object with a ``path``; the process answers ``{"part": …}`` after each part of the work, then
``{"end": true}`` or ``{"failed": "one sentence"}``. A crash, a hang or a file that needs too much memory ends that
process and fails that file; the next job gets a new process. :func:`serve_jobs` is the other end: it ends when its
standard input does, whatever it is doing.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, Self, TypeVar

from momentseek.core.errors import MediaError, MomentseekError

Job = dict[str, Any]
Work = Callable[[Job], Iterator[Any]]
"""Does a job; yields its parts as values for JSON."""


@dataclass(frozen=True)
class JobWords:
    """How to speak of a process and of what it does."""

    worker: str
    """What runs in it, as ``the recogniser``."""
    thing: str
    """What of a file it looks at, as ``its sound``."""
    undone: str
    """That it could not, as ``cannot be heard``."""


class JobProcess:
    """A process that runs beside everything else; close it, or leave its ``with``."""

    def __init__(
        self, module: str, arguments: Sequence[str], words: JobWords, *, threads: int = 1, patience: float = 600.0
    ) -> None:
        self.words, self.patience = words, patience
        self._command = [sys.executable, "-P", "-m", module, *arguments]
        self._threads = threads
        self._process: subprocess.Popen[str] | None = None
        self._answers: SimpleQueue[str | None] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, job: Job) -> Iterator[Any]:
        """Have a job done, part by part; MediaError if its file cannot be."""
        process = self._start()
        path = job["path"]
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
        except OSError:
            self.close()
            raise MediaError(f"{path}: {self.words.worker} stopped before it; add it again") from None
        while True:
            answer = self._next_answer(path)
            if "end" in answer:
                return
            if "failed" in answer:
                raise MediaError(f"{path}: {str(answer['failed']).removeprefix(f'{path}: ')}")
            yield answer["part"]

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
        # the process finds modules where this program does, and never in the folder in which it happens to run (-P)
        paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": str(self._threads)}
        # a session of its own: Ctrl-C is for the parent, which ends it in good order
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True, env=environment,
        )  # fmt: skip
        threading.Thread(target=_read_answers, args=(self._process, self._answers), daemon=True).start()
        first = self._next_answer(None)
        if "broken" in first:
            self.close()
            raise MomentseekError(f"{self.words.worker}: {first['broken']}")
        return self._process

    def _next_answer(self, path: Path | None) -> dict[str, Any]:
        words = self.words
        try:
            line = self._answers.get(timeout=self.patience)
        except Empty:
            self.close()
            raise MediaError(
                f"{path}: {words.thing} {words.undone} within {self.patience:.0f} seconds a part"
            ) from None
        if line is None:
            code = self._process.wait() if self._process is not None else 0
            self.close()
            if path is None:
                raise MomentseekError(f"{words.worker} cannot be started (it ended with {code})")
            raise MediaError(f"{path}: {words.worker} stops at {words.thing} (it ended with {code}); convert it")
        found: dict[str, Any] = json.loads(line)
        return found


def _read_answers(process: subprocess.Popen[str], answers: SimpleQueue[str | None]) -> None:
    with suppress(OSError, ValueError):
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(line)
    answers.put(None)


# the process itself


def serve_jobs(load: Callable[[], Work], words: JobWords, memory_bytes: int) -> None:
    """Do the jobs that come on standard input until it ends, by what ``load`` returns, within so much address space."""
    _limit_memory(memory_bytes)
    with suppress(OSError, AttributeError):
        os.nice(5)  # pictures and searches come first
    jobs: SimpleQueue[Job] = SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    try:
        work = load()
    except Exception as e:
        _answer({"broken": str(e) if isinstance(e, MomentseekError) else f"cannot be loaded ({e})"})
        return
    _answer({"ready": True})
    while True:
        _do_job(work, jobs.get(), words)


def _do_job(work: Work, job: Job, words: JobWords) -> None:
    try:
        for part in work(job):
            _answer({"part": part})
    except MomentseekError as e:
        _answer({"failed": str(e)})
    except MemoryError:
        _answer({"failed": f"{words.thing} {words.undone} with the memory that there is"})
    except Exception as e:  # whatever a decoder or a model makes of a hostile file costs that file alone
        _answer({"failed": f"{words.thing} {words.undone} ({type(e).__name__}: {e})"})
    else:
        _answer({"end": True})


def _read_jobs(jobs: SimpleQueue[Job]) -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    os._exit(0)


def _answer(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def _limit_memory(most: int) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))


T = TypeVar("T")


@dataclass(frozen=True)
class _Error:
    error: BaseException


class _End:
    pass


class ReadAhead(Iterator[T], Generic[T]):
    """Iterates over the items of all ``sources``, each of which a thread makes, together up to ``depth`` ahead, so that
    their consumer need not wait. The items of one source stay in order.

    An exception of a source reaches the consumer at its place in that order. ``close()`` (also by ``with``, or by
    dropping the object) ends the threads and closes the sources in them; so does exhausting it.

    >>> with ReadAhead(iter("abc"), depth=2) as letters:
    ...     "".join(letters)
    'abc'
    """

    def __init__(self, *sources: Iterable[T], depth: int = 32) -> None:
        self._queue: queue.Queue[T | _Error | _End] = queue.Queue(max(1, depth))
        self._stop = threading.Event()
        self._open = len(sources)
        # The threads must not hold this object, or dropping it would never end them.
        self._threads = [
            threading.Thread(target=_produce, args=(source, self._queue, self._stop), name="read-ahead", daemon=True)
            for source in sources
        ]
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> ReadAhead[T]:
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

    def close(self) -> None:
        """End the threads and wait for them; nothing more is yielded."""
        self._stop.set()
        for thread in self._threads:
            while thread.is_alive():
                try:
                    self._queue.get(timeout=0.01)  # make room for a producer that waits for some
                except queue.Empty:
                    thread.join(0.01)

    def __enter__(self) -> ReadAhead[T]:
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
