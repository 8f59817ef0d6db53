"""A folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from momentseek.errors import MomentseekError

DATA_FILE = "data.toml"
"""What makes a folder a corpus; it goes first and comes last."""


@contextmanager
def write_folder(out: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """An empty folder to fill, whose files are put in ``out`` at the end; nothing is left if that is not reached.

    A folder that holds something is refused, unless ``force``: then files of the same names are replaced, and others
    left alone.
    """
    target = Path(out)
    check_target(target, force)
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=target.absolute().parent, prefix=f".{target.name}."))
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be made ({e.strerror}); choose another folder (`out`)") from None
    try:
        yield folder
        _move(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_target(target: Path, force: bool) -> None:
    """Refuse a folder with something in it."""
    if target.exists() and not target.is_dir():
        raise MomentseekError(f"{target}: is a file; give the name of a folder (`out`)")
    if not force and target.is_dir() and any(target.iterdir()):
        raise MomentseekError(f"{target}: is not empty; choose another folder, or replace its files (force=True)")


def _move(folder: Path, target: Path) -> None:
    try:
        target.mkdir(exist_ok=True)
        (target / DATA_FILE).unlink(missing_ok=True)
        for path in sorted(folder.iterdir(), key=lambda p: (p.name == DATA_FILE, p.name)):
            path.replace(target / path.name)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); check the folder") from None
