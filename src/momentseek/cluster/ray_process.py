"""Work with a Ray cluster in a separate process, because Ray ends its process if the cluster's head is lost.

The main process continues: a search reports that the cluster cannot be reached, and the cluster is joined again as soon
as possible; an ``add`` ends with a message.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from momentseek.cluster.connection import Cluster, join_cluster, speaks_grpc
from momentseek.cluster.manifest import read_manifest
from momentseek.cluster.replicas.replica import refuse_unsharded
from momentseek.cluster.searching import ANSWER_SECONDS, START_SECONDS, RayShards
from momentseek.cluster.shard_client import ShardAnswers, ShardClient, ShardStatus
from momentseek.core.errors import (
    LibraryBusyError,
    LibraryError,
    MediaError,
    MomentseekError,
    ParameterStyle,
    parameter_style,
    write_parameters,
)

HEAD_SECONDS = 10.0
"""How long the cluster's head may be silent before long work is given up."""
PROBE_SECONDS = 2.0
LEAVE_SECONDS = 10.0
"""How long leaving the cluster may take after the work is done."""
JOIN_SECONDS = 60.0 + START_SECONDS
"""How long joining a cluster and opening a library's shards on it may take."""
LATE_SECONDS = 10.0
"""Additional time for an answer of the process, on top of the time for the shards."""
AGAIN_SECONDS = (2.0, 30.0)
"""Seconds between two attempts to join a cluster again: first and longest pause."""
CALLS_AT_ONCE = 32
ERRORS: dict[str, type[MomentseekError]] = {
    kind.__name__: kind for kind in (MomentseekError, LibraryError, LibraryBusyError, MediaError)
}


class ClusterLostError(LibraryBusyError):
    """The cluster no longer answers."""


class RayProcess:
    """A process that works with a cluster; it sends messages ``(kind, number, content)``."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, parameter_style(), work, *arguments), daemon=True)
        self._process.start()
        theirs.close()
        self.head: str | None = None
        self.outbox: SimpleQueue[Any] = SimpleQueue()
        """Messages for ``send_all``; None ends it."""

    def receive(self, seconds: float) -> tuple[str, Any, Any] | None:
        """The next message; None if none came in time. Raises ClusterLostError once the process has ended."""
        try:
            if not self.connection.poll(seconds):
                return None
            kind, number, content = self.connection.recv()
        except (EOFError, OSError):
            raise ClusterLostError("the process that works with the cluster has ended") from None
        if kind == "head":
            self.head = content
        return kind, number, content

    def send_all(self) -> None:
        """Send the messages of the outbox; runs in a thread, because sending to a process that hangs blocks."""
        with suppress(OSError, TypeError):  # it has ended; a connection that was closed meanwhile raises a TypeError
            while (message := self.outbox.get()) is not None:
                self.connection.send(message)

    def head_answers(self) -> bool:
        """Whether the cluster's head answers; true if its address is not known."""
        return self.head is None or speaks_grpc(*split_head(self.head), PROBE_SECONDS)

    def interrupt(self) -> None:
        """Send Ctrl-C to the process."""
        with suppress(ProcessLookupError, TypeError):
            os.kill(self._process.pid, signal.SIGINT)  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended by itself."""
        self._process.join(seconds)

    def kill(self) -> None:
        """End a process that hangs."""
        self._process.kill()

    def end(self, seconds: float = 5.0) -> None:
        """Wait for the process to end, and kill it if it does not."""
        self.outbox.put(None)
        with suppress(OSError):
            self.connection.close()
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()


def _run(connection: Connection, style: ParameterStyle, work: Callable[..., None], *arguments: Any) -> None:
    """The main function of the process."""
    write_parameters(style)
    with suppress(OSError, AttributeError):
        os.setpgrp()  # Ctrl-C on the terminal goes to the main process, which forwards it
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # hides what Ray writes when it ends a process; errors are sent as messages
    try:
        work(connection, *arguments)
    except MomentseekError as e:
        error = type(e).__name__, str(e)
    except Exception as e:
        error = "", f"the work on the cluster failed ({type(e).__name__}: {' '.join(str(e).split())[:300]})"
    else:
        return
    with suppress(OSError):
        connection.send(("error", None, error))


def tell_head(connection: Connection, cluster: Cluster, address: str) -> None:
    """Send the address of the cluster's head, so that it can be monitored."""
    gcs = None if "://" in address else cluster.ray.get_runtime_context().gcs_address
    connection.send(("head", None, gcs or address.rpartition("/")[2]))


def split_head(address: str) -> tuple[str, int]:
    """The host and the port of a head's address."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def error_of(content: tuple[str, str]) -> MomentseekError:
    """The error that the process has reported."""
    return ERRORS.get(content[0], MomentseekError)(content[1])


class ClusterShards(ShardClient):
    """Searches a library's shards on a cluster through a separate process, which is started again if it ends."""

    def __init__(self, address: str, library: Path, *, replicas: int = 1, seconds: float = ANSWER_SECONDS) -> None:
        self._address, self._library, self._replicas, self._seconds = address, library, replicas, seconds
        self.names = read_manifest(library).shards
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._numbers = itertools.count()
        self._closed = threading.Event()
        self._heard = 0.0
        """When the process last sent anything."""
        self._process: RayProcess | None = self._join()

    def _join(self) -> RayProcess:
        process = RayProcess(serve_shards, self._address, self._library, self._replicas, self._seconds)
        deadline = time.monotonic() + JOIN_SECONDS
        try:
            while True:
                found = process.receive(max(0.0, deadline - time.monotonic()))
                if found is None:
                    raise LibraryError(f"{self._address}: the shards were not open after {JOIN_SECONDS:.0f} s")
                if found[0] == "error":
                    raise error_of(found[2])
                if found[0] == "ready":
                    break
        except BaseException:
            process.end(0.0)
            raise
        threading.Thread(target=self._read, args=(process,), daemon=True, name="cluster-answers").start()
        threading.Thread(target=process.send_all, daemon=True, name="cluster-questions").start()
        return process

    def _read(self, process: RayProcess) -> None:
        """Deliver answers until the process is lost; then join the cluster again."""
        try:
            while True:
                found = process.receive(3600.0)
                self._heard = time.monotonic()
                waiting = None if found is None else self._waiting.pop(found[1], None)
                if found is not None and waiting is not None:
                    kind, _, content = found
                    waiting.set_exception(error_of(content)) if kind == "error" else waiting.set_result(content)
        except ClusterLostError:
            self._lose(process)
        pause = AGAIN_SECONDS[0]
        while not self._closed.wait(pause):
            try:
                fresh = self._join()
            except MomentseekError:
                pause = min(2 * pause, AGAIN_SECONDS[1])
                continue
            with self._lock:
                self._process = fresh
            if self._closed.is_set():
                fresh.end()
            return

    def _lose(self, process: RayProcess) -> None:
        with self._lock:
            if self._process is process:
                self._process = None
            waiting, self._waiting = list(self._waiting.values()), {}
        process.end(0.0)
        for one in waiting:
            with suppress(Exception):  # one that was answered just now
                one.set_exception(self._unreachable())

    def _unreachable(self) -> ClusterLostError:
        return ClusterLostError(f"the cluster at {self._address} cannot be reached; it is joined again once it answers")

    def _call(self, method: str, *arguments: Any) -> Any:
        number, answer, begun = next(self._numbers), Future[Any](), time.monotonic()
        with self._lock:
            process = self._process
            if process is None:
                raise self._unreachable()
            self._waiting[number] = answer
        process.outbox.put((number, method, arguments))
        try:
            return answer.result(self._seconds + LATE_SECONDS)
        except TimeoutError:
            self._waiting.pop(number, None)
            if self._heard < begun:  # nobody was answered: it hangs
                process.kill()
            raise self._unreachable() from None

    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> ShardAnswers:
        """Send a request to some shards; see `RayShards.ask`."""
        found: ShardAnswers = self._call("ask", method, dict(arguments))
        return found

    def status(self) -> list[ShardStatus]:
        """The status of each shard; none answers while the cluster cannot be reached."""
        try:
            found: list[ShardStatus] = self._call("status")
        except ClusterLostError:
            return [ShardStatus(name, self._replicas, 0, (), None) for name in self.names]
        return found

    def close(self) -> None:
        """Leave the cluster."""
        self._closed.set()
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()


def serve_shards(connection: Connection, address: str, library: Path, replicas: int, seconds: float) -> None:
    """Join a cluster, open a library's shards on it, and answer the requests of a connection until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = threading.Lock()
    with join_cluster(address) as cluster:
        tell_head(connection, cluster, address)
        shards = RayShards(cluster, library, replicas=replicas, seconds=seconds)

        def answer(number: int, method: str, arguments: tuple[Any, ...]) -> None:
            try:
                reply = "value", number, getattr(shards, method)(*arguments)
            except Exception as e:  # the caller waits for an answer in any case
                reply = "error", number, (type(e).__name__, str(e))
            with lock, suppress(OSError):
                connection.send(reply)

        try:
            shards.wait()
            connection.send(("ready", None, None))
            with ThreadPoolExecutor(CALLS_AT_ONCE) as pool, suppress(EOFError, OSError):
                while True:
                    pool.submit(answer, *connection.recv())
        finally:
            shards.close()


@contextmanager
def shards_on(address: str | None, library: Path, replicas: int = 1) -> Iterator[ShardClient | None]:
    """Open a client for a library's shards on the cluster at an address; None without an address."""
    if address is None:
        yield None
        return
    refuse_unsharded(library)
    shards = ClusterShards(address, library, replicas=replicas)
    try:
        yield shards
    finally:
        shards.close()


def follow(process: RayProcess) -> Iterator[tuple[str, Any]]:
    """Yield the events of long work, its report last; raises ClusterLostError if the cluster's head is lost."""
    begun = heard = time.monotonic()
    interrupted = False
    while True:
        try:
            found = process.receive(PROBE_SECONDS)
        except KeyboardInterrupt:
            process.interrupt()
            interrupted = True
            continue
        except ClusterLostError:
            if interrupted:  # before it had joined the cluster
                raise KeyboardInterrupt from None
            raise
        now = time.monotonic()
        if found is not None:
            kind, _, content = found
            if kind == "error":
                raise error_of(content)
            if kind == "interrupted":
                raise KeyboardInterrupt
            if kind != "head":
                yield kind, content
            if kind == "report":
                return
        if process.head is None and now - begun > JOIN_SECONDS:
            raise ClusterLostError(f"it could not be joined within {JOIN_SECONDS:.0f} s")
        if process.head_answers():
            heard = now
        elif now - heard > HEAD_SECONDS:
            raise ClusterLostError("the cluster's head does not answer")


def work_on(address: str, work: Callable[..., Any], *arguments: Any) -> Iterator[tuple[str, Any]]:
    """Join the cluster at an address in a separate process and call ``work(cluster, tell, *arguments)`` there.

    Yields ``("event", …)`` for each event that the work reports, and finally ``("report", …)`` with its result. Raises
    ClusterLostError if the cluster is lost, and KeyboardInterrupt after the work has stopped because of Ctrl-C.
    """
    process = RayProcess(_join_and_work, address, work, *arguments)
    try:
        for kind, content in follow(process):
            if kind == "report":
                process.wait(LEAVE_SECONDS)
            yield kind, content
    finally:
        process.end(0.0)


def _join_and_work(connection: Connection, address: str, work: Callable[..., Any], *arguments: Any) -> None:
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    with join_cluster(address) as cluster:
        tell_head(connection, cluster, address)
        try:
            report = work(cluster, lambda event: connection.send(("event", None, event)), *arguments)
        except KeyboardInterrupt:
            connection.send(("interrupted", None, None))
        else:
            connection.send(("report", None, report))


def _end_with(connection: Connection) -> None:
    """Stop the work when the main process has ended."""
    with suppress(EOFError, OSError):
        connection.recv()
    os.kill(os.getpid(), signal.SIGINT)
