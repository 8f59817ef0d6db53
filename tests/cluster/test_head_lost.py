"""The cluster's head is killed: the process that asks lives on, says so, and joins the cluster again."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from small_library import fill, nothing
from tests.cluster.test_token import head

from momentseek.api.library import Library
from momentseek.cluster import connection, ray_process, tasks
from momentseek.cluster.connection import check_address
from momentseek.cluster.ray_process import ClusterLostError, ClusterShards, RayProcess, follow
from momentseek.cluster.shard_client import ShardAnswers
from momentseek.cluster.shards.making import make_shards, split_library
from momentseek.cluster.tasks import ClusterTask, TaskStep, run_tasks_on
from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.media.subtitles.cues import Cue


def name_head(connection: Connection, address: str) -> None:
    connection.send(("head", None, address))
    connection.send(("event", None, "begun"))
    time.sleep(600)


def wait_for_ever(connection: Connection) -> None:
    time.sleep(600)


def die(connection: Connection) -> None:
    connection.send(("event", None, "begun"))
    os.kill(os.getpid(), signal.SIGKILL)


def fail(connection: Connection) -> None:
    raise ValueError("a fault\nin two lines")


def stop_at_first(connection: Connection, address: str, library: Path, replicas: int, seconds: float) -> None:
    """Answer every question, but stop (as a process that hangs) at the first one of all."""
    connection.send(("ready", None, None))
    while True:
        number, _, _ = connection.recv()
        if not (library / "stopped").exists():
            (library / "stopped").touch()
            os.kill(os.getpid(), signal.SIGSTOP)
        connection.send(("value", number, ShardAnswers()))


@contextmanager
def greeting_head(stopped: bool = False) -> Iterator[socket.socket]:
    """A head that greets, as gRPC does; a stopped one is connected to and says nothing."""
    server = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                connection.sendall(bytes(9))
                connection.close()

    thread = threading.Thread(target=greet)
    if not stopped:
        thread.start()
    with server:
        yield server
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        if not stopped:
            thread.join()


@pytest.mark.parametrize("stopped", [False, True], ids=["gone", "stopped"])
def test_a_head_that_does_not_answer_ends_a_long_work(monkeypatch: pytest.MonkeyPatch, stopped: bool) -> None:
    monkeypatch.setattr(ray_process, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(ray_process, "PROBE_SECONDS", 0.2)
    with greeting_head(stopped) as found:
        process = RayProcess(name_head, f"127.0.0.1:{found.getsockname()[1]}")
        events = follow(process)
        assert next(events) == ("event", "begun")
        assert process.head_answers() == (not stopped)
        if not stopped:
            found.shutdown(socket.SHUT_RDWR)
            found.close()
        with pytest.raises(ClusterLostError, match="head does not answer"):
            next(events)
        process.end(0.0)


def test_a_stopped_head_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    with greeting_head() as found:
        check_address(f"127.0.0.1:{found.getsockname()[1]}")
    with (
        greeting_head(stopped=True) as found,
        pytest.raises(MomentseekError, match="no Ray cluster answers there"),
    ):
        check_address(f"127.0.0.1:{found.getsockname()[1]}")


def test_a_cluster_that_cannot_be_joined_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_process, "JOIN_SECONDS", 0.5)
    monkeypatch.setattr(ray_process, "PROBE_SECONDS", 0.1)
    process = RayProcess(wait_for_ever)
    with pytest.raises(ClusterLostError, match="could not be joined within 0 s"):
        next(follow(process))
    process.end(0.0)


def test_a_process_that_dies_is_one_sentence() -> None:
    process = RayProcess(die)
    events = follow(process)
    assert next(events) == ("event", "begun")
    with pytest.raises(ClusterLostError, match="has ended"):
        next(events)
    process.end(0.0)


def test_a_process_that_hangs_is_given_up_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever, even where questions no longer fit into the pipe to it."""
    monkeypatch.setattr(ray_process, "serve_shards", stop_at_first)
    monkeypatch.setattr(ray_process, "LATE_SECONDS", 0.5)
    monkeypatch.setattr(ray_process, "AGAIN_SECONDS", (0.1, 0.1))
    make_shards(tmp_path / "lib", 2)
    shards = ClusterShards("auto", tmp_path / "lib", seconds=0.5)
    question = {0: {"text": "a" * 1_000_000}}
    said: list[str] = []

    def ask() -> None:
        try:
            shards.ask("count", question)
            said.append("answered")
        except LibraryError as e:
            said.append(str(e))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(said) == 4
    assert all("cannot be reached" in text for text in said)
    deadline = time.monotonic() + 60
    while "answered" not in said and time.monotonic() < deadline:
        ask()
        time.sleep(0.2)
    assert said[-1] == "answered"
    shards.close()


def test_tasks_that_lose_their_cluster_say_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(address: str, work: object, tasks: list[ClusterTask]) -> Iterator[tuple[str, object]]:
        yield "event", TaskStep(1, 3, 0, 2, 2, None)
        yield "event", (1, "a value")
        raise ClusterLostError("the cluster's head does not answer")

    monkeypatch.setattr(tasks, "work_on", lose)
    steps: list[TaskStep] = []
    running = run_tasks_on("auto", [ClusterTask(str(n), print) for n in range(3)], progress=steps.append)
    assert next(running) == (1, "a value")
    with pytest.raises(MomentseekError, match=r"auto: the cluster was lost .*; 1 of 3 tasks were done, and what they"):
        next(running)
    assert len(steps) == 1


def test_what_fails_there_is_said_here() -> None:
    process = RayProcess(fail)
    with pytest.raises(MomentseekError, match=r"the work on the cluster failed .ValueError: a fault in two lines."):
        next(follow(process))
    process.end(0.0)


def gcs_of(port: int) -> int:
    """The process of the head's control service at a port."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"gcs_server") and any(word.endswith(f"={port}".encode()) for word in words):
                return int(entry.name)
    raise AssertionError("no head")


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_searches_say_so_and_go_on_when_the_head_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    films = {f"film{i}.mp4": nothing(3 + i, i) for i in range(4)}
    fill(tmp_path / "one", films, {"film3.mp4": [Cue(0.0, 1.0, "hello")]}).close()
    split_library(tmp_path / "one", tmp_path / "lib", 2)
    for name, value in {
        "RAY_AUTH_MODE": "disabled", "MOMENTSEEK_INSECURE_CLUSTER": "1", "RAY_gcs_rpc_server_reconnect_timeout_s": "4",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    port = 26400 + os.getpid() % 100
    answers: list[str] = []
    said: list[str] = []

    def search(library: Library) -> str:
        try:
            found = library.search("hello", streams=["speech"])
            return "whole" if found.complete and [hit.name for hit in found] == ["film3.mp4"] else "partial"
        except LibraryError as e:
            said.append(str(e))
            return "away" if "cannot be reached" in str(e) else "none"

    def until(library: Library, wanted: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answers.append(search(library))
            if answers[-1] == wanted:
                return
            time.sleep(0.5)
        raise AssertionError(answers)

    with head(tmp_path, port):
        for _ in range(30):
            try:
                shards = ClusterShards(f"127.0.0.1:{port}", tmp_path / "lib", seconds=3.0)
                break
            except MomentseekError as e:
                said.append(str(e))
        with Library.open(tmp_path / "lib", shard_client=shards) as library:
            until(library, "whole", 60)
            os.kill(gcs_of(port), signal.SIGKILL)
            until(library, "away", 120)
            assert [one.answering for one in shards.status()] == [0, 0]
    with head(tmp_path, port):
        with Library.open(tmp_path / "lib", shard_client=shards) as library:
            until(library, "whole", 180)
        shards.close()
    assert not [text for text in said if "Error" in text]
