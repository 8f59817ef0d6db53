"""The addresses of the page: on this machine, and for other machines in the network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress

from momentseek.server.settings import ServerSettings

OUTSIDE_ADDRESSES = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses that nobody has (RFC 5737, RFC 3849). Connecting a datagram socket to one sends nothing, but shows which of
our own addresses it would send from: the one by which the network knows this machine."""


def page_address(settings: ServerSettings) -> str:
    """The address of the page for a browser on this machine.

    >>> page_address(ServerSettings()), page_address(ServerSettings(host="::1", port=80))
    ('http://127.0.0.1:8765/', 'http://[::1]:80/')
    """
    return _address("127.0.0.1" if settings.wildcard else settings.host, settings.port)


def network_address_lines(settings: ServerSettings, addresses: Iterable[str]) -> list[str]:
    r"""Lines that tell how other machines reach a server that listens on all addresses of this one.

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
    """Addresses of this machine in its networks at which the server listens, as far as they can be found out."""
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
    both = ":" in settings.host  # a socket for all IPv6 addresses hears IPv4 as well, not the other way round
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
