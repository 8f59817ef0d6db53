"""A disk that loses power: what was not flushed when it happens is lost, cut short, zeroed or there, name by name.

Only a flush (``os.fsync``) makes bytes or a folder's names durable. The real files are left alone; before every call
that flushes, renames, deletes or makes something, the recorder notes how the folder looks and what of it is durable.
From such a point :meth:`PowerCut.leave` builds folders as a restart could find them. SQLite flushes its databases
itself at the end of each transaction (``synchronous = FULL``), so their files count as durable, as they are.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

WATCHED = ("fsync", "replace", "rename", "unlink", "remove", "mkdir", "rmdir")
DATABASES = (".sqlite", ".sqlite-wal", ".sqlite-journal")
FORGOTTEN = ".sqlite-shm"
"""The index that SQLite shares between processes; it is made anew after a restart."""
Names = dict[str, int]
"""What a folder holds: name → inode."""


@dataclass(frozen=True)
class Disk:
    """Folders by inode, and files by inode."""

    folders: dict[int, Names]
    files: dict[int, bytes]


@dataclass(frozen=True)
class PowerCut:
    """An instant at which the power may fail."""

    at: str
    """The call that was about to be made."""
    command: int
    """How many commands had finished by then."""
    root: int
    now: Disk
    durable: Disk

    def leave(self, target: Path, how: str, chance: random.Random) -> None:
        """Build the folder as it may be after a restart. ``how``: ``least`` keeps nothing that was not flushed,
        ``names`` the names without the bytes, ``any`` chooses by chance for every name and file.
        """
        target.mkdir()
        self._leave(self.root, target, how, chance)

    def _leave(self, folder: int, target: Path, how: str, chance: random.Random) -> None:
        now, durable = self.now.folders.get(folder, {}), self.durable.folders.get(folder, {})
        for name in sorted({*now, *durable}):
            if name.endswith(FORGOTTEN):
                continue
            late = name.endswith(DATABASES) or how == "names" or (how == "any" and chance.random() < 0.5)
            inode = (now if late else durable).get(name)
            if inode is None:
                continue
            if inode in self.now.folders or inode in self.durable.folders:
                (target / name).mkdir()
                self._leave(inode, target / name, how, chance)
            else:
                keep = name.endswith(DATABASES)
                (target / name).write_bytes(self.now.files[inode] if keep else self._bytes(inode, how, chance))

    def _bytes(self, inode: int, how: str, chance: random.Random) -> bytes:
        flushed, written = self.durable.files.get(inode, b""), self.now.files.get(inode)
        if written is None or written == flushed or how != "any":
            return flushed
        return chance.choice([flushed, written, written[: len(written) // 2], bytes(len(written))])


class PowerLossRecorder:
    """Watches the calls of this process that change a folder, and keeps every instant in between."""

    def __init__(self, root: Path) -> None:
        self.root, self.cuts, self.commands = root, list[PowerCut](), 0
        self._handles: dict[int, int] = {}  # an inode that is held open is not given to another file
        self._seen: dict[int, tuple[tuple[int, int], bytes]] = {}
        at_first = self._scan()
        self._durable = Disk(dict(at_first.folders), dict(at_first.files))

    def finish_command(self) -> None:
        """Note that a command has returned: what it reported must be there from now on."""
        self.commands += 1
        self.note("the end of a command")

    def note(self, at: str) -> None:
        """Note an instant."""
        durable = Disk(dict(self._durable.folders), dict(self._durable.files))
        self.cuts.append(PowerCut(at, self.commands, os.stat(self.root).st_ino, self._scan(), durable))

    def flush(self, handle: int) -> None:
        """Note that a file's bytes or a folder's names are on the disk."""
        state, disk = os.fstat(handle), self._scan()
        if stat.S_ISDIR(state.st_mode):
            if state.st_ino in disk.folders:
                self._durable.folders[state.st_ino] = disk.folders[state.st_ino]
        elif state.st_ino in disk.files:
            self._durable.files[state.st_ino] = disk.files[state.st_ino]

    def close(self) -> None:
        """Let go of the files."""
        for handle in self._handles.values():
            os.close(handle)

    def _scan(self) -> Disk:
        found = Disk({}, {})
        self._scan_folder(self.root, found)
        return found

    def _scan_folder(self, folder: Path, found: Disk) -> None:
        inode = os.stat(folder).st_ino
        names = found.folders[inode] = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                state = entry.stat(follow_symlinks=False)
                names[entry.name] = state.st_ino
                if state.st_ino not in self._handles:
                    self._handles[state.st_ino] = os.open(entry.path, os.O_RDONLY)
                if entry.is_dir(follow_symlinks=False):
                    self._scan_folder(Path(entry.path), found)
                else:
                    found.files[state.st_ino] = self._read(entry.path, state)

    def _read(self, path: str, state: os.stat_result) -> bytes:
        stamp = (state.st_mtime_ns, state.st_size)
        seen = self._seen.get(state.st_ino)
        if seen is None or seen[0] != stamp or path.endswith(DATABASES):
            seen = self._seen[state.st_ino] = (stamp, Path(path).read_bytes())
        return seen[1]


@contextmanager
def record_power_loss(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PowerLossRecorder]:
    """Record every instant at which the power may fail while something changes the folder ``root``."""
    recorder = PowerLossRecorder(root)

    def watch(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **more: Any) -> Any:
            recorder.note(name)
            result = call(*arguments, **more)
            if name == "fsync":
                recorder.flush(arguments[0])
            return result

        return watched

    with monkeypatch.context() as patch:
        for name in WATCHED:
            patch.setattr(os, name, watch(name, getattr(os, name)))
        try:
            yield recorder
        finally:
            recorder.close()
