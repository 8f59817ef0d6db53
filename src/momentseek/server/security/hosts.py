"""Checks of ``Host`` and ``Origin``, against DNS rebinding and requests that other sites make.

A page of another site can make a browser send requests to this machine. It cannot choose their ``Host``, the name by
which the browser found us, so a name of the attacker's that was made to point here gives itself away. Nor can it hide
the ``Origin`` of a request that changes something.
"""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from momentseek.server.errors import ApiError
from momentseek.server.settings import ServerSettings

_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")


class HostMiddleware:
    """Refuses requests for other host names, and from other origins."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.names = settings.host_names
        self.any_address = settings.wildcard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            self.check_host(headers)
            check_origin(headers)
            check_site(scope["method"], headers)
        await self.app(scope, receive, send)

    def check_host(self, headers: Headers) -> None:
        """Refuse a request unless it has exactly one ``Host`` header, with an allowed name."""
        given = headers.getlist("host")
        name = host_name(given[0]) if len(given) == 1 else None
        if name is None or not (name in self.names or (self.any_address and _is_address(name))):
            raise ApiError(
                403,
                "this host name is not allowed; use the address that the server printed, "
                "or start it with --allowed-host NAME",
                code="wrong_host",
            )


def host_name(host: str) -> str | None:
    """The name in a ``Host`` header, in lower case, without port and brackets; None if it is malformed.

    >>> host_name("LocalHost:8765"), host_name("[::1]:80"), host_name("a b")
    ('localhost', '::1', None)
    """
    match = _HOST.fullmatch(host)
    return match["name"].lower().strip("[]") if match else None


def check_origin(headers: Headers) -> None:
    """Refuse a request whose ``Origin`` is not the very host and port that it is sent to."""
    for origin in headers.getlist("origin"):
        scheme, separator, rest = origin.partition("://")
        if not separator or scheme not in ("http", "https") or rest.lower() != headers.get("host", "").lower():
            raise ApiError(403, "the request comes from another site; open this server's own page", code="wrong_origin")


def check_site(method: str, headers: Headers) -> None:
    """Refuse a request that the browser says another site made, unless a person followed a link."""
    site = headers.get("sec-fetch-site", "none").lower()
    if site in ("none", "same-origin"):
        return
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if not (followed and method == "GET"):
        raise ApiError(403, "the request comes from another site; open this server's own page", code="wrong_origin")


def _is_address(name: str) -> bool:
    """Whether a host is an IP address, which cannot be rebound."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
