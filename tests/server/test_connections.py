"""Clients that only take up room, on real sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from momentseek.server import process as connections
from momentseek.server.app import create_app
from momentseek.server.process import TimedConnection
from momentseek.server.settings import Limits, ServerSettings

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def _answers(scope: Any, receive: Any, send: Any) -> None:
    """``/long`` has no end until the client is gone; anything else is a word."""
    long = scope["path"] == "/long"
    length = b"100000000000" if long else b"2"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    if not long:
        await send({"type": "http.response.body", "body": b"ok"})
        return
    gone = asyncio.create_task(_gone(receive))
    while not gone.done():
        await send({"type": "http.response.body", "body": bytes(1 << 18), "more_body": True})
        await asyncio.sleep(0)


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _with(client: Callable[[uvicorn.Server, int], Any], app: Any = _answers) -> None:
    """Run a server and a client of it in a thread; the server stops when the client returns."""
    lifespan: Any = "off" if app is _answers else "on"

    async def work() -> None:
        config = uvicorn.Config(
            app, http=TimedConnection, lifespan=lifespan, log_config=None, timeout_graceful_shutdown=30
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:
                await asyncio.sleep(0.01)
            try:
                await asyncio.to_thread(client, server, port)
            finally:
                server.should_exit = True
                await serving
        assert not server.server_state.tasks

    asyncio.run(work())


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def _ended(one: socket.socket) -> bool:
    """Reads until the end, which must come before the socket's own timeout."""
    try:
        while one.recv(1 << 20):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize("begun", [b"", b"GET", ASK, ASK + b"X-Long: " + b"x" * 1000])
def test_headers_that_never_come_whole(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)

    def client(_: uvicorn.Server, port: int) -> None:
        with _connected(port) as one:
            one.sendall(begun)
            assert _ended(one)

    _with(client)


def test_the_second_request_of_a_connection_is_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 2.0)

    def client(_: uvicorn.Server, port: int) -> None:
        with _connected(port) as one:
            one.sendall(ASK + b"\r\n")
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
            one.sendall(ASK)
            assert _ended(one)

    _with(client)


def test_who_reads_is_served_beyond_the_time_for_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)

    def client(server: uvicorn.Server, port: int) -> None:
        with _connected(port) as one:
            one.sendall(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for _ in range(75):
                assert one.recv(1 << 20)
                time.sleep(0.02)
            assert len(server.server_state.connections) == 1

    _with(client)


def test_a_reader_who_stops_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READER_SECONDS", 0.2)

    def client(server: uvicorn.Server, port: int) -> None:
        with _connected(port) as one:
            one.sendall(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(1 << 10)
            for _ in range(3000):
                if not server.server_state.tasks:
                    break
                time.sleep(0.02)
            assert not server.server_state.connections
            assert not server.server_state.tasks

    _with(client)


@pytest.mark.parametrize("reads", [False, True])
def test_a_stop_does_not_wait_for_films(monkeypatch: pytest.MonkeyPatch, reads: bool) -> None:
    monkeypatch.setattr(connections, "LAST_ANSWER_SECONDS", 0.2)

    def client(server: uvicorn.Server, port: int) -> None:
        with _connected(port) as one:
            one.sendall(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(1 << 16)
            for _ in range(20):
                time.sleep(0.02)
            server.should_exit = True
            if reads:
                assert _ended(one)
            for _ in range(3000):
                if not server.server_state.connections:
                    break
                time.sleep(0.02)
            assert not server.server_state.connections

    _with(client)


def test_a_body_that_never_comes_whole(shared: Path, light: None) -> None:
    app = create_app(shared / "library", ServerSettings(limits=Limits(body_seconds=0.3)))

    def client(_: uvicorn.Server, port: int) -> None:
        with _connected(port) as one, _connected(port) as other:
            one.sendall(b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
            one.sendall(b"Content-Length: 50\r\n\r\n{")
            other.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert other.recv(1 << 16).startswith(b"HTTP/1.1 200")
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 408")
            assert _ended(one)

    _with(client, app)


def test_event_streams_end_oldest_first_and_leave_room_for_others(shared: Path, light: None) -> None:
    """One client asks for thirty streams and keeps all of them: it has the newest eight, and the rest goes on."""
    app = create_app(shared / "library", ServerSettings(limits=Limits(event_streams_per_client=8)))

    def client(_: uvicorn.Server, port: int) -> None:
        streams = [_connected(port) for _ in range(30)]
        for one in streams:
            one.sendall(b"GET /api/v1/jobs/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        for one in streams[:22]:
            data = b""
            while piece := one.recv(1 << 16):
                data += piece
            assert b"retry: 60000" in data
        with _connected(port) as other:
            other.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert other.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert len(app.state.service.event_streams) == 8
        for one in streams:
            one.close()

    _with(client, app)


def test_a_client_with_too_many_connections_loses_the_oldest_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS_PER_CLIENT", 5)

    def client(server: uvicorn.Server, port: int) -> None:
        busy = _connected(port)
        busy.sendall(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert busy.recv(1 << 10)
        waiting = []
        for n in range(20):
            waiting.append(_connected(port))
            waiting[-1].sendall(ASK)
            for _ in range(3000):
                if len(server.server_state.connections) == min(n + 2, 5):
                    break
                time.sleep(0.01)
        assert all(_ended(one) for one in waiting[:16])
        assert busy.recv(1 << 10)
        with _connected(port) as one:
            one.sendall(ASK + b"\r\n")
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        for one in (busy, *waiting):
            one.close()

    _with(client)


@pytest.mark.parametrize("body", [b"zz\r\n", b"5\r\nab", b"5\r\nabcdefgh\r\n0\r\n\r\n", b"-1\r\n", b"f" * 40 + b"\r\n"])
@pytest.mark.parametrize("kind", [b"application/json", b"text/plain"])  # the other is refused before its body is read
@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_a_malformed_chunked_body_leaves_no_traceback(
    body: bytes, kind: bytes, pause: float, monkeypatch: pytest.MonkeyPatch, shared: Path, light: None
) -> None:
    written: list[logging.LogRecord] = []
    monkeypatch.setattr(logging.Logger, "handle", lambda _, record: written.append(record))

    def client(_: uvicorn.Server, port: int) -> None:
        with _connected(port) as one:
            one.sendall(
                b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " + kind + b"\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            time.sleep(pause)
            one.sendall(body)
            one.shutdown(socket.SHUT_WR)
            assert _ended(one)
        with _connected(port) as other:
            other.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200")

    _with(client, create_app(shared / "library", ServerSettings()))
    assert [record.getMessage() for record in written if record.exc_info or record.levelno >= logging.ERROR] == []
