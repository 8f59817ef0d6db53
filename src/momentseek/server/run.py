"""Running the application: the socket, what is printed, and an end that loses nothing."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import sys
import threading
import webbrowser
from dataclasses import replace
from pathlib import Path
from types import FrameType

import click
import uvicorn

from momentseek.api import Library
from momentseek.errors import MomentseekError
from momentseek.server.addresses import own_addresses, page_address, reached
from momentseek.server.app import create_app
from momentseek.server.connections import Connection
from momentseek.server.service import Service
from momentseek.server.settings import Settings

FINISH_SECONDS = 10
"""How long requests may take to be answered after the server was told to stop."""
CONNECTIONS = 1000
WAITING = 512
"""Connections that wait to be accepted."""


class Server(uvicorn.Server):
    """Tells the jobs as soon as a signal comes, so that streams of their progress end and writes are finished."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM or Ctrl-C."""
        self.service.jobs.stop_soon()
        super().handle_exit(sig, frame)


def run(library: Path, settings: Settings, *, open_page: bool = False, show_token: bool = False) -> None:
    """Serve until told to stop. A library that is not there is made, if there are folders to fill it from."""
    Library.open(library, create=bool(settings.folders)).close()
    listening = listen(settings.host, settings.port)
    settings = replace(settings, port=listening.getsockname()[1])
    app = create_app(library, settings)
    service: Service = app.state.service
    log = logging.getLogger("momentseek.server")
    log.addHandler(logging.StreamHandler())
    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="error",
        backlog=WAITING,
        access_log=False,  # queries stand in addresses, and are nobody's business
        server_header=False,
        lifespan="on",
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=FINISH_SECONDS,
        timeout_keep_alive=15,
        proxy_headers=False,
    )
    server = Server(config, service)
    address = page_address(settings)
    click.echo(f"{library.name}: {address}")
    if show_token and settings.token:
        click.echo(f"token: {settings.token}")
    for line in reached(settings, own_addresses(settings)):
        click.echo(line)
    if open_page:
        threading.Timer(1.0, webbrowser.open, (address,)).start()
    # uvicorn raises the signal again when it has ended; by then it has done its work
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=[listening])
    finally:
        service.close()
        listening.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; one sentence if that cannot be."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as e:
        raise MomentseekError(f"{host}: is no address of this machine ({e.strerror or e}); check --host") from None
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(WAITING)
    except OSError as e:
        listening.close()
        if e.errno == errno.EADDRINUSE:
            raise MomentseekError(
                f"port {port} of {host} is taken, perhaps by another momentseek; choose another (--port {port + 1}), "
                "or any (--port 0)"
            ) from None
        if e.errno == errno.EACCES:
            raise MomentseekError(f"port {port} may not be used; choose one above 1023 (--port 8765)") from None
        raise MomentseekError(f"{host}: is no address of this machine ({e.strerror}); check --host") from None
    return listening
