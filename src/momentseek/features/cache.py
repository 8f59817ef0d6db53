"""A cache that forgets what was used longest ago when it holds too many bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


class ArrayCache:
    """Arrays by key, at most ``megabytes`` of them; for several threads.

    >>> cache = ArrayCache(1)
    >>> cache.get("a", lambda: np.zeros(4, np.float32)).shape, cache.bytes
    ((4,), 16)
    """

    def __init__(self, megabytes: float) -> None:
        self.limit = int(megabytes * 1e6)
        self.bytes = 0
        self._kept: OrderedDict[Hashable, Array] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable, make: Callable[[], Array]) -> Array:
        """The array that is kept under ``key``; if there is none, ``make`` makes it and it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if key not in self._kept and made.nbytes <= self.limit:
                self._kept[key] = made
                self.bytes += made.nbytes
                while self.bytes > self.limit:
                    _, old = self._kept.popitem(last=False)
                    self.bytes -= old.nbytes
        return made
