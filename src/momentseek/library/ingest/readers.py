"""How many files are read at once when videos are added, and by how many threads each."""

from __future__ import annotations

from momentseek.encoders.runtime import available_cores

MAX_READERS = 4
"""Files read at once unless somebody says otherwise: each has a process, which takes 100 MB and more."""


def reader_count(files: int, asked: int | None = None) -> int:
    """How many of some files are read at once: as many as asked for, else one for each core.

    >>> reader_count(1), reader_count(100, asked=3), reader_count(2, asked=3), reader_count(0)
    (1, 3, 2, 1)
    """
    return max(1, min(files, min(MAX_READERS, available_cores()) if asked is None else asked))


def decoder_threads(readers: int) -> int | None:
    """Threads that decode each of several files; None for one file alone, which takes as many as help it.

    Threads within a file take a sixth more of the processor's time than files beside each other.

    >>> decoder_threads(1) is None, decoder_threads(1000)
    (True, 1)
    """
    return None if readers == 1 else max(1, available_cores() // readers)
