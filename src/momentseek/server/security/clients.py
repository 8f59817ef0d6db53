"""Who a client is: the unit by which clients are counted, slowed down and bounded."""

from __future__ import annotations

import ipaddress

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
