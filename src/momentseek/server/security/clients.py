"""Who a client is, and how often it may try wrong tokens."""

from __future__ import annotations

import ipaddress
import math
from collections import deque

from starlette.types import Scope

IPV6_NETWORK_BITS = 64
"""A home has at least that many IPv6 addresses, so a network of them counts as one client."""


def client_of(scope: Scope) -> str:
    """The client that sent a request, by its address."""
    client = scope.get("client")
    return client_name(client[0] if client else "")


def client_name(host: str) -> str:
    """The name of a client with an address: the address itself, or the network of an IPv6 address.

    >>> client_name("192.0.2.7"), client_name("2001:db8:1:2:a:b:c:d"), client_name("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, IPV6_NETWORK_BITS), strict=False))
    return str(address)


WINDOW_SECONDS = 60.0
"""How long a wrong try counts."""
MAX_WRONG_PER_CLIENT = 5
MAX_WRONG_IN_TOTAL = 50
"""Wrong tries of one client, and of all clients together: an attacker may have many addresses."""
MAX_KNOWN_CLIENTS = 1000
"""Clients that are remembered because they had the right token."""


class Throttle:
    """Remembers wrong tries for a while, and says which clients must wait. Right tries are not counted.

    A client that once had the right token answers for its own tries only, so that strangers cannot lock it out.

    >>> tries = Throttle()
    >>> for second in range(5):
    ...     tries.note_wrong("192.0.2.7", now=float(second))
    >>> [tries.seconds_to_wait(f"192.0.2.{n}", now=now) for n, now in ((7, 10.0), (8, 10.0), (7, 60.0))]
    [50, 0, 0]
    """

    def __init__(self) -> None:
        self._wrong: deque[tuple[float, str]] = deque()
        """Time and client, oldest first; a client that must wait adds nothing, so there are never many."""
        self._known: dict[str, None] = {}

    def seconds_to_wait(self, client: str, now: float) -> int:
        """Whole seconds until a client may try again; 0 if it may now."""
        while self._wrong and self._wrong[0][0] <= now - WINDOW_SECONDS:
            self._wrong.popleft()
        full = [
            tries[-most]
            for tries, most in (
                ([] if client in self._known else [at for at, _ in self._wrong], MAX_WRONG_IN_TOTAL),
                ([at for at, who in self._wrong if who == client], MAX_WRONG_PER_CLIENT),
            )
            if len(tries) >= most
        ]
        return max(1, math.ceil(max(full) + WINDOW_SECONDS - now)) if full else 0

    def note_wrong(self, client: str, now: float) -> None:
        """Note a wrong try of a client."""
        self._wrong.append((now, client))

    def note_right(self, client: str) -> None:
        """Note that a client had the right token."""
        self._known.pop(client, None)
        self._known[client] = None
        while len(self._known) > MAX_KNOWN_CLIENTS:
            del self._known[next(iter(self._known))]
