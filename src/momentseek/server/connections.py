"""Connections that do not wait for ever: for headers that never come whole, or for readers who have stopped reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""In which all headers of a request must have come."""
READER_SECONDS = 30.0
"""How long a client may leave what was sent to it unread; a paused player comes back with a range."""
LAST_SECONDS = 5.0
"""How long answers that have begun may go on after the server was told to stop."""


class Connection(H11Protocol):
    """A client's connection, which is dropped if it only takes up room."""

    _headers_late: asyncio.TimerHandle | None = None
    _reader_late: asyncio.TimerHandle | None = None
    _last_call: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there, and has yet to say what they want."""
        super().connection_made(transport)
        self._headers_late = self._later(HEADER_SECONDS, self._drop)

    def data_received(self, data: bytes) -> None:
        """Some of a request; the clock runs from its first byte until its headers are whole."""
        super().data_received(data)
        if not self._idle:
            _cancel(self._headers_late)
            self._headers_late = None
        elif self._headers_late is None:
            self._headers_late = self._later(HEADER_SECONDS, self._drop)

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        super().pause_writing()
        self._reader_late = self._reader_late or self._later(READER_SECONDS, self._drop)

    def resume_writing(self) -> None:
        """It has caught up."""
        super().resume_writing()
        _cancel(self._reader_late)
        self._reader_late = None

    def shutdown(self) -> None:
        """The server stops: a film need not be sent to its end, and nobody is waited for who does not read."""
        super().shutdown()
        if self.flow.write_paused:
            self._drop()
        else:
            self._last_call = self._later(LAST_SECONDS, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        """All over."""
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

    def _later(self, seconds: float, what: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, what)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
