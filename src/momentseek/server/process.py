"""Run the application: the socket, connections with time limits, printed addresses, and an orderly shutdown."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from momentseek.api.library import Library
from momentseek.cluster.shard_client import ShardClient
from momentseek.core.errors import MomentseekError, parameter
from momentseek.library.location import library_name
from momentseek.server.app import create_app
from momentseek.server.security.sessions import client_name
from momentseek.server.service import Service
from momentseek.server.settings import ServerSettings

HEADER_SECONDS = 10.0
"""Time within which all headers of a request must arrive."""
READER_SECONDS = 30.0
"""How long a client may leave data unread; a paused player requests the rest later with a range."""
LAST_ANSWER_SECONDS = 5.0
"""How long started responses may continue after the server was asked to stop."""
MAX_CONNECTIONS_PER_CLIENT = 600
"""Largest number of connections of one client; a further one closes its oldest idle connection."""
OUTSIDE_ADDRESSES = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses that nobody has (RFC 5737, RFC 3849). Connecting a datagram socket to one sends nothing, but shows which of
our own addresses it would send from: the one by which the network knows this machine."""
SHUTDOWN_SECONDS = 10
"""How long responses in progress may take after the server was asked to stop."""
MAX_CONNECTIONS = 1000
MAX_UNACCEPTED_CONNECTIONS = 512
"""Connections that may wait to be accepted."""


class TimedConnection(H11Protocol):
    """A client's connection, which is dropped if it sends its headers or reads its answer too slowly."""

    name = ""
    """The name of the client."""
    since = 0.0
    """When it connected, in seconds of the event loop's clock."""
    _headers_late: asyncio.TimerHandle | None = None
    _reader_late: asyncio.TimerHandle | None = None
    _last_call: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected: start the clock for its headers, and make room if it has too many connections."""
        super().connection_made(transport)
        self.name = client_name(self.client[0] if self.client else "")
        self.since = self.loop.time()
        self._headers_late = self._later(HEADER_SECONDS, self._drop)
        own = [
            c
            for c in self.connections
            if isinstance(c, TimedConnection) and c.name == self.name and not c.transport.is_closing()
        ]
        if len(own) > MAX_CONNECTIONS_PER_CLIENT:
            min((c for c in own if c._idle), key=lambda c: c.since)._drop()

    def data_received(self, data: bytes) -> None:
        """Part of a request has arrived; the clock runs from its first byte until its headers are complete."""
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # a broken body, after the request has been answered already
            self._drop()
            return
        if self.conn.their_state is h11.ERROR and self.cycle is not None:
            self.cycle.disconnected = True  # uvicorn has answered 400; an answer under way has nowhere to go
        if not self._idle:
            _cancel(self._headers_late)
            self._headers_late = None
        elif self._headers_late is None:
            self._headers_late = self._later(HEADER_SECONDS, self._drop)

    def pause_writing(self) -> None:
        """The client reads more slowly than the server writes: start its clock."""
        super().pause_writing()
        self._reader_late = self._reader_late or self._later(READER_SECONDS, self._drop)

    def resume_writing(self) -> None:
        """The client has caught up: stop its clock."""
        super().resume_writing()
        _cancel(self._reader_late)
        self._reader_late = None

    def shutdown(self) -> None:
        """The server stops: answers under way get a few seconds, clients that do not read get none."""
        super().shutdown()
        if self.flow.write_paused:
            self._drop()
        else:
            self._last_call = self._later(LAST_ANSWER_SECONDS, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed: stop all clocks."""
        for timer in (self._headers_late, self._reader_late, self._last_call):
            _cancel(timer)
        super().connection_lost(exc)

    @property
    def _idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _end(self) -> None:
        if self._idle or self.cycle.response_started:
            self._drop()

    def _drop(self) -> None:
        # close() would wait until the client has read everything
        self.transport.abort()

    def _later(self, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, callback)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def page_address(settings: ServerSettings) -> str:
    """The address of the page for a browser on this machine.

    >>> page_address(ServerSettings()), page_address(ServerSettings(host="::1", port=80))
    ('http://127.0.0.1:8765/', 'http://[::1]:80/')
    """
    return _address("127.0.0.1" if settings.wildcard else settings.host, settings.port)


def network_address_lines(settings: ServerSettings, addresses: Iterable[str]) -> list[str]:
    r"""Lines that say how other machines reach a server that listens on all addresses of this machine.

    >>> print(*network_address_lines(ServerSettings(host="0.0.0.0", token="x" * 20), ["192.168.1.5"]), sep="\n")
    on other machines: http://192.168.1.5:8765/
    to use a host name: start the server with --allowed-host NAME
    """
    if not settings.wildcard:
        return []
    names = [*settings.allowed_hosts, *addresses]
    lines = [f"on other machines: {_address(name, settings.port)}" for name in names]
    if not names:
        lines.append(f"on other machines: http://ADDRESS:{settings.port}/, with this machine's address in the network")
    if not settings.allowed_hosts:
        lines.append("to use a host name: start the server with --allowed-host NAME")
    return lines


def own_addresses(settings: ServerSettings) -> list[str]:
    """The addresses of this machine at which other machines can reach the server, as far as they can be found."""
    if not settings.wildcard:
        return []
    found: dict[str, None] = {}
    for address, family in OUTSIDE_ADDRESSES:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as outward:
            outward.connect((address, 9))
            found[outward.getsockname()[0]] = None
    with suppress(OSError):
        for *_, place in socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM):
            found[str(place[0])] = None
    both = ":" in settings.host  # a socket for all IPv6 addresses also accepts IPv4, but not vice versa
    return [address for address in found if _is_reachable(address) and (both or ":" not in address)]


def _is_reachable(address: str) -> bool:
    """Whether other machines may reach an address: not loopback, and not link-local.

    >>> [_is_reachable(a) for a in ("127.0.1.1", "10.0.0.7", "fe80::1%eth0", "2001:db9::7", "::1", "odd")]
    [False, True, False, True, False, False]
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified)


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


class JobAwareServer(uvicorn.Server):
    """A server that stops its jobs as soon as it gets a signal, so that progress streams end and writes finish."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or Ctrl-C: stop the jobs, then the server."""
        self.service.jobs.stop_soon()
        super().handle_exit(sig, frame)


def serve(
    library: Path,
    settings: ServerSettings,
    *,
    open_page: bool = False,
    show_token: bool = False,
    shard_client: ShardClient | None = None,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve a library until the process gets a signal; ``echo`` prints the addresses.

    A library that does not exist is created if folders to add from are given, or if clients may make changes: then they
    can choose a folder on the page.
    """
    Library.open(library, create=bool(settings.folders) or settings.changes).close()
    listening = listen(settings.host, settings.port)
    settings = replace(settings, port=listening.getsockname()[1])
    try:
        app = create_app(library, settings, shard_client)
    except BaseException:
        listening.close()
        raise
    service: Service = app.state.service
    log = logging.getLogger("momentseek.server")
    log.addHandler(logging.StreamHandler())
    config = uvicorn.Config(
        app,
        http=TimedConnection,
        log_level="error",
        backlog=MAX_UNACCEPTED_CONNECTIONS,
        access_log=False,  # addresses contain queries, which are private
        server_header=False,
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=15,
        proxy_headers=False,
    )
    server = JobAwareServer(config, service)
    # Handle signals before the first line is printed, because a program may wait for that line and then stop the
    # server. uvicorn installs its handlers later, and raises the signals again after shutting down, when they do
    # nothing.
    before = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        address = page_address(settings)
        echo(f"{library_name(library)}: {address}")
        if show_token and settings.token:
            echo(f"token: {settings.token}")
        for line in network_address_lines(settings, own_addresses(settings)):
            echo(line)
        if open_page:
            threading.Timer(1.0, open_browser, (address, echo)).start()
        server.run(sockets=[listening])
    finally:
        service.close()
        listening.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def open_browser(address: str, echo: Callable[[str], None]) -> None:
    """Open the page in a browser; print the address if that fails."""
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        echo(f"no browser could be opened here; open {address} yourself")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; raises MomentseekError if that is not possible."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as e:
        raise MomentseekError(
            f"{host}: is not an address of this machine ({e.strerror or e}); check {parameter('host')}"
        ) from None
    try:
        if sys.platform != "win32":  # on Windows it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(MAX_UNACCEPTED_CONNECTIONS)
    except OSError as e:
        listening.close()
        if e.errno == errno.EADDRINUSE:
            raise MomentseekError(
                f"port {port} of {host} is taken, perhaps by another momentseek; choose another "
                f"({parameter('port', port + 1)}), "
                f"or any free one ({parameter('port', 0)})"
            ) from None
        if e.errno == errno.EACCES:
            raise MomentseekError(
                f"port {port} may not be used; choose one above 1023 ({parameter('port', 8765)})"
            ) from None
        raise MomentseekError(
            f"{host}: is not an address of this machine ({e.strerror}); check {parameter('host')}"
        ) from None
    return listening
