"""What a server is told when it starts, and the limits it keeps."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from momentseek.errors import MomentseekError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHORTEST_TOKEN = 16
"""Characters; a token that long cannot be guessed over a network."""


@dataclass(frozen=True)
class Limits:
    """What one client may ask of the machine."""

    body: int = 64 * 1024
    """Bytes of a request's body."""
    body_seconds: float = 10.0
    """In which all of it must have come."""
    searches: int = max(2, os.cpu_count() or 2)
    """Run at a time."""
    reads: int = 4
    """Quick looks into the catalog at a time."""
    listings: int = 2
    """Folders listed at a time."""
    listing_entries: int = 20_000
    """Files and folders looked at to count the videos of one listing."""
    listing_seconds: float = 2.0
    """In which they are counted."""
    pictures: int = 2
    """Thumbnails and clips made at a time."""
    waiting: int = 400
    """Requests that may wait for each of these; more are told to come back."""
    seconds: float = 30.0
    """For a search, its waiting included."""
    cut_seconds: float = 300.0
    """For cutting a clip."""
    streams: int = 64
    """Videos sent at a time."""
    jobs: int = 20
    """That wait to be run."""


@dataclass(frozen=True)
class Settings:
    """Where to listen, and who may ask.

    >>> Settings().loopback, Settings(host="192.168.1.5", token="x" * 20).loopback
    (True, False)
    >>> Settings(host="0.0.0.0")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: others can reach 0.0.0.0, so a token is needed; give one (--token)
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    """From which videos may be added; if there are none, the folders of the videos already in the library."""
    limits: Limits = Limits()
    beside: tuple[Path, ...] = ()
    """Libraries of other encoders over the same videos, to compare with."""
    rerank: tuple[Path, ...] = ()
    """Exported models that may look again at what a search finds; clients call them by their folders' names."""

    def __post_init__(self) -> None:
        if self.token is None and not self.loopback:
            raise MomentseekError(f"others can reach {self.host}, so a token is needed; give one (--token)")
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise MomentseekError(f"the token must have {SHORTEST_TOKEN} or more ASCII characters; choose a longer one")
        if len(self.rerankers) < len(self.rerank):
            raise MomentseekError("two of the folders given to --rerank have one name; rename one of them")

    @property
    def rerankers(self) -> dict[str, Path]:
        """Models that re-rank, by name."""
        return {folder.name: folder for folder in self.rerank}

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def wildcard(self) -> bool:
        """Whether it listens on every address of the machine."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return self.host == ""

    @property
    def names(self) -> frozenset[str]:
        """The hosts by which clients may call it, in lower case and without brackets."""
        own = () if self.wildcard else (self.host,)
        return frozenset(name.lower().strip("[]") for name in (*LOOPBACK, *own, *self.allowed_hosts))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone.

    >>> is_loopback("localhost"), is_loopback("127.0.0.9"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
