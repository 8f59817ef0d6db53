"""A folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.features.data import DATA_FILE


@contextmanager
def write_folder(out: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """Give an empty folder to fill and move its files to ``out`` at the end; after an error nothing is left of it.

    An ``out`` that is not empty is refused unless ``force`` is true; then files of the same names are replaced and
    others left alone.
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
    """Refuse a target that is a file, or a folder that is not empty unless ``force`` is true."""
    if target.exists() and not target.is_dir():
        raise MomentseekError(f"{target}: is a file; give the name of a folder (`out`)")
    if not force and target.is_dir() and any(target.iterdir()):
        raise MomentseekError(f"{target}: is not empty; choose another folder, or replace its files (force=True)")


def _move(folder: Path, target: Path) -> None:
    """Move the files; ``data.toml``, which makes a folder a corpus, is removed first and arrives last."""
    try:
        target.mkdir(exist_ok=True)
        (target / DATA_FILE).unlink(missing_ok=True)
        for path in sorted(folder.iterdir(), key=lambda p: (p.name == DATA_FILE, p.name)):
            path.replace(target / path.name)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); check the folder") from None
