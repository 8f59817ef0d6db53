"""Work shared among the threads of all searches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from threading import local

import numpy as np
from numpy.typing import NDArray

from momentseek.recognition.runtime import thread_count

MIN_SHARED_PRODUCTS = 16_384
"""Below this number of rows times queries a second thread costs more than it saves."""
RowTask = tuple[Callable[[int, int], None], NDArray[np.int64]]
"""A function of the first and last video, and where each video's rows start."""


def share_rows(tasks: Sequence[RowTask], queries: int) -> None:
    """Run all tasks, split into parts of about equal numbers of rows, in threads if there are enough rows."""
    rows = sum(int(starts[-1]) for _, starts in tasks)
    if rows * queries < MIN_SHARED_PRODUCTS or is_alone():
        for work, starts in tasks:
            work(0, len(starts) - 1)
        return
    threads = thread_count()
    size = rows / (2 * threads if rows < 1 << 18 else 8 * threads)
    parts: list[Callable[[], None]] = []
    for work, starts in tasks:
        cuts = np.searchsorted(starts, np.arange(size, starts[-1] - size / 2, size))
        edges = [0, *np.maximum.accumulate(cuts).tolist(), len(starts) - 1]
        parts += [partial(work, low, high) for low, high in pairwise(edges) if low < high]
    run_together(parts)


def run_together(tasks: Iterable[Callable[[], object]]) -> None:
    """Run all tasks in threads, in any order; an exception of one of them is raised here.

    A task that itself shares work does all of it in its own thread.

    >>> done = []
    >>> run_together([lambda n=n: done.append(n) for n in range(5)])
    >>> sorted(done)
    [0, 1, 2, 3, 4]
    """
    todo = list(tasks)
    if is_alone() or len(todo) < 2:
        for task in todo:
            task()
        return
    for _ in thread_pool().map(_do_share, todo):
        pass


def _do_share(task: Callable[[], object]) -> None:
    _inside.shared = True
    task()


def is_alone() -> bool:
    """Whether this thread must not share work: there is only one thread, or it is already doing shared work."""
    return getattr(_inside, "shared", False) or thread_count() == 1


_inside = local()


@cache
def thread_pool() -> ThreadPoolExecutor:
    """Return the thread pool that all searches of this process share; the first call creates it."""
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="scan")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=thread_pool.cache_clear)  # threads stay behind in the parent
