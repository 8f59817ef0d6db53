"""Event streams: how many connections that stay open one client, and all together, may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(eq=False)
class EventStream:
    """A stream of events to a client; once it is ``ended``, whoever sends it stops."""

    client: str
    ended: bool = False


class EventStreams:
    """The streams that are open. A new one is never refused: where there are too many, an older one is ended.

    That is the client's own oldest, or, where all together are too many, the oldest of the client that has most.

    >>> streams = EventStreams(most=3, most_per_client=2)
    >>> a, b, c, d = (streams.begin(client) for client in "aaab")
    >>> [stream.ended for stream in (a, b, c, d)]
    [True, False, False, False]
    >>> e = streams.begin("c")
    >>> [stream.ended for stream in (b, c, d, e)]
    [True, False, False, False]
    """

    def __init__(self, most: int, most_per_client: int) -> None:
        self.most, self.most_per_client = most, most_per_client
        self._open: dict[EventStream, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, client: str) -> EventStream:
        """Begin a stream to a client, for which an older one may have to end."""
        counts = Counter(stream.client for stream in self._open)
        if counts[client] >= self.most_per_client:
            self._end_oldest(client)
        elif len(self._open) >= self.most:
            self._end_oldest(counts.most_common(1)[0][0])
        stream = EventStream(client)
        self._open[stream] = None
        return stream

    def end(self, stream: EventStream) -> None:
        """End a stream, which may have ended already."""
        stream.ended = True
        self._open.pop(stream, None)

    @contextmanager
    def open(self, client: str) -> Iterator[EventStream]:
        """A stream to a client for the time of a ``with``."""
        stream = self.begin(client)
        try:
            yield stream
        finally:
            self.end(stream)

    def _end_oldest(self, client: str) -> None:
        self.end(next(stream for stream in self._open if stream.client == client))
