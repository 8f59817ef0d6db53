"""Find videos by a list of files, folders and patterns."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from momentseek.core.errors import MomentseekError
from momentseek.core.pinned_file import FileChangedError, PinnedFile, open_folder
from momentseek.library.file_stamp import file_kind, path_text, printable
from momentseek.library.video import matcher

Excluded = Callable[[str], bool]


def is_pattern(text: str) -> bool:
    """Whether a path has wildcards to expand."""
    return glob.has_magic(text)


def expand(text: str, excluded: Excluded = lambda _: False) -> tuple[Path, list[Path]]:
    """The fixed part of a pattern, and the paths that match the whole pattern, in order.

    ``*``, ``?`` and ``[...]`` have the same meaning as in a shell, ``**`` means any depth. Hidden files match only if
    the pattern has the dot. Folders for which ``excluded`` returns true (given their path below the fixed part) are
    skipped, and ``**`` enters each folder once, even if links lead to it.
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
    except OSError:  # not a folder, or not readable: nothing in it matches
        return []


VIDEO_SUFFIXES = frozenset({
    ".3g2", ".3gp", ".asf", ".avi", ".divx", ".dv", ".f4v", ".flv", ".m2t", ".m2ts", ".m2v", ".m4v", ".mjpeg", ".mk3d",
    ".mkv", ".mov", ".mp4", ".mpe", ".mpeg", ".mpg", ".mpv", ".mts", ".mxf", ".nut", ".ogm", ".ogv", ".qt", ".rm",
    ".rmvb", ".ts", ".vob", ".webm", ".wmv", ".y4m",
    ".aac", ".aif", ".aiff", ".amr", ".flac", ".m4a", ".m4b", ".mka", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".wma",
})  # fmt: skip
"""Suffixes of files in a folder that count as videos or sound recordings; a file that is given explicitly is tried
whatever its suffix."""


@dataclass(frozen=True)
class VideoFile:
    """A video file to add.

    ``path`` has no links in it, so that each file has only one path; ``name`` is for display; ``size`` is in bytes.
    """

    path: Path
    name: str
    size: int = 0

    @property
    def source(self) -> PinnedFile:
        """The file to read; reading is refused if a link has replaced it or a folder above it."""
        return PinnedFile(self.path)


@dataclass
class FoundFiles:
    """Video files, and paths that cannot be used, each with the reason."""

    files: list[VideoFile] = field(default_factory=list)
    unusable: list[tuple[Path, str]] = field(default_factory=list)


def find_videos(
    paths: Iterable[str | os.PathLike[str]],
    *,
    recursive: bool = True,
    exclude: Sequence[str] = (),
    skip: Path | None = None,
    links: bool = True,
) -> FoundFiles:
    """Find the videos at ``paths``, each once, folders in the order of their names.

    These are skipped: hidden files and folders unless they are given explicitly; files and folders that match
    ``exclude`` (globs for the name, or for the path below the folder or below the fixed part of a pattern); and
    everything in the folder ``skip`` (the library itself). A path that does not exist is tried as a pattern (``**``
    means any depth), and refused if nothing matches. Without ``links``, links in the folders are skipped, so that
    nothing outside of them is found; the folders themselves must then have no links in their paths.
    """
    search = _Search(recursive, matcher(exclude), skip and skip.resolve(), links)
    for path in paths:
        base, places = _expand_path(Path(path), search.excluded)
        for place in places:
            search.add(place, base)
    return search.found


def check_paths(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse paths that do not exist and patterns that match nothing, before any work."""
    for path in paths:
        _expand_path(Path(path))


def _expand_path(path: Path, excluded: Excluded = lambda _: False) -> tuple[Path | None, list[Path]]:
    """The fixed part of the path if it is a pattern, or None, and the paths that it means."""
    text = os.path.expanduser(os.fspath(path))
    for place in (path, Path(text)):
        if os.path.lexists(place):
            return None, [place]
    if not is_pattern(text):
        raise MomentseekError(f"{printable(path)}: does not exist; check the path")
    base, places = expand(text, excluded)
    if not places and not expand(text)[1]:
        raise MomentseekError(f"{printable(path)}: matches no file; check the path")
    return base, places


class _Search:
    def __init__(self, recursive: bool, excluded: Excluded, skip: Path | None, links: bool) -> None:
        self.recursive, self.excluded, self.skip, self.links = recursive, excluded, skip, links
        self.found = FoundFiles()
        self.seen: set[Path] = set()
        self.folders: set[tuple[int, int]] = set()
        self.reported: set[Path] = set()

    def add(self, path: Path, base: Path | None) -> None:
        if path.is_dir():
            self.folder(path, path, base or path)
        elif not self.excluded(path.name):
            self.file(path, path.name or os.fspath(path))

    def folder(self, folder: Path, top: Path, base: Path) -> None:
        """Add the videos of a folder, named by their path below ``top``; folders already visited are skipped."""
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            try:
                state = here.stat()
                if (state.st_dev, state.st_ino) in self.folders or self.is_library(here):
                    continue
                self.folders.add((state.st_dev, state.st_ino))
                ordered = self.entries(here)
            except FileChangedError:
                continue
            except OSError as e:
                self.report(here, f"{printable(here)}: cannot be listed ({e.strerror}); check the rights")
                continue
            below = []
            for name, is_folder in ordered:
                place = here / name
                if name.startswith(".") or self.excluded(place.relative_to(base).as_posix()):
                    continue
                if is_folder:
                    below.append(place)
                elif place.suffix.lower() in VIDEO_SUFFIXES:
                    self.file(place, place.relative_to(top).as_posix())
            if self.recursive:
                waiting.extend(reversed(below))

    def entries(self, folder: Path) -> list[tuple[str, bool]]:
        """The names in a folder, in order, and whether each is a folder; links only if they may be followed."""
        with nullcontext(folder) if self.links else open_folder(folder) as place, os.scandir(place) as entries:
            found = [(e.name, _is_folder(e, self.links)) for e in entries if self.links or not e.is_symlink()]
        return sorted(found, key=lambda entry: os.fsencode(entry[0]))

    def file(self, path: Path, name: str) -> None:
        try:
            real = path.resolve(strict=True) if self.links else path
            state = real.stat(follow_symlinks=self.links)
        except (OSError, RuntimeError):
            why = "is a link that leads nowhere" if path.is_symlink() else "cannot be read"
            self.report(Path(os.path.realpath(path.parent)) / path.name, f"{printable(path)}: {why}")
            return
        if real in self.seen:
            return
        self.seen.add(real)
        if not stat.S_ISREG(state.st_mode):
            self.report(real, f"{printable(path)}: is a {file_kind(state.st_mode)}, not a file")
            return
        self.found.files.append(VideoFile(real, path_text(name), state.st_size))

    def report(self, path: Path, why: str) -> None:
        """Report an unusable path, once."""
        if path not in self.reported:
            self.reported.add(path)
            self.found.unusable.append((path, why))

    def is_library(self, folder: Path) -> bool:
        return self.skip is not None and folder.resolve() == self.skip


def _is_folder(entry: os.DirEntry[str], links: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=links)
    except OSError:
        return False
