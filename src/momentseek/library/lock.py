"""One writer at a time: a lock that vanishes with the process that holds it."""

from __future__ import annotations

import errno
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from momentseek.core.errors import MomentseekError, parameter

LOCK_FILE = "lock"
POLL_SECONDS = 0.1


@contextmanager
def hold_lock(folder: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold a library's lock for the time of a ``with``; if another process holds it, wait up to ``wait`` seconds and
    then refuse, naming that process.

    The lock is the operating system's (flock), so a process that dies, however it dies, releases it. Readers need no
    lock: they see the catalog between two transactions.
    """
    path = folder / LOCK_FILE
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be opened for writing ({e.strerror}); check the folder") from None
    try:
        _wait(handle, path, wait)
        _sign(handle)
        try:
            yield
        finally:
            _truncate(handle)
            _release(handle)
    finally:
        os.close(handle)


def _wait(handle: int, path: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    while not _take(handle, path):
        left = deadline - time.monotonic()
        if left <= 0:
            raise MomentseekError(
                f"{path.parent}: {_holder(path)} is changing this library; wait for it, or say for how many seconds to "
                f"wait ({parameter('wait', 600)})"
            )
        time.sleep(min(POLL_SECONDS, left))


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_bytes())
        since = time.strftime("%H:%M:%S", time.localtime(who["since"]))
        host = "" if who["host"] == platform.node() else f" on {who['host']}"
        return f"process {int(who['pid'])}{host} (since {since})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _sign(handle: int) -> None:
    """Say who holds it; for people only, so a full disk does not matter."""
    mark = json.dumps({"pid": os.getpid(), "host": platform.node(), "since": time.time()}).encode()
    _truncate(handle)
    with suppress(OSError):
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, mark)


def _truncate(handle: int) -> None:
    with suppress(OSError):
        os.ftruncate(handle, 0)


if sys.platform != "win32":
    import fcntl

    def _take(handle: int, path: Path) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno in (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK):
                return False
            raise MomentseekError(f"{path}: this file system has no locks ({e.strerror}); use a local disk") from None
        return True

    def _release(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

else:
    import msvcrt

    _LOCK_BYTE = 1 << 30  # a byte beyond the mark, so that others can read who holds it

    def _take(handle: int, path: Path) -> bool:
        os.lseek(handle, _LOCK_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return True

    def _release(handle: int) -> None:
        os.lseek(handle, _LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
