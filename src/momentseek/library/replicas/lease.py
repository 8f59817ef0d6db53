"""The lease of a shard in object storage: which replica writes to it now.

It spares two machines from working for nothing. What keeps a shard whole is another thing: its state is replaced only
if it is still the one that a writer began with, where the store can do that.
"""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass

from momentseek.errors import LibraryBusyError, MomentseekError
from momentseek.storage.objects import MissingObjectError, ObjectStore, StaleObjectError

LEASE_FILE = "lease.json"
LEASE_SECONDS = 30.0
"""A writer that has not been heard of for so long is taken for dead."""
RENEW_SECONDS = 8.0
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class _Sign:
    """What a lease says: who holds it, in words too, and when it was renewed."""

    holder: str
    name: str
    since: float
    at: float

    @classmethod
    def read(cls, data: bytes) -> _Sign:
        try:
            found = json.loads(data)
            return cls(str(found["holder"]), str(found["name"]), float(found["since"]), float(found["at"]))
        except (ValueError, KeyError, TypeError):
            return cls("", "another process", 0.0, 0.0)

    def to_bytes(self) -> bytes:
        return json.dumps({"holder": self.holder, "name": self.name, "since": self.since, "at": self.at}).encode()


class ShardLease:
    """The lease of one shard for one holder; taken, renewed now and then, and given back.

    Who has the same name as a holder may take its lease at once: a replica has one writer at a time, so the other is
    dead.
    """

    def __init__(self, objects: ObjectStore, holder: str) -> None:
        self._objects, self._holder = objects, holder
        self._mark: str | None = None
        self._since = 0.0

    def take(self, wait: float = 0.0) -> None:
        """Take the lease; if another holds it, wait up to ``wait`` seconds and then refuse, naming the other."""
        deadline = time.monotonic() + wait
        self._since = time.time()
        seen: tuple[str, float] | None = None
        while True:
            try:
                there = self._objects.read(LEASE_FILE)
            except MissingObjectError:
                there = None
            sign = None if there is None else _Sign.read(there.data)
            if there is not None and (seen is None or seen[0] != there.mark):
                seen = there.mark, time.monotonic()
            if sign is None or sign.holder == self._holder or self._is_dead(sign, seen):
                with suppress(StaleObjectError):  # another was quicker
                    self._mark = self._objects.replace(LEASE_FILE, self._sign(), None if there is None else there.mark)
                    return
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                raise LibraryBusyError(
                    f"{self._objects.address}: {sign.name} is changing this library (since "
                    f"{time.strftime('%H:%M:%S', time.localtime(sign.since))}, last heard of "
                    f"{max(0.0, time.time() - sign.at):.0f} s ago); wait for it, or say for how many seconds to wait "
                    "(wait=600)"
                )
            time.sleep(min(POLL_SECONDS, left))

    def renew(self) -> None:
        """Say that the holder is alive; raises LibraryBusyError if another has taken the lease."""
        try:
            self._mark = self._objects.replace(LEASE_FILE, self._sign(), self._mark)
        except StaleObjectError:
            raise LibraryBusyError(
                f"{self._objects.address}: another machine has taken over, because this one was not heard of for "
                f"{LEASE_SECONDS:.0f} s; run the command again"
            ) from None

    def give_back(self) -> None:
        """Let another writer begin at once; a store that cannot be reached lets it begin later."""
        with suppress(MomentseekError):
            if self._mark is not None and self._objects.read(LEASE_FILE).mark == self._mark:
                self._objects.delete([LEASE_FILE])
        self._mark = None

    def _sign(self) -> bytes:
        name = f"process {os.getpid()} on {platform.node() or 'another machine'}"
        return _Sign(self._holder, name, self._since, time.time()).to_bytes()

    @staticmethod
    def _is_dead(sign: _Sign, seen: tuple[str, float] | None) -> bool:
        """Whether a holder was silent for too long, by its own clock or, as clocks differ, by how long we watched."""
        watched = 0.0 if seen is None else time.monotonic() - seen[1]
        return time.time() - sign.at > LEASE_SECONDS or watched > LEASE_SECONDS
