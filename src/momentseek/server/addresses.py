"""What to type into a browser, on this machine and on others."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress

from momentseek.server.settings import Settings

ELSEWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses that nobody has (RFC 5737, RFC 3849). A datagram socket for them sends nothing, and knows which of our own
addresses it would be sent from: the one by which the network knows this machine."""


def page_address(settings: Settings) -> str:
    """What to open in a browser on this machine.

    >>> page_address(Settings()), page_address(Settings(host="::1", port=80))
    ('http://127.0.0.1:8765/', 'http://[::1]:80/')
    """
    return _address("127.0.0.1" if settings.wildcard else settings.host, settings.port)


def reached(settings: Settings, addresses: Iterable[str]) -> list[str]:
    r"""How other machines reach a server that listens on all addresses of this one.

    >>> print(*reached(Settings(host="0.0.0.0", token="x" * 20), ["192.168.1.5"]), sep="\n")
    on other machines: http://192.168.1.5:8765/
    by a name of this machine: start it with --allowed-host NAME
    """
    if not settings.wildcard:
        return []
    names = [*settings.allowed_hosts, *addresses]
    lines = [f"on other machines: {_address(name, settings.port)}" for name in names]
    if not names:
        lines.append(f"on other machines: http://ADDRESS:{settings.port}/, with this machine's address in the network")
    if not settings.allowed_hosts:
        lines.append("by a name of this machine: start it with --allowed-host NAME")
    return lines


def own_addresses(settings: Settings) -> list[str]:
    """Addresses of this machine in its networks at which the server listens, as far as they can be told."""
    if not settings.wildcard:
        return []
    found: dict[str, None] = {}
    for address, family in ELSEWHERE:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as outward:
            outward.connect((address, 9))
            found[outward.getsockname()[0]] = None
    with suppress(OSError):
        for *_, place in socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM):
            found[str(place[0])] = None
    both = ":" in settings.host  # a socket for all IPv6 addresses hears IPv4 as well, not the other way round
    return [address for address in found if _useful(address) and (both or ":" not in address)]


def _useful(address: str) -> bool:
    """Not this machine's own, and not bound to one cable.

    >>> [_useful(a) for a in ("127.0.1.1", "10.0.0.7", "fe80::1%eth0", "2001:db9::7", "::1", "odd")]
    [False, True, False, True, False, False]
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (known.is_loopback or known.is_link_local or known.is_unspecified)


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
