"""FileQueue: the files of a run, handed to the threads that read them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

from momentseek.library.files import VideoFile


class FileQueue:
    """Files that several threads take, each by iterating: every file goes to one of them, in order.

    No thread gets another file while the queue is ``shut``.

    >>> from pathlib import Path
    >>> files = FileQueue([VideoFile(Path("a.mp4"), "a.mp4"), VideoFile(Path("b.mp4"), "b.mp4")])
    >>> one, other = iter(files), iter(files)
    >>> next(one).name, next(other).name, next(one, None)
    ('a.mp4', 'b.mp4', None)
    """

    def __init__(self, files: Iterable[VideoFile]) -> None:
        self._files = deque(files)
        self._shut = self._ended = False
        self._change = threading.Condition()

    @property
    def shut(self) -> bool:
        """Whether threads that want another file have to wait."""
        return self._shut

    @shut.setter
    def shut(self, shut: bool) -> None:
        with self._change:
            self._shut = shut
            self._change.notify_all()

    def end(self) -> None:
        """Hand out no more files, and let nobody wait for any."""
        with self._change:
            self._ended = True
            self._change.notify_all()

    def __iter__(self) -> Iterator[VideoFile]:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._ended or not self._shut or not self._files)
                if self._ended or not self._files:
                    return
                file = self._files.popleft()
            yield file
