"""Who is being called, and from where: checks against DNS rebinding and requests that other sites make.

A page of another site can make a browser send requests to this machine. It cannot choose their ``Host`` (the name by
which the browser found us, so a name of the attacker's that was made to point here gives itself away), nor hide the
``Origin`` of a request that changes something.
"""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from momentseek.server.errors import ApiError
from momentseek.server.settings import Settings

_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")


class Hosts:
    """Refuses requests for other names, and from other origins."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.names = settings.names
        self.any_address = settings.wildcard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            self.check_host(headers)
            check_origin(headers)
            check_site(scope["method"], headers)
        await self.app(scope, receive, send)

    def check_host(self, headers: Headers) -> None:
        """Exactly one ``Host``, and a name of ours."""
        given = headers.getlist("host")
        name = host_name(given[0]) if len(given) == 1 else None
        if name is None or not (name in self.names or (self.any_address and _is_address(name))):
            raise ApiError(
                403,
                "the server is called by a name that is not its own; use the address it printed, "
                "or start it with --allowed-host NAME",
                code="wrong_host",
            )


def host_name(host: str) -> str | None:
    """The name in a ``Host`` header, in lower case and without port and brackets.

    >>> host_name("LocalHost:8765"), host_name("[::1]:80"), host_name("a b")
    ('localhost', '::1', None)
    """
    match = _HOST.fullmatch(host)
    return match["name"].lower().strip("[]") if match else None


def check_origin(headers: Headers) -> None:
    """An ``Origin`` must be the very host and port that is called."""
    for origin in headers.getlist("origin"):
        scheme, separator, rest = origin.partition("://")
        if not separator or scheme not in ("http", "https") or rest.lower() != headers.get("host", "").lower():
            raise ApiError(
                403, "the request comes from another site; open the page of this server", code="wrong_origin"
            )


def check_site(method: str, headers: Headers) -> None:
    """What a browser says was asked by another site is refused, but for a person who follows a link."""
    site = headers.get("sec-fetch-site", "none").lower()
    if site in ("none", "same-origin"):
        return
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if not (followed and method == "GET"):
        raise ApiError(403, "the request comes from another site; open the page of this server", code="wrong_origin")


def _is_address(name: str) -> bool:
    """An address cannot be made to point elsewhere, so it is no rebinding."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
