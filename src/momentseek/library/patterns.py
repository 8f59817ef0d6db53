"""Which files and folders a pattern for paths means."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

Excluded = Callable[[str], bool]


def is_pattern(text: str) -> bool:
    """Whether a path has wildcards to expand."""
    return glob.has_magic(text)


def expand(text: str, excluded: Excluded = lambda _: False) -> tuple[Path, list[Path]]:
    """The fixed part of a pattern, and the paths that match the whole pattern, in order.

    ``*``, ``?`` and ``[...]`` mean what they do in a shell, ``**`` any depth. What is hidden matches only where the
    pattern has the dot. Folders for which ``excluded`` says yes (of their path below the fixed part) are not entered,
    and ``**`` enters each folder once, by whatever links it is met.
    """
    parts = Path(text).parts
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    base = Path(*parts[:first])
    matches = [base]
    for part in parts[first:]:
        step = _any_depth(matches, base, excluded) if part == "**" else _one(matches, part, base, excluded)
        matches = list(dict.fromkeys(step))
    return base, sorted((path for path in matches if path != base), key=os.fsencode)


def _one(folders: Sequence[Path], part: str, base: Path, excluded: Excluded) -> Iterator[Path]:
    for folder in folders:
        if not glob.has_magic(part):
            names = [part] if os.path.lexists(folder / part) else []
        else:
            names = [n for n in _names(folder) if fnmatchcase(n, part) and (part[0] == "." or n[0] != ".")]
        yield from (folder / n for n in names if not excluded((folder / n).relative_to(base).as_posix()))


def _any_depth(folders: Sequence[Path], base: Path, excluded: Excluded) -> Iterator[Path]:
    met: set[tuple[int, int]] = set()
    waiting = list(reversed(folders))
    while waiting:
        here = waiting.pop()
        try:
            state = here.stat()
        except OSError:
            continue
        if not here.is_dir() or (state.st_dev, state.st_ino) in met:
            continue
        met.add((state.st_dev, state.st_ino))
        yield here
        below = [here / n for n in _names(here) if n[0] != "."]
        waiting += [p for p in reversed(below) if p.is_dir() and not excluded(p.relative_to(base).as_posix())]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder), key=os.fsencode)
    except OSError:  # no folder, or not to be listed: nothing in it matches
        return []
