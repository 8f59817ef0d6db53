"""The settings of a server and the limits that it enforces."""

from __future__ import annotations

import ipaddress
import os
import time
from dataclasses import dataclass
from pathlib import Path

from momentseek.core.errors import MomentseekError, parameter

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
MIN_TOKEN_CHARACTERS = 16
"""A token of this length cannot be guessed over a network."""


@dataclass(frozen=True)
class Limits:
    """Limits on what clients may ask of the machine."""

    body: int = 64 * 1024
    """Largest body of a request, in bytes."""
    body_seconds: float = 10.0
    """Time within which a body must arrive."""
    searches: int = max(2, os.cpu_count() or 2)
    """Maximum number of searches at the same time."""
    reads: int = 4
    """Maximum number of quick reads of the catalog at the same time."""
    listings: int = 2
    """Maximum number of folders that are listed at the same time."""
    listing_entries: int = 20_000
    """Files and folders that are examined to count the videos of one listing."""
    listing_seconds: float = 2.0
    """Time after which counting stops."""
    pictures: int = 2
    """Maximum number of thumbnails that are made at the same time."""
    previews: int = 1
    """Maximum number of previews that are made at the same time."""
    preview_bytes: int = 2 * 2**30
    """Size of all previews together."""
    waiting: int = 400
    """Requests that may wait for each of these; further ones get 503."""
    seconds: float = 30.0
    """Time for a search, including waiting for its turn."""
    cut_seconds: float = 300.0
    """Time for cutting a clip."""
    streams: int = 64
    """Maximum number of videos that are sent at the same time."""
    streams_per_client: int = 24
    """Maximum number of videos that are sent to one client at the same time."""
    event_streams: int = 100
    """Maximum number of event streams at the same time; a new one ends an older one."""
    event_streams_per_client: int = 8
    """Maximum number of event streams to one client; a new one ends its oldest."""
    jobs: int = 20
    """Jobs that may wait for their turn."""


@dataclass(frozen=True)
class ServerSettings:
    """Where a server listens, who may use it, and what it offers.

    >>> ServerSettings().loopback, ServerSettings(host="192.168.1.5", token="x" * 20).loopback
    (True, False)
    >>> ServerSettings(host="0.0.0.0")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: others can reach 0.0.0.0, so a token is needed; give one (`token`)
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    """Folders from which videos may be added; if none are given, the folders of the videos in the library."""
    watch: bool = False
    """Whether to add all videos in the folders, and those that appear or change there while the server runs."""
    limits: Limits = Limits()
    compare_with: tuple[Path, ...] = ()
    """Libraries of the same videos, indexed with other encoders, to compare with."""
    rerank: tuple[Path, ...] = ()
    """Folders of exported models that can re-rank searches; clients call them by the folders' names."""

    allow_changes: bool | None = None
    """Whether clients may remove videos and change the encoder; None: only if no other machine can reach the server."""

    scrub_at: str | None = None
    """Time of day at which to check the whole library, such as ``03:30``; None for never."""

    search_processes: int = 0
    """Number of processes that search; 0: searches run in threads of the server."""

    database: str | None = None
    """``postgresql://…`` for sessions, judgements and bookmarks, shared by servers; None: files with the library."""

    def __post_init__(self) -> None:
        if self.token is None and not self.loopback:
            raise MomentseekError(
                f"others can reach {self.host}, so a token is needed; give one ({parameter('token')})"
            )
        if self.token is not None and (len(self.token) < MIN_TOKEN_CHARACTERS or not self.token.isascii()):
            raise MomentseekError(
                f"the token must have {MIN_TOKEN_CHARACTERS} or more ASCII characters; choose a longer one"
            )
        if self.watch and not self.folders:
            raise MomentseekError(f"there is nothing to watch; name a folder ({parameter('folder', 'FOLDER')})")
        if self.scrub_at is not None:
            seconds_until(self.scrub_at, time.localtime())
        if len(self.rerankers) < len(self.rerank):
            raise MomentseekError(f"two of the folders in {parameter('rerank')} have the same name; rename one of them")

    @property
    def changes(self) -> bool:
        """Whether clients may remove videos and change the encoder.

        >>> ServerSettings().changes, ServerSettings(host="0.0.0.0", token="x" * 20).changes
        (True, False)
        """
        return self.loopback if self.allow_changes is None else self.allow_changes

    @property
    def rerankers(self) -> dict[str, Path]:
        """The re-ranking models: name → folder."""
        return {folder.name: folder for folder in self.rerank}

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def wildcard(self) -> bool:
        """Whether the server listens on every address of the machine."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return self.host == ""

    @property
    def host_names(self) -> frozenset[str]:
        """The host names that clients may use, in lower case and without brackets."""
        own = () if self.wildcard else (self.host,)
        return frozenset(name.lower().strip("[]") for name in (*LOOPBACK_HOSTS, *own, *self.allowed_hosts))


def is_loopback(host: str) -> bool:
    """Whether a host can only be reached from this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.9"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def seconds_until(clock: str, now: time.struct_time) -> float:
    """Seconds until a clock next shows a time of day.

    >>> seconds_until("03:30", time.strptime("2026-01-01 03:00:00", "%Y-%m-%d %H:%M:%S"))
    1800.0
    >>> seconds_until("03:30", time.strptime("2026-01-01 03:30:00", "%Y-%m-%d %H:%M:%S"))
    86400.0
    """
    try:
        wanted = time.strptime(clock, "%H:%M")
    except ValueError:
        raise MomentseekError(
            f"{clock!r} is not a time of day; give one such as 03:30 ({parameter('scrub_at')})"
        ) from None
    ahead = 60 * (60 * (wanted.tm_hour - now.tm_hour) + wanted.tm_min - now.tm_min) - now.tm_sec
    return float(ahead if ahead > 0 else ahead + 24 * 3600)
