"""Finding the videos that somebody means by a list of files, folders and patterns."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.library.stamp import kind, readable, shown

SUFFIXES = frozenset({
    ".3g2", ".3gp", ".asf", ".avi", ".divx", ".dv", ".f4v", ".flv", ".m2t", ".m2ts", ".m2v", ".m4v", ".mjpeg", ".mk3d",
    ".mkv", ".mov", ".mp4", ".mpe", ".mpeg", ".mpg", ".mpv", ".mts", ".mxf", ".nut", ".ogm", ".ogv", ".qt", ".rm",
    ".rmvb", ".ts", ".vob", ".webm", ".wmv", ".y4m",
})  # fmt: skip
"""Files in a folder that are taken for videos; a file that is named is tried whatever it is called."""


@dataclass(frozen=True)
class Found:
    """A file to add. ``path`` has no links in it, so that a file has one place; ``name`` is what people see."""

    path: Path
    name: str
    size: int = 0


@dataclass
class Finding:
    """The files, and what was met that is no file: ``(path, reason)``."""

    files: list[Found] = field(default_factory=list)
    odd: list[tuple[Path, str]] = field(default_factory=list)


def find(
    paths: Iterable[str | os.PathLike[str]],
    *,
    recursive: bool = True,
    exclude: Sequence[str] = (),
    skip: Path | None = None,
) -> Finding:
    """The videos at ``paths``, each once, folders in the order of their names.

    Hidden files and folders are passed over unless named, and so are files that match ``exclude`` (a glob for the
    file's name or its path below the folder), and everything in the folder ``skip`` (the library itself). A path that
    is not there is tried as a pattern (``**`` means any depth), and refused if nothing matches.
    """
    search = _Search(recursive, tuple(exclude), skip and skip.resolve())
    for path in paths:
        for place in _expanded(Path(path)):
            search.named(place)
    return search.finding


def check(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse paths and patterns that mean nothing, before any work."""
    for path in paths:
        next(_expanded(Path(path)))


def _expanded(path: Path) -> Iterator[Path]:
    if os.path.lexists(path):
        yield path
        return
    text = os.path.expanduser(os.fspath(path))
    if os.path.lexists(text):
        yield Path(text)
        return
    matches = sorted(glob.glob(text, recursive=True)) if glob.has_magic(text) else []
    if not matches:
        why = "matches no file" if glob.has_magic(text) else "is not there"
        raise MomentseekError(f"{shown(path)}: {why}; check the path")
    yield from map(Path, matches)


class _Search:
    def __init__(self, recursive: bool, exclude: tuple[str, ...], skip: Path | None) -> None:
        self.recursive, self.exclude, self.skip = recursive, exclude, skip
        self.finding = Finding()
        self.seen: set[Path] = set()
        self.folders: set[tuple[int, int]] = set()

    def named(self, path: Path) -> None:
        if path.is_dir():
            self.folder(path, path)
        elif not self.excluded(path.name, path.name):
            self.file(path, path.name or os.fspath(path))

    def folder(self, folder: Path, top: Path) -> None:
        """Its videos; a folder met before, by a link or twice in the list, is passed over."""
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            try:
                state = here.stat()
                if (state.st_dev, state.st_ino) in self.folders or self.is_library(here):
                    continue
                self.folders.add((state.st_dev, state.st_ino))
                with os.scandir(here) as entries:
                    ordered = sorted(entries, key=lambda entry: os.fsencode(entry.name))
            except OSError as e:
                self.finding.odd.append((here, f"{shown(here)}: cannot be listed ({e.strerror}); check the rights"))
                continue
            below = []
            for entry in ordered:
                place = Path(entry.path)
                relative = place.relative_to(top)
                if entry.name.startswith(".") or self.excluded(entry.name, relative.as_posix()):
                    continue
                if _is_folder(entry):
                    below.append(place)
                elif place.suffix.lower() in SUFFIXES:
                    self.file(place, relative.as_posix())
            if self.recursive:
                waiting.extend(reversed(below))

    def file(self, path: Path, name: str) -> None:
        try:
            real = path.resolve(strict=True)
            state = real.stat()
        except (OSError, RuntimeError):
            why = "is a link that leads nowhere" if path.is_symlink() else "cannot be read"
            self.finding.odd.append((Path(os.path.abspath(path)), f"{shown(path)}: {why}"))
            return
        if real in self.seen:
            return
        self.seen.add(real)
        if not stat.S_ISREG(state.st_mode):
            self.finding.odd.append((real, f"{shown(path)}: is a {kind(state.st_mode)}, not a file"))
            return
        self.finding.files.append(Found(real, readable(name), state.st_size))

    def excluded(self, name: str, relative: str) -> bool:
        return any(fnmatch(name, glob) or fnmatch(relative, glob) for glob in self.exclude)

    def is_library(self, folder: Path) -> bool:
        return self.skip is not None and folder.resolve() == self.skip


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
