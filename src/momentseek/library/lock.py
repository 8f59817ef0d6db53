"""One writer at a time: a lock that vanishes with the process that holds it."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from momentseek.core.errors import MomentseekError, optional_module, parameter

LOCK_FILE = "lock"
HOLDER_FILE = "lock.json"
"""Says who holds the lock; for people only."""


@contextmanager
def hold_lock(folder: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the write lock of the library in a folder; if another process holds it, wait up to ``wait`` seconds and then
    refuse, naming that process.

    The lock is the operating system's, so a process that dies, however it dies, releases it. Readers need no lock: they
    see the catalog between two transactions.
    """
    filelock = optional_module("filelock", "search")
    path, holder = folder / LOCK_FILE, folder / HOLDER_FILE
    if not folder.is_dir():
        raise MomentseekError(f"{path}: cannot be opened for writing, its folder does not exist; check the folder")
    try:
        lock = filelock.FileLock(path, timeout=wait, fallback_to_soft=False)
        lock.acquire()
    except filelock.Timeout:
        raise MomentseekError(
            f"{folder}: {_holder(holder)} is changing this library; wait for it, or say for how many seconds to "
            f"wait ({parameter('wait', 600)})"
        ) from None
    except NotImplementedError:
        raise MomentseekError(f"{path}: this file system has no locks; use a local disk") from None
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be opened for writing ({e.strerror}); check the folder") from None
    try:
        mark = {"pid": os.getpid(), "host": platform.node(), "since": time.time()}
        with suppress(OSError):  # a full disk does not matter here
            holder.write_text(json.dumps(mark))
        yield
    finally:
        with suppress(OSError):
            holder.unlink()
        lock.release()


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_bytes())
        since = time.strftime("%H:%M:%S", time.localtime(who["since"]))
        host = "" if who["host"] == platform.node() else f" on {who['host']}"
        return f"process {int(who['pid'])}{host} (since {since})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
