"""Work shared among threads in such a way that a busy machine makes it no slower than one thread alone.

The caller takes tasks from the queue itself, and helpers take them too as soon as the system lets them run. A helper
that has not begun when the queue is empty is never waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from momentseek.encoders.runtime import thread_count

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def run_together(tasks: Iterable[Callable[[], object]]) -> None:
    """Do all tasks, in any order; an exception of one of them is raised here.

    >>> done = []
    >>> run_together([lambda n=n: done.append(n) for n in range(5)])
    >>> sorted(done)
    [0, 1, 2, 3, 4]
    """
    queue = deque(tasks)

    def drain() -> None:
        while True:
            try:
                task = queue.popleft()
            except IndexError:
                return
            task()

    helpers = [thread_pool().submit(drain) for _ in range(min(thread_count(), len(queue)) - 1)]
    try:
        drain()
    finally:
        queue.clear()
        begun = [helper for helper in helpers if not helper.cancel()]
        for helper in begun:
            helper.exception()  # waits
    for helper in begun:
        helper.result()


@cache
def thread_pool() -> ThreadPoolExecutor:
    """Threads shared by all searches of this process."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max(1, thread_count() - 1), thread_name_prefix="scan")
