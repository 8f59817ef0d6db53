"""Running the application: the socket, what is printed, and a shutdown that loses nothing."""

from __future__ import annotations

import errno
import gc
import logging
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from momentseek.api import open_library
from momentseek.collector import pause_collector
from momentseek.errors import MomentseekError
from momentseek.library.location import library_name
from momentseek.server.addresses import network_address_lines, own_addresses, page_address
from momentseek.server.app import create_app
from momentseek.server.connections import TimedConnection
from momentseek.server.service import Service
from momentseek.server.settings import ServerSettings

if TYPE_CHECKING:
    from momentseek.search.shards.fan_out import FanOut

SHUTDOWN_SECONDS = 10
"""How long answers under way may take after the server was asked to stop."""
MAX_CONNECTIONS = 1000
MAX_UNACCEPTED_CONNECTIONS = 512
"""Connections that may wait to be accepted."""


class JobAwareServer(uvicorn.Server):
    """A server that stops its jobs as soon as a signal comes, so that progress streams end and writes are finished."""

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
    fan_out: FanOut | None = None,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve a library until a signal comes; ``echo`` prints the addresses.

    A library that does not exist is created if there are folders from which it can be filled.
    """
    open_library(library, create=bool(settings.folders)).close()
    listening = listen(settings.host, settings.port)
    settings = replace(settings, port=listening.getsockname()[1])
    try:
        with pause_collector():
            app = create_app(library, settings, fan_out)
    except BaseException:
        listening.close()
        raise
    gc.freeze()  # the collector's walks over what was loaded would make requests wait
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
    # From the first line on, which may be what somebody waits for who then stops the server. uvicorn, which listens to
    # signals a moment later, raises them again after shutting down, when they have nothing left to do.
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
    """Open the page in a browser, or say that there is none to open it."""
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
        raise MomentseekError(f"{host}: is not an address of this machine ({e.strerror or e}); check `host`") from None
    try:
        if sys.platform != "win32":  # on Windows it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(MAX_UNACCEPTED_CONNECTIONS)
    except OSError as e:
        listening.close()
        if e.errno == errno.EADDRINUSE:
            raise MomentseekError(
                f"port {port} of {host} is taken, perhaps by another momentseek; choose another (port={port + 1}), "
                "or any free one (port=0)"
            ) from None
        if e.errno == errno.EACCES:
            raise MomentseekError(f"port {port} may not be used; choose one above 1023 (port=8765)") from None
        raise MomentseekError(f"{host}: is not an address of this machine ({e.strerror}); check `host`") from None
    return listening
