"""Connections with time limits: for headers that never come whole, and for clients that stop reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol

from momentseek.server.security.clients import client_name

HEADER_SECONDS = 10.0
"""Time within which all headers of a request must arrive."""
READER_SECONDS = 30.0
"""How long a client may leave data unread; a paused player asks again later with a range."""
LAST_ANSWER_SECONDS = 5.0
"""How long answers that have begun may go on after the server was told to stop."""
MAX_CONNECTIONS_PER_CLIENT = 600
"""Connections of one client; a further one ends the oldest that waits for a request. The rest is left to others."""


class TimedConnection(H11Protocol):
    """A client's connection, which is dropped if it sends its headers or reads its answer too slowly."""

    name = ""
    """The client's."""
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
        super().data_received(data)
        if not self._idle:
            _cancel(self._headers_late)
            self._headers_late = None
        elif self._headers_late is None:
            self._headers_late = self._later(HEADER_SECONDS, self._drop)

    def pause_writing(self) -> None:
        """The client reads more slowly than we write: start the clock for it."""
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
